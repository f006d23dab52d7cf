"""`drainwise shutdown` plans only what can be kept, and says what is planned."""

from __future__ import annotations

import argparse
import datetime
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.cli import shutdown
from drainwise.cli.command_line.options import build
from drainwise.cli.shutdown import parse_time
from drainwise.facts.errors import FeatureError, UsageError

NOW = 1795249000
Run = Callable[..., int]


@pytest.fixture
def file(tmp_path: Path) -> str:
    return str(tmp_path / "shutdowntime")


@pytest.fixture
def run(file: str) -> Run:
    parser = argparse.ArgumentParser()
    build(parser.add_subparsers(), "shutdown", shutdown.COMMAND)

    def call(*words: str) -> int:
        args = parser.parse_args(["shutdown", "--file", file, *words])
        code: int = args.run(args)
        return code

    return call


@pytest.fixture
def zurich(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Europe/Zurich")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def test_a_plan_is_written_shown_and_cancelled(run: Run, file: str, capsys: pytest.CaptureFixture[str]) -> None:
    before = int(time.time())
    assert run("--at", "+2h") == 0
    planned = int(Path(file).read_text())
    assert before + 7200 <= planned <= time.time() + 7200
    assert capsys.readouterr().out.startswith("shutdown planned for ")
    assert run() == 0
    assert f"({planned})" in capsys.readouterr().out
    assert run("--cancel") == 0
    assert capsys.readouterr().out == "no shutdown is planned\n"
    assert not os.path.exists(file)
    assert run("--cancel") == 0


def test_file_and_grace_come_from_the_nodes_settings(tmp_path: Path) -> None:
    """An administrator plans where the hooks look, and with the notice that the site publishes."""
    settings = tmp_path / "node.conf"
    settings.write_text(f"grace_secs = 600\nshutdown_file = {tmp_path}/planned\n")
    parser = argparse.ArgumentParser()
    build(parser.add_subparsers(), "shutdown", shutdown.COMMAND)
    args = parser.parse_args(["shutdown", "--settings", str(settings), "--at", "+11m"])
    before = int(time.time())
    assert args.run(args) == 0
    assert before + 660 <= int((tmp_path / "planned").read_text()) <= time.time() + 660
    with pytest.raises(UsageError, match="nearer than the grace of 600 s"):
        sooner = parser.parse_args(["shutdown", "--settings", str(settings), "--at", "+9m"])
        sooner.run(sooner)


def test_json_is_for_programs(run: Run, file: str, capsys: pytest.CaptureFixture[str]) -> None:
    run("--json")
    assert json.loads(capsys.readouterr().out) == {
        "format": "drainwise shutdown",
        "version": 1,
        "file": file,
        "shutdowntime": None,
        "remark": None,
    }
    run("--at", "+90m", "--json")
    assert json.loads(capsys.readouterr().out)["shutdowntime"] == int(Path(file).read_text())


def test_the_grace_holds_unless_forced(run: Run, file: str) -> None:
    with pytest.raises(UsageError, match="nearer than the grace of 3600 s"):
        run("--at", "+30m")
    assert not os.path.exists(file)
    assert run("--at", "+30m", "--grace", "1800") == 0
    assert run("--at", "+90s", "--force") == 0
    assert int(Path(file).read_text()) - time.time() < 120
    with pytest.raises(UsageError, match="not in the future"):
        run("--at", str(NOW - 10**9), "--force")
    with pytest.raises(UsageError, match="--force goes with --at"):
        run("--force")


def test_a_plan_whose_time_has_come_is_removed_when_looked_at(
    run: Run, file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path(file).write_text("1000000000\n")
    assert run() == 0
    assert capsys.readouterr().out == "no shutdown is planned\n"
    assert not os.path.exists(file)


def test_a_file_that_is_ignored_ends_with_1_and_says_why(
    run: Run, file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path(file).write_text("soon\x1b[31m\n")
    assert run() == 1
    shown = capsys.readouterr()
    assert "planned shutdown ignored: shutdowntime:" in shown.err
    assert "\x1b" not in shown.err
    assert run("--at", "+2h") == 0


def planned_at(path: Path) -> int:
    parser = argparse.ArgumentParser()
    build(parser.add_subparsers(), "shutdown", shutdown.COMMAND)
    args = parser.parse_args(["shutdown", "--at", "+2h", "--file", str(path)])
    code: int = args.run(args)
    return code


def test_a_missing_directory_is_made(tmp_path: Path) -> None:
    """Nobody else makes /var/lib/drainwise; the jobs' hooks can enter it, whatever the umask."""
    before = os.umask(0o077)
    try:
        assert planned_at(tmp_path / "absent" / "shutdowntime") == 0
    finally:
        os.umask(before)
    assert (tmp_path / "absent").stat().st_mode & 0o777 == 0o755


def test_a_directory_that_cannot_be_made_is_an_error_that_names_it() -> None:
    with pytest.raises(FeatureError, match="/proc/absent: cannot be made: "):
        planned_at(Path("/proc/absent/shutdowntime"))


def test_a_plan_that_no_hook_reads_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On a machine without node settings it is written, said, and ends with 1; with --file somebody knows better."""
    monkeypatch.setattr("drainwise.node.settings.NodeSettings.shutdown_file", str(tmp_path / "planned"))
    parser = argparse.ArgumentParser()
    build(parser.add_subparsers(), "shutdown", shutdown.COMMAND)
    words = ["shutdown", "--settings", str(tmp_path / "node.conf")]
    for more, code, said in ((["--at", "+6h"], 1, "no job is notified"), (["--cancel"], 0, ""), ([], 0, "")):
        args = parser.parse_args([*words, *more])
        assert args.run(args) == code
        assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (str(NOW), NOW),
        ("+90s", NOW + 90),
        ("+30m", NOW + 1800),
        ("+2h", NOW + 7200),
        ("+1d", NOW + 86400),
        ("2026-11-21T10:16:40+00:00", 1795256200),
        ("2026-11-21T10:16:40Z", 1795256200),
        ("2026-11-21T11:16:40", 1795256200),
        ("2026-11-21 11:16", 1795256160),
        ("2026-07-01T12:00", 1782900000),
    ],
)
@pytest.mark.usefixtures("zurich")
def test_a_time_is_unix_seconds_iso_8601_or_from_now(text: str, expected: int) -> None:
    assert parse_time(text, NOW) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "+",
        "+h",
        "+2",
        "+2w",
        "+-2h",
        "+1.5h",
        "++2h",
        "-2h",
        "soon",
        "2026-13-01T00:00",
        "2026-11-21",
        "1e9",
        "١٢",
        "+١h",
        "1" * 13,
        "9" * 5000,
        "+" + "9" * 5000 + "h",
        "0001-01-01T00:00",
        "12:00",
    ],
)
def test_anything_else_is_a_usage_error_that_shows_what_would_be_right(text: str) -> None:
    """HOSTILE 36, 37."""
    with pytest.raises(UsageError, match="expected UNIX seconds") as error:
        parse_time(text, NOW)
    assert len(str(error.value)) < 250


@given(st.text(max_size=20) | st.integers(NOW, 2**31 - 1).map(str))
def test_no_text_breaks_the_parser(text: str) -> None:
    try:
        assert isinstance(parse_time(text, NOW), int)
    except UsageError as error:
        assert str(error).isprintable()


@given(st.datetimes(datetime.datetime(2000, 1, 1), datetime.datetime(2200, 1, 1)))
def test_an_iso_time_with_its_zone_is_exact(moment: datetime.datetime) -> None:
    aware = moment.replace(microsecond=0, tzinfo=datetime.timezone.utc)
    assert parse_time(aware.isoformat(), NOW) == int(aware.timestamp())
