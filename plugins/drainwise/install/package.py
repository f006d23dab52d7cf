"""This package on a machine where hooks run: unpacked beside what is there, compiled, tried, then put in its place.

    LIBRARY/drainwise               a link to the release in use; hooks have LIBRARY in their path
    LIBRARY/releases/VERSION.…/     one release, as it was unpacked; the one before it is kept

The link changes in one step, and a process that has begun with one release stays with it (`drainwise.__path__`): no
hook meets half a tree, modules of two releases, or a module that is no more. Needs no pip and no network.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from typing import Any

import drainwise
from drainwise.common.local_file import Held, make_public
from drainwise.common.neighbours import PACKAGES
from drainwise.facts.errors import DrainwiseError, UsageError

_PACKAGE = "drainwise"
_PACKAGES = {_PACKAGE, *PACKAGES.values()}
_RELEASES = "releases"
_NOBODY = 65534
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2
# As a job's user does it: what this user cannot read the hooks cannot read either.
_TRIAL = "import sys; sys.path.insert(0, sys.argv[1]); import drainwise.node.hook, drainwise.pilotad.node_reader"
_COMMAND = '''\
#!{python} -I
"""The command drainwise of this machine; written by `drainwise install`."""
import sys

# In the second: what the distribution does not have, or too old, such as HTCondor's bindings.
sys.path[:0] = ["{library}", "/usr/local/lib/drainwise"]
try:
    from drainwise.cli.main import main
except ImportError as fault:
    sys.exit(f"drainwise: {{fault}}: the package is not in {library}, or is broken: install it again (docs/install.md)")

sys.exit(main())
'''


def put_in_place(library: str, python: str) -> str:
    """Put the running package into the directory `library`, compiled by the interpreter `python`; its directory there.

    Whatever the umask is, everybody can read it. The release that was in use before stays until the next call. Raises
    UsageError when `python` is none, or too old; DrainwiseError when the package cannot be written or read by others.
    Nothing that is in use has been changed then.
    """
    _must_be_python(python)
    before = os.umask(0o022)
    try:
        make_public(library)
        os.chmod(library, 0o755)  # noqa: S103 - an earlier installation may have made it private
        with _alone_in(library):
            release = _unpacked(library)
            try:
                # Compiled, as hooks run as users who cannot keep what they compile.
                compiled = _run([python, "-I", "-m", "compileall", "-q", release])
                if compiled.returncode != 0:
                    raise DrainwiseError(f"{python} cannot compile the package: {_last_line(compiled)}")
                _try(release, python)
            except DrainwiseError:
                shutil.rmtree(release)
                raise
            former = _switch(library, release)
            _tidy(library, {release, former})
            return release
    except OSError as fault:
        raise DrainwiseError(f"{fault.filename or library}: cannot be written: {fault.strerror or fault}") from None
    finally:
        os.umask(before)


def command_text(library: str, python: str) -> str:
    """Write the program `drainwise` for a machine with the package in `library`."""
    return _COMMAND.format(python=python, library=library)


def _must_be_python(python: str) -> None:
    """Raise UsageError unless it is an interpreter that can run the package."""
    old_enough = "import sys; sys.exit(sys.version_info < (3, 9))"
    try:
        code = _run([python, "-I", "-S", "-c", old_enough]).returncode
    except OSError as fault:
        raise UsageError(f"--python {python}: {fault.strerror}; name a Python 3.9 or later") from None
    if code != 0:
        raise UsageError(f"--python {python}: expected Python 3.9 or later")


@contextlib.contextmanager
def _alone_in(library: str) -> Iterator[None]:
    """Wait until no other process installs here."""
    with Held(os.open(library, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)) as descriptor:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield


def _unpacked(library: str) -> str:
    """Unpack the running package and its neighbours, from a wheel or a directory, into a new directory."""
    releases = os.path.join(library, _RELEASES)
    make_public(releases)
    release = tempfile.mkdtemp(prefix=f"{drainwise.__version__}.", dir=releases)
    os.chmod(release, 0o755)  # noqa: S103 - mkdtemp made it private
    archive = os.path.dirname(os.path.dirname(os.path.realpath(drainwise.__file__)))
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as wheel:
            wheel.extractall(release, [name for name in wheel.namelist() if name.partition("/")[0] in _PACKAGES])
    else:
        for name in filter(os.path.isdir, (os.path.join(archive, package) for package in _PACKAGES)):
            shutil.copytree(
                *(name, os.path.join(release, os.path.basename(name))),
                ignore=shutil.ignore_patterns("__pycache__"),
                copy_function=shutil.copyfile,
            )
        for directory, _, _ in os.walk(release):
            os.chmod(directory, 0o755)  # noqa: S103 - copytree copies the modes of directories
    return release


def _try(release: str, python: str) -> None:
    """Raise DrainwiseError unless a user without any rights can run what lies there; left out unless we are root."""
    if os.geteuid() != 0:
        return
    nobody: dict[str, Any] = {"user": _NOBODY, "group": _NOBODY, "extra_groups": [], "cwd": "/"}
    ran = _run([python, "-I", "-S", "-c", _TRIAL, release], **nobody)
    if ran.returncode != 0:
        raise DrainwiseError(
            f"jobs' users could not read {release} ({_last_line(ran)}): open the directories on the way to it (chmod"
            f" 755), and see that they may run {python}"
        )


def _run(words: Sequence[str], **more: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, check=False, capture_output=True, text=True, **more)


def _last_line(ran: subprocess.CompletedProcess[str]) -> str:
    return ((ran.stderr or ran.stdout).strip().splitlines() or [f"code {ran.returncode}"])[-1]


def _switch(library: str, release: str) -> str:
    """Make `release` the one in use; the directory of the one before it, "" when there was none."""
    place, new = os.path.join(library, _PACKAGE), os.path.join(library, f".{_PACKAGE}.new")
    with contextlib.suppress(FileNotFoundError):
        os.unlink(new)  # left by a call that was killed
    os.symlink(os.path.join(_RELEASES, os.path.basename(release), _PACKAGE), new)
    if os.path.islink(place) or not os.path.exists(place):
        former = os.path.dirname(os.path.realpath(place)) if os.path.islink(place) else ""
        os.rename(new, place)
        return former
    # A directory, as `pip install --target` made it: it becomes a release like the others.
    former = os.path.join(library, _RELEASES, f"before.{os.path.basename(release)}")
    os.mkdir(former)
    aside = os.path.join(former, _PACKAGE)
    if _exchange(new, place):
        os.rename(new, aside)
    else:  # the file system cannot: for some microseconds there is none, and a hook that begins then does nothing
        os.rename(place, aside)
        os.rename(new, place)
    return former


def _exchange(one: str, other: str) -> bool:
    """Let two names change places in one step; False where the system cannot."""
    renameat2 = getattr(ctypes.CDLL(None), "renameat2", None)
    if renameat2 is None:
        return False
    done: int = renameat2(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), ctypes.c_uint(_RENAME_EXCHANGE))
    return done == 0


def _tidy(library: str, kept: set[str]) -> None:
    """Remove the releases that are not `kept`, and what pip wrote beside the package."""
    releases = os.path.join(library, _RELEASES)
    for name in os.listdir(releases):
        if os.path.join(releases, name) not in {os.path.normpath(one) for one in kept}:
            shutil.rmtree(os.path.join(releases, name))
    for name in os.listdir(library):
        if name.startswith(f"{_PACKAGE}-") and name.endswith(".dist-info"):
            shutil.rmtree(os.path.join(library, name))
            with contextlib.suppress(OSError):  # not there, or not the only one
                os.unlink(os.path.join(library, "bin", _PACKAGE))
                os.rmdir(os.path.join(library, "bin"))


def take_away(library: str) -> None:
    """Remove the releases below the directory `library`, and the link to the one in use.

    Nothing else is touched. Raises DrainwiseError for what cannot be removed.
    """
    try:
        for name in (_PACKAGE, f".{_PACKAGE}.new"):
            if os.path.islink(os.path.join(library, name)):
                os.unlink(os.path.join(library, name))
        releases = os.path.join(library, _RELEASES)
        if os.path.isdir(releases) and not os.path.islink(releases):
            shutil.rmtree(releases)
    except OSError as fault:
        raise DrainwiseError(f"{fault.filename or library}: cannot be removed: {fault.strerror}") from None
