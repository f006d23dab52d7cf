"""What a doctor finds on a machine: files, packages, processes, each in disorder too."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import drainwise
from drainwise.doctor.facts import CLONE, RenderedFact
from drainwise.doctor.looks import (
    AGENT,
    NODE_AGENT,
    SERVER,
    installation,
    name_of,
    release_version,
    rendered_fact,
    rendered_files,
    running_processes,
)
from drainwise.install.edited_files import STUB, signed
from drainwise.install.expected_files import ExpectedFiles
from drainwise.install.rendered_tree import RenderedFile

HOOK = "#!/bin/sh\n# The prolog; rendered from /etc/drainwise/site.ini.\nexit 0\n"
SIGNED = signed(RenderedFile("/hook", HOOK)).text
VERSION = drainwise.__version__
EXPECTED = ExpectedFiles((RenderedFile("/srv/dw/hook", SIGNED, 0o755),), "drainwise install")


@pytest.mark.parametrize(
    ("text", "today", "fact"),
    [
        (SIGNED, None, RenderedFact("/h", "/etc/drainwise/site.ini", VERSION)),
        (
            SIGNED,
            HOOK.replace("site.ini", "other.ini"),
            RenderedFact("/h", "/etc/drainwise/site.ini", VERSION, differs=False),
        ),
        (SIGNED, HOOK + "exit 1\n", RenderedFact("/h", "/etc/drainwise/site.ini", VERSION, differs=True)),
        (SIGNED + "true\n", None, RenderedFact("/h", "/etc/drainwise/site.ini", VERSION, edited=True)),
        ("# rendered from the defaults.\n", None, RenderedFact("/h", "the defaults")),
        (STUB, None, RenderedFact("/h", stub=True)),
        ("DRAINWISE_ENABLED = True\n", None, None),
    ],
    ids=["as rendered", "of another site file", "of another text", "edited", "unsigned", "stub", "the site's own"],
)
def test_a_file_says_what_it_comes_from(text: str, today: str | None, fact: RenderedFact | None) -> None:
    """Comments do not count: they name the site file. What was not rendered is none of ours."""
    assert rendered_fact("/h", text, today) == fact


def test_the_name_of_the_site_file_makes_no_difference() -> None:
    """Programs in Python name it in their docstring."""
    hook = '#!/usr/bin/python3 -IS\n"""The cron; rendered from the defaults."""\nimport sys\n'
    fact = rendered_fact("/h", hook, hook.replace("the defaults", "/etc/drainwise/site.ini"))
    assert fact is not None and fact.differs is False
    assert rendered_fact("/h", hook, hook.replace("sys", "os")) == RenderedFact("/h", "the defaults", differs=True)


def test_rendered_files_are_found_where_they_lie_and_where_the_site_file_puts_them(tmp_path: Path) -> None:
    for path, text in (
        ("etc/drainwise/node.conf", SIGNED),
        ("srv/dw/hook", SIGNED),
        ("etc/drainwise/x.conf", "mine\n"),
    ):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
        (tmp_path / path).chmod(0o755)
    (tmp_path / "etc/drainwise/dir.conf").mkdir()
    (tmp_path / "etc/drainwise/loop.conf").symlink_to("loop.conf")
    found = list(rendered_files([EXPECTED], root=str(tmp_path)))
    assert [(one.path, one.differs) for one in found] == [("/etc/drainwise/node.conf", None), ("/srv/dw/hook", False)]


def gone(hook: Path) -> None:
    hook.unlink()


def a_pipe(hook: Path) -> None:
    hook.unlink()
    os.mkfifo(hook)


def not_for_all(hook: Path) -> None:
    hook.chmod(0o700)


def for_others(hook: Path) -> None:
    hook.chmod(0o777)


def below_others(hook: Path) -> None:
    hook.parent.chmod(0o777)


def a_users(hook: Path) -> None:
    os.chown(hook, 1, 1)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: the files are root's")
@pytest.mark.parametrize(
    ("harm", "fault", "command"),
    [
        (gone, "No such file", "drainwise install"),
        (a_pipe, "not a file", "drainwise install"),
        (not_for_all, "mode 0700", "chmod 755 /srv/dw/hook"),
        (for_others, "others than root", "chown root:root /srv/dw/hook; chmod 755 /srv/dw/hook"),
        (a_users, "others than root", "chown root:root /srv/dw/hook; chmod 755 /srv/dw/hook"),
        (below_others, "/srv/dw above it", "chown root:root /srv/dw; chmod go-w /srv/dw"),
    ],
)
def test_a_file_that_is_expected_and_of_no_use_is_named_with_what_mends_it(
    tmp_path: Path, harm: Callable[[Path], None], fault: str, command: str
) -> None:
    """Where others of them are there: on a machine that has none nothing is missing."""
    for path in ("etc/drainwise/node.conf", "srv/dw/hook"):
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).write_text(SIGNED)
        (tmp_path / path).chmod(0o755)
    assert [one.fault for one in rendered_files([EXPECTED], root=str(tmp_path))] == ["", ""]
    harm(tmp_path / "srv/dw/hook")
    [found] = [one for one in rendered_files([EXPECTED], root=str(tmp_path)) if one.fault]
    assert fault in found.fault and found.command == command
    assert found.is_dangerous == ("other" in found.fault or "above" in found.fault)
    assert list(rendered_files([EXPECTED], root=str(tmp_path / "empty"))) == []


def test_the_release_of_the_hooks_is_read_without_running_it(tmp_path: Path) -> None:
    assert release_version(str(tmp_path)) == ""
    package = tmp_path / "drainwise"
    package.mkdir()
    (package / "__init__.py").write_text('"""x"""\n\n__version__ = "0.0.7"\nraise SystemExit\n')
    seen = installation(str(tmp_path))
    assert (seen.version, seen.kind, seen.release, seen.unreadable) == (VERSION, CLONE, "0.0.7", str(tmp_path))
    (package / "__init__.py").write_bytes(b"\xff\xfe")
    assert release_version(str(tmp_path)) == ""


@pytest.mark.parametrize(
    ("comm", "line", "name"),
    [
        (b"condor_negotiat\n", b"condor_negotiator\0-f\0", "condor_negotiator"),
        (b"slurmd\n", b"/usr/sbin/slurmd\0-D\0", "slurmd"),
        (b"slurmstepd\n", b"slurmstepd: [1]\0", ""),
        (b"python3\n", b"/usr/bin/python3\0-I\0/usr/bin/drainwise\0reclaim\0--loop\0--pool\0slurm\0", AGENT),
        (b"drainwise\n", b"/usr/bin/python3\0-I\0/usr/bin/drainwise\0reclaim\0--once\0", ""),
        (b"slurm-agent\n", b"/usr/bin/python3\0-IS\0/usr/libexec/drainwise/slurm-agent\0", NODE_AGENT),
        (b"drainwise\n", b"/usr/bin/python3\0-I\0/usr/bin/drainwise\0features\0serve\0/run\0", SERVER),
        (b"vi\n", b"vi\0drainwise\0", ""),
        (b"\xff\n", b"", ""),
    ],
)
def test_a_process_is_known_by_its_name_or_its_words(comm: bytes, line: bytes, name: str) -> None:
    assert name_of(comm, line) == name


def test_the_eldest_of_a_daemon_counts_with_its_age(tmp_path: Path) -> None:
    (tmp_path / "uptime").write_text("1000.00 1.0\n")
    tick = os.sysconf("SC_CLK_TCK")
    for number, begun in ((40, 900), (41, 400), (42, 950)):
        place = tmp_path / str(number)
        place.mkdir()
        (place / "comm").write_text("slurmd\n")
        (place / "cmdline").write_bytes(b"slurmd\0")
        fields = ["S", *["0"] * 18, str(begun * tick), "0"]
        (place / "stat").write_text(f"{number} (a) b) {' '.join(fields)}\n")
    (tmp_path / "43").mkdir()  # has gone meanwhile
    assert [(one.name, one.pid, one.age) for one in running_processes(str(tmp_path))] == [("slurmd", 41, 600)]


@pytest.mark.daemons  # it takes its time
def test_it_runs_with_the_standard_library_alone() -> None:
    """As on a node: without what is installed beside Python, and with nothing of drainwise's on the machine."""
    plugins = str(Path(drainwise.__path__[0]).parent)
    program = f"import sys; sys.path.insert(0, {plugins!r}); from drainwise.cli.main import main; sys.exit(main())"
    command = ["/usr/bin/python3", "-I", "-S", "-B", "-c", program, "doctor", "--site", "/does/not/exist", "--json"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (ran.returncode, ran.stderr) == (2, ""), ran.stdout
    assert '"site_fault": "' in ran.stdout
    assert sys.version_info >= (3, 9)
