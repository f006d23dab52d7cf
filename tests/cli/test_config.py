"""`drainwise config`: what a machine needs, printed or installed; a wrong site file writes nothing."""

from __future__ import annotations

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
