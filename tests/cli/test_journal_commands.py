"""`drainwise explain` and `drainwise report`: the journal alone answers, no batch system is asked."""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from as_user import answer_of
from drainwise.cli import agent_place, site_file
from drainwise.cli.journal_options import journal_files
from drainwise.cli.main import main
from made_up_node import public_directory

if TYPE_CHECKING:
    from collections.abc import Callable

    from .conftest import AlicesPool

PLUGINS = str(Path(__file__).parents[2] / "plugins")
NOBODY = 65534


def test_a_user_asks_why_its_pilot_must_go(journal: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "slot1_1@node1", "--journal", journal]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("slot1_1@node1: alice@pool of group_a, 8 cores on node1, running since ")
    assert "owed cores: group_b (16)" in out
    assert "    rule    open-need: leaves by itself in 16m40s" in out
    assert err == ""


def test_the_answer_is_there_for_programs(journal: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "1.0", "--json", "--journal", journal]) == 0
    [found] = json.loads(capsys.readouterr().out)
    [asked] = found["orders"]
    assert (asked["order"]["name"], asked["order"]["outcome"], asked["end"]) == ("slot1_1@node1", "done", None)
    assert asked["decision"]["deficit"] == 16


def test_a_pilot_that_the_journal_does_not_know(journal: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "no\x1b[2Jbody", "--journal", journal]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("drainwise: the journal knows no pilot that is called no[2Jbody; it begins 20")


