"""The package on a node: complete, readable and compiled before it is used, and put in place in one step."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import drainwise
from drainwise.facts.errors import DrainwiseError, UsageError
from drainwise.install import package as node_package
from drainwise.install.package import put_in_place
from made_up_node import public_directory

pytestmark = pytest.mark.daemons  # the package is compiled each time

PYTHON = sys.executable if os.geteuid() != 0 else "/usr/bin/python3"
# Begins with the release in use, and imports the rest when it is told to.
SLOW = """
import sys
sys.path.append(sys.argv[1])
import drainwise
print("begun", flush=True)
sys.stdin.read()
import drainwise.node.hook
print(drainwise.node.hook.__file__)
"""


@pytest.fixture
def library() -> Iterator[str]:
    with public_directory() as base:
        yield f"{base}/share/drainwise"


def in_use(library: str) -> str:
    return os.path.dirname(os.path.realpath(f"{library}/drainwise"))


@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_everybody_can_read_all_of_it(library: str, umask: int) -> None:
    before = os.umask(umask)
    try:
        release = put_in_place(library, PYTHON)
        assert os.umask(umask) == umask
    finally:
        os.umask(before)
    assert release == in_use(library)
    for path in Path(library).rglob("*"):
        assert path.stat().st_mode & 0o777 == (0o755 if path.is_dir() else 0o644), path


def test_a_process_stays_with_the_release_it_began_with(library: str) -> None:
    """Its modules come from there, also those that it imports when another release has taken the place."""
    first = put_in_place(library, PYTHON)
    argv = [PYTHON, "-I", "-S", "-c", SLOW, library]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as slow:
        assert slow.stdout is not None and slow.stdout.readline() == "begun\n"
        second = put_in_place(library, PYTHON)
        out, _ = slow.communicate("")
    assert out == f"{first}/drainwise/node/hook.py\n"
    assert in_use(library) == second != first


def test_the_packages_beside_it_come_along(library: str) -> None:
    """Only this one is linked; the others are found in its release."""
    put_in_place(library, PYTHON)
    program = (
        f"import sys; sys.path.append({library!r}); from drainwise.cli.main import main; main(['launch', '--help'])"
    )
    ran = subprocess.run([PYTHON, "-I", "-c", program], cwd="/", capture_output=True, text=True, check=True)
    assert "--backend-options" in ran.stdout and os.listdir(library).count("drainwise_launch") == 0


def test_one_release_before_is_kept(library: str) -> None:
    releases = [put_in_place(library, PYTHON) for _ in range(3)]
    assert {f"{library}/releases/{name}" for name in os.listdir(f"{library}/releases")} == set(releases[1:])


@pytest.mark.parametrize("exchanges", [True, False])
def test_a_plain_directory_becomes_the_release_before(
    library: str, exchanges: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the file system cannot exchange two names."""
    if not exchanges:
        monkeypatch.setattr(node_package, "_exchange", lambda one, other: False)
    stale = Path(library, "drainwise", "stale.py")
    stale.parent.mkdir(parents=True)
    stale.touch()
    release = put_in_place(library, PYTHON)
    assert in_use(library) == release and not stale.exists()
    [before] = [name for name in os.listdir(f"{library}/releases") if f"{library}/releases/{name}" != release]
    assert os.listdir(f"{library}/releases/{before}/drainwise") == ["stale.py"]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another user")
def test_what_others_cannot_read_is_refused_and_nothing_changed(library: str) -> None:
    """A directory on the way to it is closed."""
    first = put_in_place(library, PYTHON)
    os.chmod(os.path.dirname(library), 0o700)
    with pytest.raises(DrainwiseError, match=r"jobs' users could not read .*open the directories on the way"):
        put_in_place(library, PYTHON)
    assert in_use(library) == first and len(os.listdir(f"{library}/releases")) == 1


@pytest.mark.parametrize(("python", "why"), [("/no/such", "No such file"), ("/bin/false", "expected Python 3.9")])
def test_a_wrong_python_is_named(library: str, python: str, why: str) -> None:
    with pytest.raises(UsageError, match=f"--python {python}: {why}"):
        put_in_place(library, python)
    assert not os.path.exists(library)


def test_a_module_that_cannot_be_compiled_is_refused(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    package = Path(library).parents[1] / "clone" / "drainwise"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("1 +\n")
    monkeypatch.setattr(drainwise, "__file__", str(package / "__init__.py"))
    with pytest.raises(DrainwiseError, match="cannot compile the package"):
        put_in_place(library, PYTHON)
    assert not os.path.lexists(f"{library}/drainwise")


def test_a_place_that_cannot_be_written_is_named() -> None:
    with pytest.raises(DrainwiseError, match=r"^/proc/nowhere: cannot be written: "):
        put_in_place("/proc/nowhere/drainwise", PYTHON)
