"""Any fault as one line for a person and an exit code: no traceback reaches a user."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence

from drainwise.facts.errors import DrainwiseError

VARIABLE = "DRAINWISE_TRACEBACK"
"""The variable of the environment that shows the traceback of a fault of our own."""

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF, errno.EAGAIN}
_POOL_SIDE = frozenset({"numpy", "htcondor2", "classad2", "jinja2", "prometheus_client"})
"""The packages that only some commands need."""
_PACKAGES = {"htcondor2": "htcondor", "classad2": "htcondor"}
"""Packages that have another name for pip."""


def is_of_output(fault: BaseException) -> bool:
    """Return whether standard output could not be written: a fault of a file names it."""
    return isinstance(fault, OSError) and fault.filename is None and fault.errno in _NO_ROOM


def in_words(fault: Exception, words: Sequence[str], closed: bool) -> tuple[str, int]:
    """Return what a person gets to read of a fault, and the exit code.

    words: the command line. closed: whether the program was started without standard output.
    """
    if isinstance(fault, DrainwiseError):
        return str(fault), fault.exit_code
    if isinstance(fault, ImportError):
        text = _not_imported(fault, words)
        if text:
            return text, 1
    if isinstance(fault, OSError):
        if is_of_output(fault):
            return f"standard output cannot be written: {'it is closed' if closed else fault.strerror}", 1
        if fault.filename is not None:
            return f"{os.fsdecode(fault.filename)!r}: {fault.strerror}", 1
    return _of_our_own(fault), 1


def _not_imported(fault: ImportError, words: Sequence[str]) -> str:
    """Return what to install; "" where it is not a package of others that is missed."""
    name = fault.name or ""
    if isinstance(fault, ModuleNotFoundError):
        missing = name.partition(".")[0] in _POOL_SIDE
        return f"this command needs the Python package {name}: {_installed_by(name, words)}" if missing else ""
    if name.partition(".")[0] == "drainwise":
        return ""
    why = next((line for line in map(str.strip, str(fault).splitlines()) if line), "no reason")
    version = ".".join(map(str, sys.version_info[:2]))
    what = f"a Python package cannot be loaded by {sys.executable}, Python {version}"
    return f"{what}: {name or 'one of numpy, jinja2, htcondor'}: {why}: install it for this Python"


def _installed_by(package: str, words: Sequence[str]) -> str:
    """Return the command for a missing package: the extra of the batch system that was named, else any that has it.

    Where pip has not installed drainwise itself, as on a machine of `drainwise install`, its extras are of no use.
    """
    from importlib.metadata import PackageNotFoundError, distribution

    from drainwise.systems.find import OWN, own

    name = package.partition(".")[0]
    try:
        distribution("drainwise")
    except PackageNotFoundError:
        return f"install {_PACKAGES.get(name, name)} for {sys.executable}, from the distribution or by pip"
    asked = {word.rpartition("=")[2] for word in words}
    systems = [system for system in map(own, OWN) if system.extra]
    chosen = [one for one in systems if name in one.packages] or [one for one in systems if one.name in asked]
    extras = ["simulate"] if "simulate" in words else [one.extra for one in chosen or systems]
    return " or ".join(f"pip install 'drainwise[{extra}]'" for extra in extras)


def _of_our_own(fault: Exception) -> str:
    """Return a line on a fault that nobody foresaw, with its place in the package."""
    import traceback

    frames = traceback.extract_tb(fault.__traceback__)
    place = f", at {os.path.basename(frames[-1].filename)}:{frames[-1].lineno}" if frames else ""
    what = f"a fault of drainwise itself: {type(fault).__name__}: {str(fault)[:300]}{place}"
    return f"{what}: please report it with what {VARIABLE}=1 shows, and the bundle of `drainwise doctor --bundle FILE`"