@pytest.mark.parametrize("command", [["explain", "1.0"], ["report"]])
def test_the_journal_must_be_known(command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    site = tmp_path / "site.ini"
    site.write_text(f"[agent]\nstate_dir = {tmp_path}/none\n")
    assert main([*command, "--site", str(site)]) == 2
    said = capsys.readouterr().err
    assert "[journal] file" in said and f"no agent keeps one in {tmp_path}/none" in said
    assert main([*command, "--journal", str(tmp_path / "absent")]) == 2
    assert "there is no journal" in capsys.readouterr().err


def test_a_journal_in_a_directory_that_may_not_be_entered_is_not_missing(tmp_path: Path) -> None:
    """Who may not enter its directory is told so, and not that there is no journal."""
    (tmp_path / "closed").mkdir(mode=0o700)
    tmp_path.parent.chmod(0o755)
    tmp_path.chmod(0o755)

    def said() -> str:
        with pytest.raises(PermissionError) as raised:
            journal_files(argparse.Namespace(journal=f"{tmp_path}/closed/journal.jsonl"))
        return str(raised.value.filename)

    assert answer_of(said, 65534) == f"{tmp_path}/closed/journal.jsonl"


def test_the_site_names_the_journal(
    journal: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "site.ini"
    site.write_text(f"[journal]\nfile = {journal}\n")
    assert main(["explain", "1.0", "--site", str(site)]) == 0
    monkeypatch.setattr(site_file, "DEFAULT_SITE_FILE", str(site))
    assert main(["report"]) == 0
    assert "alice@pool" in capsys.readouterr().out


@pytest.mark.parametrize("command", [["explain", "1.0"], ["report"]])
def test_the_journal_that_the_agent_keeps_is_found(
    journal: str, command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where nobody names one; of several journals none is taken by chance, all are named."""
    state = tmp_path / "state"
    state.mkdir()
    (state / "agent-x.journal").write_text(Path(journal).read_text())
    site = tmp_path / "site.ini"
    site.write_text(f"[agent]\nstate_dir = {state}\n")
    assert main([*command, "--site", str(site)]) == 0
    assert "alice@pool" in capsys.readouterr().out
    (state / "agent-y.journal").write_text("")
    assert main([*command, "--site", str(site)]) == 2
    assert f"{state}/agent-x.journal, {state}/agent-y.journal" in capsys.readouterr().err


def test_who_may_not_read_the_journal_is_told_so(capfd: pytest.CaptureFixture[str]) -> None:
    """One line, exit code 2, nothing of the journal."""
    import drainwise.cli.explain  # noqa: F401 - another user may not be able to read the package

    if os.geteuid() != 0:
        pytest.skip("only root can become somebody else")
    with public_directory() as directory:
        path = Path(directory) / "journal"
        path.write_text('{"event":"state","version":2,"time":1}\n')
        path.chmod(0o640)
        child = os.fork()
        if child == 0:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            os._exit(main(["explain", "1.0", "--journal", str(path)]))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 2
    assert capfd.readouterr() == ("", f"drainwise: the journal '{path}' cannot be read: Permission denied\n")


@pytest.mark.parametrize("module", ["drainwise.cli.explain", "drainwise.cli.report"])
def test_the_journal_is_read_where_nothing_is_installed(module: str) -> None:
    """The standard library alone: also on a submit node."""
    program = f"import sys, {module}; print(*{{'numpy', 'jinja2'}} & set(sys.modules))"
    argv = [sys.executable, "-B", "-c", program]
    ran = subprocess.run(argv, env={"PYTHONPATH": PLUGINS}, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout.strip()) == (0, "")


def test_the_report_sums_up(journal: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "--journal", journal]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[0] == "By user and day (UTC)"
    assert main(["report", "--json", "--user", "alice", "--journal", journal]) == 0
    [user] = json.loads(capsys.readouterr().out)["users"]
    assert (user["user"], user["ordered"], user["no_end_known"], user["cores_ordered"]) == ("alice@pool", 2, 2, 16)
    assert (
        main(["report", "--days", "1", "--user", "alice", "--node", "node1", "--limit", "1", "--journal", journal]) == 0
    )
    assert "alice@pool" in capsys.readouterr().out


def test_the_report_is_a_page(journal: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Put in its place whole; or printed."""
    path = tmp_path / "report.html"
    path.write_text("the one of yesterday")
    assert main(["report", "--html", str(path), "--journal", journal]) == 0
    assert capsys.readouterr().out == ""
    assert "alice@pool" in path.read_text()
    assert [one.name for one in tmp_path.glob("report*")] == ["report.html"]
    assert main(["report", "--html", "-", "--journal", journal]) == 0
    assert capsys.readouterr().out.lstrip().startswith("<!DOCTYPE html>")


def test_a_page_that_cannot_be_written_is_one_line(
    journal: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "folder").mkdir()
    for path in (tmp_path / "folder", tmp_path / "absent" / "x"):
        assert main(["report", "--html", str(path), "--journal", journal]) == 2
        assert capsys.readouterr().err.startswith(f"drainwise: the report '{path}' cannot be written: ")
    assert list(tmp_path.glob("*.new")) == []


@pytest.mark.parametrize("days", ["0", "3651", "x", "-1"])
def test_days_are_a_number_that_makes_sense(days: str) -> None:
    with pytest.raises(SystemExit) as left:
        main(["report", "--days", days])
    assert left.value.code == 2


def test_only_the_last_days_count(
    journal: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    later = time.time() + 3 * 86_400
    monkeypatch.setattr("time.time", lambda: later)
    assert main(["report", "--days", "2", "--journal", journal]) == 0
    assert capsys.readouterr().out == "no order was given\n"
    assert main(["report", "--days", "5", "--journal", journal]) == 0
    assert "alice@pool" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["explain", "report"])
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--user", "bea"], "no user in the journal is called 'bea'; there is alice@pool"),
        (["--account", "group_x"], "no account is called 'group_x'; there is group_a"),
        (["--node", "wn*"], "no node in the journal is called 'wn*'; there is node1"),
    ],
)
def test_a_name_that_the_journal_does_not_know_is_refused(
    command: str, words: list[str], said: str, journal: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """As the commands on a pool do it: exit code 2, and the names that are known."""
    assert main([command, *words, "--journal", journal]) == 2
    out, err = capsys.readouterr()
    assert (out, said in err) == ("", True)


def test_all_pilots_of_a_user_are_explained_and_the_last_alone_by_a_limit(
    journal: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", "--user", "alice", "--node", "node1", "--json", "--journal", journal]) == 0
    found = json.loads(capsys.readouterr().out)
    assert len(found) == 4, "two with an order and two that were spared"
    assert main(["explain", "--account", "group_a", "--limit", "1", "--json", "--journal", journal]) == 0
    out, err = capsys.readouterr()
    assert (json.loads(out), "3 earlier ones; a higher --limit shows them" in err) == (found[-1:], True)


@pytest.mark.parametrize(
    "command", ["drainwise explain --user alice --limit 3", "drainwise report --node 'rack7-*' --limit 20"]
)
def test_the_commands_of_the_page_that_choose(command: str, journal: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path(journal).write_text(Path(journal).read_text().replace("node1", "rack7-01"))
    assert main([*shlex.split(command)[1:], "--journal", journal]) == 0
    assert "alice@pool" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("rewritten", "lines"),
    [
        (lambda text: json.dumps([json.loads(line) for line in text.splitlines()]), 1),
        (lambda text: json.dumps([json.loads(line) for line in text.splitlines()], indent=1) + "\n", 100),
        (lambda text: text.replace('"version":2', '"version":9'), 3),
        (lambda text: text.replace('"run"', '"ran"'), 1),
    ],
    ids=["one array", "an array of lines", "another version", "other names"],
)
def test_a_journal_that_another_program_wrote_anew_is_not_read_as_empty(
    rewritten: Callable[[str], str], lines: int, journal: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """What cannot be used is counted and said by both commands; that nobody got an order is not claimed."""
    text = rewritten(Path(journal).read_text())
    Path(journal).write_text(text)
    assert main(["explain", "slot1_1@node1", "--journal", journal]) == 1
    counted = re.search(r"drainwise: (\d+) lines? of the journal cannot be used", capsys.readouterr().err)
    assert counted is not None and int(counted[1]) >= lines
    assert main(["report", "--journal", journal]) == 0
    out, err = capsys.readouterr()
    assert "cannot be used" in err
    assert "no order is known; lines of the journal that cannot be used: " in out
    assert main(["report", "--json", "--journal", journal]) == 0
    assert json.loads(capsys.readouterr().out)["lines_passed_over"] >= lines


def test_explain_fits_the_window_and_in_a_pipe_stays_as_it_is(
    journal: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Folded between words; none is lost."""
    command = ["explain", "--user", "alice", "--journal", journal]
    assert main(command) == 0
    endless = capsys.readouterr().out
    assert max(map(len, endless.splitlines())) > 120
    for width in (80, 120):
        monkeypatch.setenv("COLUMNS", str(width))
        assert main(command) == 0
        shown = capsys.readouterr().out
        assert max(map(len, shown.splitlines())) <= width
        assert shown.split() == endless.split()


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_report_fits_the_window_and_cuts_no_number(
    width: int, journal: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Columns are left out, and named once."""
    Path(journal).write_text(Path(journal).read_text().replace("alice@pool", "alice-" + "x" * 60 + "@pool"))
    monkeypatch.setenv("COLUMNS", str(width))
    assert main(["report", "--journal", journal]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= width
    assert not re.search(r"(?m)[0-9]~", "\n".join(lines))
    assert sum(line.startswith("(left out") for line in lines) == 1


def test_who_may_not_read_the_journal_is_answered_from_its_own_view(
    pool: AlicesPool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As it is where no journal is to be seen; a journal that is named is read, or nothing is."""
    cast("Any", agent_place).lock_path.return_value = str(tmp_path / "state" / "agent.lock")
    (tmp_path / "state").mkdir()
    site = tmp_path / "site.ini"
    site.write_text(f"[agent]\nstate_dir = {tmp_path}/state\n[journal]\nfile = {tmp_path}/journal\nview = all\n")
    assert main(["reclaim", "--once", "--act", "--site", str(site)]) == 0
    capsys.readouterr()
    assert os.listdir(tmp_path / "state" / "agent.explain.d") == ["alice@pool.jsonl"]
    os.unlink(tmp_path / "journal")
    assert main(["explain", "slot1_1@node1", "--site", str(site)]) == 0
    out, err = capsys.readouterr()
    assert "slot1_1@node1: alice@pool of group_a" in out
    assert "from the views of single users" in err
    assert main(["explain", "slot1_1@node1", "--journal", f"{tmp_path}/journal", "--site", str(site)]) == 2
    site.write_text(site.read_text().replace("view = all", "view = no"))
    assert main(["explain", "slot1_9@node1", "--site", str(site)]) == 1
