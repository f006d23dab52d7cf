"""`drainwise`: find the command, run it, and turn a fault into one line and an exit code.

A command's module is imported only when it is asked for: on a worker node `drainwise features` needs the standard
library alone. Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted, 141 the reader of our output went away.
"""

from __future__ import annotations

import argparse
import errno
import importlib
import os
import sys
from collections.abc import Sequence

from drainwise import __version__
from drainwise.common.printable import printable
from drainwise.facts.errors import DrainwiseError

COMMANDS = {
    "status": "who is owed and uses what, and every pilot with its waste",
    "drain": "have nodes left by their pilots by a time, at the least waste",
    "plan": "what a reclaim cycle would do now, and why; what if N cores were needed",
    "snapshot": "print what is known of the pool as JSON",
    "reclaim": "order the pilots that cost least to give back cores that others are owed",
    "explain": "why a pilot got an order, each time, and what became of it",
    "report": "who got an order, left in time and was vacated, and what was promised and wasted",
    "local": "the embedded batch system: leases are processes on this machine",
    "features": "machine and job features: show, check, ask, serve",
    "estimate": "what tasks need, learned from their finished payloads; how far requests were off",
    "simulate": "what each way of taking cores back wastes, on a log of real jobs",
    "validate": "measure a request on 1, 2, 4 and 8 cores before it is submitted",
    "launch": "run a list of jobs with dependencies: on this machine or in a batch system",
    "pilot": "run payloads on leased cores, and tell the site what it would waste",
    "shutdown": "plan, change, cancel or show the shutdown of this machine that its jobs are notified of",
    "install": "put this package and a rendered tree in place on a machine where jobs run",
    "config": "write the batch system's configuration from the site file",
    "check": "inspect a live pool: what is missing or dangerous, with the line to add",
    "doctor": "what this machine is, has and runs, and what to do next; a bundle for a bug report",
}
"""The commands, each a module of this package with `add_parser(subparsers)` and `run(args)`."""

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}
_POOL_SIDE = {"numpy", "htcondor2", "classad2", "jinja2"}
_PACKAGES = {"htcondor2": "htcondor", "classad2": "htcondor"}
"""Packages that have another name for pip."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line (`sys.argv` by default) and return its exit code.

    Wrong usage, --help and --version leave by SystemExit, as argparse does.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    closed = _open_what_is_closed()
    try:
        code = _run_and_flush(words)
    except DrainwiseError as fault:
        return _say(str(fault), fault.exit_code)
    except ModuleNotFoundError as fault:
        if fault.name is None or fault.name.partition(".")[0] not in _POOL_SIDE:
            raise
        return _say(f"this command needs the Python package {fault.name}: {_installed_by(fault.name, words)}", 1)
    except ImportError as fault:
        if (fault.name or "").partition(".")[0] == "drainwise":
            raise
        why = next((line for line in map(str.strip, str(fault).splitlines()) if line), "no reason")
        version = ".".join(map(str, sys.version_info[:2]))
        what = f"a Python package cannot be loaded by {sys.executable}, Python {version}"
        return _say(f"{what}: {fault.name or 'one of numpy, jinja2, htcondor'}: {why}: install it for this Python", 1)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The interpreter would complain when it flushes what nobody reads.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 141
    except OSError as fault:
        if fault.filename is not None or fault.errno not in _NO_ROOM:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what is left, as above
        return _say(f"standard output cannot be written: {'it is closed' if closed else fault.strerror}", 1)
    return code


def _open_what_is_closed() -> bool:
    """Give a program that was started without standard output or error others in their places; whether output was."""
    closed = sys.stdout is None
    if closed:  # as if its disk were full: what is printed is missed, and no file of ours becomes descriptor 1
        sys.stdout = open("/dev/full", "w", encoding="utf-8")  # noqa: SIM115 - until the end
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    return closed


def _run_and_flush(words: Sequence[str]) -> int:
    try:
        return _run(words)
    finally:
        if not isinstance(sys.exc_info()[1], DrainwiseError):  # which is the better news
            sys.stdout.flush()


def _run(words: Sequence[str]) -> int:
    parser, subparsers = _parser()
    asked = next((word for word in words if not word.startswith("-")), None)
    module = None
    for name, text in COMMANDS.items():
        if name == asked:
            module = importlib.import_module(f"drainwise.cli.{name}")
            module.add_parser(subparsers)
        else:
            subparsers.add_parser(name, help=text)
    args = parser.parse_args(words, argparse.Namespace(words=tuple(words)))
    if module is None:
        parser.error("a command is needed")
    return int(module.run(args))


def _parser() -> tuple[argparse.ArgumentParser, argparse._SubParsersAction[argparse.ArgumentParser]]:
    parser = argparse.ArgumentParser(
        prog="drainwise", description="Pilots live long and still give their cores back quickly and cheaply."
    )
    parser.add_argument("--version", action="version", version=f"drainwise {__version__}")
    return parser, parser.add_subparsers(dest="command", metavar="COMMAND", required=True)


def whole_parser() -> argparse.ArgumentParser:
    """Return the parser with all commands and their options, for manual pages and completion."""
    parser, subparsers = _parser()
    for name in COMMANDS:
        importlib.import_module(f"drainwise.cli.{name}").add_parser(subparsers)
    return parser


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


def _say(text: str, code: int) -> int:
    print(f"drainwise: {printable(' '.join(text.split()))}", file=sys.stderr)
    return code
