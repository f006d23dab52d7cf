"""`drainwise install`: what is written where, in which order, and what is kept."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pytest_mock import MockerFixture

from drainwise.cli import install
from drainwise.cli.main import main
from drainwise.facts.errors import DrainwiseError, UsageError
from drainwise.htcondor.setup.render import render as htcondor_render
from drainwise.install import expected_files
from drainwise.install.edited_files import signed
from drainwise.install.removal import AFTER_REMOVAL
from drainwise.install.rendered_tree import RenderedFile, read_tree, write_tree
from drainwise.siteconfig import HTCondorSection, SiteConfig, SlurmSection
from drainwise.slurm.setup.render import render as slurm_render

FILES = (
    RenderedFile("/etc/condor/config.d/50-drainwise-execute.conf", "A = 1\n"),
    RenderedFile("/etc/drainwise/node.conf", "hs06 = 1\n"),
    RenderedFile("/usr/libexec/drainwise/prepare-hook", "#!/bin/sh\n", 0o755),
)


@pytest.fixture(autouse=True)
def _no_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """That is tried in tests/test_node_package.py; and no tree is kept on this machine."""
    monkeypatch.setattr(install, "put_in_place", lambda library, python: f"{library}/releases/x")
    monkeypatch.setattr(expected_files, "KEPT", str(tmp_path / "kept"))


def test_a_tree_is_read_as_it_was_written(tmp_path: Path) -> None:
    """In the order of installing, whatever became of its modes: what HTCondor reads comes last."""
    write_tree(FILES, str(tmp_path))
    for place, _, names in os.walk(tmp_path):
        for name in names:
            os.chmod(f"{place}/{name}", os.stat(f"{place}/{name}").st_mode & 0o700)
    assert read_tree(str(tmp_path)) == tuple(reversed(FILES))


@pytest.mark.parametrize("fault", ["nothing", "link", "bytes"])
def test_a_tree_that_is_none_is_refused(tmp_path: Path, fault: str) -> None:
    if fault == "link":
        (tmp_path / "a").symlink_to("/etc/passwd")
    elif fault == "bytes":
        (tmp_path / "a").write_bytes(b"\xff")
    with pytest.raises(UsageError, match=str(tmp_path)):
        read_tree(str(tmp_path))


def test_directories_of_ours_are_opened_and_others_named(tmp_path: Path) -> None:
    """They were made under a umask of 077; what is not ours stays as it is, as does what HTCondor reads."""
    for name in ("etc/drainwise", "etc/condor", "usr/libexec/drainwise"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name).chmod(0o700)
    install.open_to_users(FILES, str(tmp_path))
    modes = [
        (tmp_path / name).stat().st_mode & 0o777 for name in ("etc/drainwise", "etc/condor", "usr/libexec/drainwise")
    ]
    assert modes == [0o755, 0o700, 0o755]
    (tmp_path / "usr").chmod(0o750)
    with pytest.raises(DrainwiseError, match=f"chmod o\\+x {tmp_path}/usr$"):
        install.open_to_users(FILES, str(tmp_path))


@pytest.mark.parametrize("system", ["htcondor", "slurm"])
def test_a_tree_names_the_places(system: str) -> None:
    """Those of the site file it was rendered from: nobody has to say them again."""
    library, python = "/srv/lib", "/usr/bin/python3.9"
    site = SiteConfig(
        htcondor=HTCondorSection(library_dir=library, python=python),
        slurm=SlurmSection(library_dir=library, python=python),
    )
    files = htcondor_render(site, "execute") if system == "htcondor" else slurm_render(site, "node")
    assert install.places_in(files) == (library, python)
    assert install.places_in(()) == ("/usr/share/drainwise", "/usr/bin/python3")


def test_the_command_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And again; it can be run by everybody."""
    program = tmp_path / "bin" / "drainwise"
    for _ in range(2):
        assert main(["install", "--library", str(tmp_path / "lib"), "--command", str(program)]) == 0
        assert f"wrote {program}\n" in capsys.readouterr().out
        assert program.stat().st_mode & 0o777 == 0o755
        assert f'"{tmp_path}/lib"' in program.read_text()


@pytest.mark.parametrize("words", [[], ["--files-only"], ["--command", "/no/such"], ["--python", "/no/such"]])
def test_without_a_word_on_what_to_install_it_says_what_there_is(
    words: list[str], capsys: pytest.CaptureFixture[str], mocker: MockerFixture
) -> None:
    """And puts nothing in place: who looks what the command does must not have drainwise in /usr by it."""
    put = mocker.patch.object(install, "_put_package", autospec=True)
    with pytest.raises(SystemExit) as ended:
        main(["install", *words])
    out, err = capsys.readouterr()
    assert (ended.value.code, out) == (2, "") and err.startswith("drainwise install: error: ")
    [line] = err.splitlines()
    assert "--tree DIR" in line and not put.called


def test_a_removal_says_what_stays_for_running_jobs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], mocker: MockerFixture
) -> None:
    """And until when; it does not fail for that."""
    mocker.patch.object(install, "live_configuration", autospec=True, return_value="")
    mocker.patch.object(install, "may_have_orders", autospec=True, return_value=True)
    stays, tree = f"{tmp_path}/node/{AFTER_REMOVAL}", str(tmp_path / "tree")
    files = [signed(RenderedFile(path, "A = 1\n")) for path in (stays, f"{tmp_path}/node/a")]
    for out in (tree, "/"):
        write_tree(files, out)
    assert main(["install", "--remove", "--files-only", "--tree", tree]) == 0
    assert f"{stays}: stays" in capsys.readouterr().err
    assert os.listdir(tmp_path / "node") == [AFTER_REMOVAL]


@pytest.mark.parametrize("kind", ["link", "file"])
def test_another_program_is_kept(tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    """On a central machine that runs jobs, too, the command there can do more."""
    program, other = tmp_path / "drainwise", tmp_path / "other"
    other.write_text("#!/bin/sh\n")
    program.symlink_to(other) if kind == "link" else other.rename(program)
    assert main(["install", "--library", str(tmp_path / "lib"), "--command", str(program)]) == 0
    assert f"kept {program}" in capsys.readouterr().out
    assert program.read_text() == "#!/bin/sh\n"


def test_what_a_person_has_edited_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """On the node as well: the new one lies beside it, and the command ends with 1; what was rendered is replaced."""
    node, tree, words = tmp_path / "node", tmp_path / "tree", ["--library", str(tmp_path / "lib")]
    words = ["install", "--tree", str(tree), *words, "--command", str(tmp_path / "drainwise")]
    for text in ("one\n", "two\n"):
        write_tree([signed(RenderedFile(f"{node}/{name}", text)) for name in ("a", "b")], str(tree))
        assert main(words) == 0
        assert (node / "a").read_text() == signed(RenderedFile("", text)).text
    (node / "a").write_text("mine\n")
    write_tree([signed(RenderedFile(f"{node}/{name}", "three\n")) for name in ("a", "b")], str(tree))
    capsys.readouterr()
    assert main(words) == 1
    assert f"{node}/a was edited by hand" in capsys.readouterr().err
    assert (node / "a").read_text() == "mine\n"
    three = signed(RenderedFile("", "three\n")).text
    assert (node / ".a.rendered").read_text() == (node / "b").read_text() == three
