"""`drainwise config`: what a machine needs, printed or installed; a wrong site file writes nothing."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from drainwise.cli.config import example, markdown
from drainwise.cli.main import main
from drainwise.htcondor.setup.render import render
from drainwise.siteconfig import load
from drainwise.slurm.setup.render import render as render_slurm


@pytest.fixture
def site(tmp_path: Path) -> Path:
    file = tmp_path / "site.ini"
    file.write_text("[features]\nwall_limit = 3d\n[htcondor]\nnegotiator_policy = least-waste\n")
    return file


@pytest.mark.parametrize("role", ["execute", "access", "central", "all"])
def test_each_file_is_printed_under_a_header(role: str, site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without --out everything goes to standard output, in the order of installation."""
    assert main(["config", "htcondor", "--role", role, "--site", str(site)]) == 0
    expected = "".join(
        f"##### {file.path} (mode {file.mode:04o})\n{file.text}" for file in render(load(str(site)), role)
    )
    assert capsys.readouterr().out == expected


def test_a_tree_is_written_and_told(site: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With --out the files lie where a machine has them, and each is named."""
    out = tmp_path / "out"
    assert main(["config", "htcondor", "--role", "execute", "--site", str(site), "--out", str(out)]) == 0
    written = capsys.readouterr().out.split()[1::2]
    assert written == [f"{out}{file.path}" for file in render(load(str(site)), "execute")]
    assert all(Path(path).is_file() for path in written)
    assert written[-1].endswith("/etc/condor/config.d/50-drainwise-execute.conf")


def test_a_wrong_site_file_writes_nothing(site: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The fault is told with its place, the exit code is 2, and not even a directory is made."""
    site.write_text("[htcondor]\ncron_period = 60\n")
    out = tmp_path / "out"
    assert main(["config", "htcondor", "--role", "all", "--site", str(site), "--out", str(out)]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith(f"drainwise: {site}:2: [htcondor] cron_period = '60': expected a duration from")
    assert not out.exists()


def test_a_tree_that_cannot_be_written_is_wrong_usage(
    site: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file in the way: one line that names it."""
    (tmp_path / "etc").write_text("in the way")
    assert main(["config", "htcondor", "--role", "execute", "--site", str(site), "--out", str(tmp_path)]) == 2
    assert f"drainwise: {tmp_path}/etc" in capsys.readouterr().err


def test_a_site_file_that_is_not_there_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No defaults are taken for a file that was named and does not exist."""
    assert main(["config", "htcondor", "--role", "execute", "--site", str(tmp_path / "none.ini")]) == 2
    assert f"{tmp_path}/none.ini: 'No such file or directory'" in capsys.readouterr().err


@pytest.mark.parametrize("role", ["node", "controller", "all"])
def test_the_files_of_a_slurm_machine(
    role: str, site: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Printed, or written where a machine has them, slurm.conf's lines last; the hooks can be run."""
    files = render_slurm(load(str(site)), role)
    new = ["--site", str(site), "--live", "none"]
    assert main(["config", "slurm", "--role", role, *new]) == 0
    expected = "".join(f"##### {file.path} (mode {file.mode:04o})\n{file.text}" for file in files)
    assert capsys.readouterr().out == expected
    out = tmp_path / "out"
    assert main(["config", "slurm", "--role", role, *new, "--out", str(out)]) == 0
    written = capsys.readouterr().out.split()[1::2]
    assert written == [f"{out}{file.path}" for file in files]
    assert written[-1] == f"{out}/etc/slurm/drainwise.conf"
    assert [os.access(path, os.X_OK) for path in written] == [file.mode == 0o755 for file in files]


def test_without_slurms_answer_nothing_is_written(
    site: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What the cluster has could be replaced: wrong usage, and the words say what to do."""
    site.write_text(f"[slurm]\nbin_dir = {tmp_path}/bin\n")
    words = ["config", "slurm", "--role", "all", "--site", str(site), "--out", str(tmp_path / "out")]
    assert main(words) == 2
    assert "give its output by --live FILE (--live none: a new cluster)" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("system", "role"), [("htcondor", "execute"), ("slurm", "node")])
def test_an_edited_file_is_kept_and_named(
    system: str, role: str, site: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command ends with 1 until somebody has looked; then with 0 again."""
    words = ["config", system, "--role", role, "--site", str(site), "--out", str(tmp_path / "out")]
    words += ["--live", "none"] if system == "slurm" else []
    assert main(words) == 0
    last = Path(capsys.readouterr().out.split()[-1])
    rendered = last.read_text()
    last.write_text(f"{rendered}# mine\n")
    assert main(words) == 1
    beside = last.parent / f".{last.name}.rendered"
    shown = capsys.readouterr().err
    assert shown.startswith(f"drainwise: {last} was edited by hand")
    assert f"compare it with {beside}, and put that in its place" in shown
    assert last.read_text() == f"{rendered}# mine\n"
    beside.rename(last)
    assert main(words) == 0


@pytest.mark.parametrize("system", ["htcondor", "slurm"])
@pytest.mark.parametrize("words", [["--role", "worker"], [], ["--role"]])
def test_wrong_words_are_wrong_usage(system: str, words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """The role must be named, and be one of them."""
    with pytest.raises(SystemExit) as ended:
        main(["config", system, *words])
    assert ended.value.code == 2
    assert "--role" in capsys.readouterr().err


def test_the_table_of_keys_and_the_example_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """Documentation and code have one source."""
    assert main(["config", "keys"]) == 0
    assert capsys.readouterr().out == markdown()
    assert main(["config", "example"]) == 0
    assert capsys.readouterr().out == example()


def test_all_faults_of_the_site_file_are_shown_at_once(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """File and line, key, value and what to write instead; other commands name the first and count the others."""
    site.write_text("[reclaim]\ngrace = 90\nnonsense\nmargin = 1h\n[agnt]\nact = yes\n")
    assert main(["config", "check", "--site", str(site)]) == 1
    out, err = capsys.readouterr()
    first, second, third, last = out.splitlines()
    assert first.startswith(f"{site}:2: [reclaim] grace = '90': expected a duration from 5s to 30d with its unit")
    assert second == f"{site}:3: [reclaim] 'nonsense': expected key = value"
    assert third == f"{site}:5: '[agnt]': expected [agent]"
    assert last.startswith(f"{site}: 3 faults; 2 keys are set, ")
    assert err == ""
    assert main(["config", "htcondor", "--role", "all", "--site", str(site)]) == 2
    assert capsys.readouterr().err.endswith("(2 more: `drainwise config check` shows all)\n")


def test_every_value_is_shown_with_its_origin(
    site: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Default, line of the file, or environment; as JSON, too."""
    monkeypatch.setenv("DRAINWISE_LOCAL", str(tmp_path))
    assert main(["config", "check", "--show", "--site", str(site)]) == 0
    shown = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert f"wall_limit = 3d # {site}:2" in shown
    assert "cron_period = 1m # default" in shown and "hs06 = (left out) # default" in shown
    assert f"local batch system: {tmp_path} # environment: $DRAINWISE_LOCAL" in shown
    assert shown[-1].startswith(f"{site}: no fault; 2 keys are set, ")
    assert main(["config", "check", "--json", "--site", str(site)]) == 0
    found = json.loads(capsys.readouterr().out)
    values = {(one["section"], one["key"]): one for one in found["values"]}
    assert (found["version"], found["file"], found["faults"]) == (1, str(site), [])
    assert values["features", "wall_limit"] == {
        "section": "features",
        "key": "wall_limit",
        "value": "3d",
        "origin": "file",
        "line": 2,
    }
    assert values["features", "hs06"]["value"] is None and values["features", "hs06"]["origin"] == "default"


def test_without_a_site_file_the_defaults_are_right(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is named must be there."""
    monkeypatch.setattr("drainwise.cli.config.DEFAULT_SITE_FILE", "/no/site.ini")
    assert main(["config", "check"]) == 0
    assert capsys.readouterr().out.startswith("no site file /no/site.ini: no fault; 0 keys are set, ")
    assert main(["config", "check", "--site", "/no/other.ini"]) == 2
    assert "/no/other.ini: 'No such file or directory'" in capsys.readouterr().err


@pytest.mark.parametrize(("system", "role"), [("htcondor", "all"), ("slurm", "all")])
def test_what_would_change_is_shown_and_nothing_is_written(
    system: str, role: str, site: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ends with 1 where something would change, as diff does; what a person has edited is named."""
    out = tmp_path / "out"
    words = ["config", system, "--role", role, "--site", str(site), "--out", str(out)]
    words += ["--live", "none"] if system == "slurm" else []
    assert main([*words, "--diff"]) == 1
    shown = capsys.readouterr().out
    assert f"new file {out}/" in shown and not out.exists()
    assert main(words) == 0
    count = len(capsys.readouterr().out.splitlines())
    assert main([*words, "--diff"]) == 0
    assert capsys.readouterr().out == f"{out} is as it would be written: nothing would change\n"
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*")}
    assert main(words) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["unchanged"] * count
    assert {path: path.stat().st_mtime_ns for path in out.rglob("*")} == before
    site.write_text(site.read_text().replace("3d", "5d") + "[slurm]\nagent_period = 45s\n")
    program = next(path for path in sorted(before) if os.access(path, os.X_OK) and path.is_file())
    program.chmod(0o700)
    assert main([*words, "--diff"]) == 1
    shown = capsys.readouterr().out
    assert f"mode of {program}: 0700 -> 0755" in shown
    assert any(
        line.startswith("+") and ("45" in line or "5 * 86400" in line or "432000" in line)
        for line in shown.splitlines()
    )
    assert {path: path.stat().st_mtime_ns for path in out.rglob("*")} == before


def test_an_edited_file_would_be_kept(site: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["config", "htcondor", "--role", "execute", "--site", str(site), "--out", str(tmp_path / "out")]
    assert main(words) == 0
    last = Path(capsys.readouterr().out.split()[-1])
    last.write_text(last.read_text() + "# mine\n")
    assert main([*words, "--diff"]) == 1
    first, *lines = capsys.readouterr().out.splitlines()
    assert first == f"{last} was edited by hand: it would be kept, and {last.parent}/.{last.name}.rendered written"
    assert lines[-1] == "-# mine"


def test_a_difference_needs_a_tree(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "htcondor", "--role", "all", "--site", str(site), "--diff"]) == 2
    assert "--diff: give --out DIR" in capsys.readouterr().err
