"""`drainwise validate REQUEST`: run it on one core, adjust what it claims, run it on more, say what to submit."""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import os
import re
import secrets
import sys
from collections.abc import Callable, Mapping
from functools import partial

from drainwise.cli.command_line.options import MAY, Command, option
from drainwise.cli.screen.layout import headings_of, standard_output, table
from drainwise.cli.text import show
from drainwise.common.printable import printable
from drainwise.facts.errors import ConfigurationError, UsageError
from drainwise.local.system import DIRECTORY_HELP, default_directory
from drainwise_launch.backend import LaunchPlace
from drainwise_launch.backends import opener, openers
from drainwise_tasks.validate import machine
from drainwise_tasks.validate.jobs import TAGS, RunJobs
from drainwise_tasks.validate.machine import Validation
from drainwise_tasks.validate.report import HEADINGS, as_json, rows, verdict
from drainwise_tasks.validate.request import Request, load_request
from drainwise_tasks.validate.run import kill_pointless, refuse_impossible, run_to_end
from drainwise_tasks.validate.start import NODE_PYTHON
from drainwise_tasks.validate.state import StateFile, read_state

STATE = ".state"
"""The suffix of the state file behind the name of the request."""
RUNS = ".runs"
"""The suffix of the directory of the runs behind the name of the state file."""
LOCAL = "local"
LOCAL_BATCH = "local-batch"
"""The name in `drainwise launch` of the batch system that is LOCAL here."""
HTCONDOR = "htcondor"
RESOURCES = "resources"
"""The key of such a table that is ours: what each run asks for beside cores and memory."""
_GROUP = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,199}")
_COMMAND_SECONDS = 60
"""For one question to HTCondor; a busy schedd takes its time, and a history is read from a file."""

Table = Mapping[str, object]


def _local_tables(account: str | None, directory: str | None) -> tuple[Table, Table]:
    table: Table = {"directory": directory or default_directory()}
    return {**table, "account": account} if account else table, {}


def _condor_tables(account: str | None, _: str | None) -> tuple[Table, Table]:
    if importlib.util.find_spec("htcondor2") is None:  # the one of its packages that pip installs
        raise ModuleNotFoundError("htcondor2", name="htcondor2")
    if account is not None and not _GROUP.fullmatch(account):
        expected = "expected an accounting group such as group_physics.production"
        raise UsageError(f"--account {account!r}: {expected}")
    table = {"check_slots": True, "fail_held": True, "command_seconds": _COMMAND_SECONDS}
    return table, {} if account is None else {"accounting_group": account}


TABLES: Mapping[str, Callable[[str | None, str | None], tuple[Table, Table]]] = {
    LOCAL_BATCH: _local_tables,
    HTCONDOR: _condor_tables,
}
"""Batch systems of which the command line says all: the backend's table, and what each run asks for.

By --account and --directory, beside cores and memory. What is not here takes both from the request.
"""
ACCOUNTS = {LOCAL: "the login name", HTCONDOR: "no group"}
"""The default of --account there, in words."""


def run(args: argparse.Namespace) -> int:
    """Validate to the end, or act as the options say; return the exit code. Raises UsageError, PoolError."""
    request = load_request(args.request)
    if args.backend is not None:
        opener(_launched(args.backend))
    if request.backends:
        known = [name for name in openers() if name not in {*TABLES, LOCAL}]
        for name in request.backends:
            if name not in known:
                raise ConfigurationError(args.request, "backends", name[:60], "a table", f"one of {', '.join(known)}")
    path = args.state or args.request + STATE
    if args.show:
        validation = _known(read_state(path), args.request)
    else:
        with StateFile(path) as state:
            validation = _act(args, request, state)
    show(args.json, "validation", lambda: as_json(validation), lambda: _lines(validation))
    return 1 if validation.state == machine.REFUSED else 0


def _act(args: argparse.Namespace, request: Request, state: StateFile) -> Validation:
    """Cancel, or begin where that is needed and run to the end."""
    from drainwise_launch.local_batch import doubt

    found = state.load()
    name = args.backend or (found.backend if found is not None else LOCAL)
    if found is not None and found.backend != name and not args.again:
        raise UsageError(f"{args.request}: its runs are in {found.backend}, not in {name}; --again begins a new one")
    if args.directory and name != LOCAL:
        raise UsageError(f"--directory goes with --backend {LOCAL}")
    if args.account is not None and _launched(name) not in TABLES:
        known = " and ".join(ACCOUNTS)
        raise UsageError(f"--account goes with {known}; {name} is set by [backends.{name}] of the request")
    with contextlib.closing(_jobs(name, args, request)) as jobs:
        if args.cancel:
            return _cancel(_known(found, args.request), state, jobs)
        if args.again and found is not None:
            with contextlib.closing(_jobs(found.backend, args, request)) as earlier:
                _cancel(found, state, earlier)
            found = None
        if found is None:
            refuse_impossible(request, jobs)
            found = machine.begin(request, f"{request.name}-{secrets.token_hex(6)}", name)
            state.save(found)
            why = doubt(request.cores if request.can_thread else ()) if name == LOCAL else ""
            if why:
                _say(why)
        elif found.request != request:
            raise UsageError(f"{args.request}: has changed since its validation began; --again begins a new one")
        return run_to_end(found, jobs, state.save, _say, jobs.wait)


def _known(found: Validation | None, file: str) -> Validation:
    if found is None:
        raise UsageError(f"{file}: no validation of it has begun")
    return found


def _jobs(name: str, args: argparse.Namespace, request: Request) -> RunJobs:
    """Return the runs as jobs of the batch system of that name; it is looked for when it is needed first."""
    runs = os.path.abspath((args.state or args.request + STATE) + RUNS)
    if _launched(name) in TABLES:
        table, resources = TABLES[_launched(name)](args.account, args.directory)
    else:
        named = dict(request.backends.get(name, {}))
        asked = named.pop(RESOURCES, {})
        if not isinstance(asked, dict):
            raise ConfigurationError(args.request, f"backends.{name}", RESOURCES, ascii(asked)[:60], "a table")
        table, resources = named, asked
    place = LaunchPlace(args.request, "validation", runs, TAGS)
    whose = f"{args.request}: [backends.{name}] {RESOURCES}"
    python = sys.executable if name == LOCAL else NODE_PYTHON
    return RunJobs(partial(opener(_launched(name)), table, "", place), runs, resources, whose, python)


def _launched(name: str) -> str:
    """Return the name of that batch system in `drainwise launch`."""
    return LOCAL_BATCH if name == LOCAL else name


def _cancel(found: Validation, state: StateFile, jobs: RunJobs) -> Validation:
    """End its jobs that still run."""
    validation = machine.cancelled(found, "cancelled")
    state.save(validation)
    kill_pointless(validation, jobs)
    return validation


def _say(text: str) -> None:
    print(f"drainwise: {printable(text)}", file=sys.stderr, flush=True)


def _lines(validation: Validation) -> list[str]:
    return [*table(headings_of(*HEADINGS), rows(validation), standard_output())[0], printable(verdict(validation))]


_ABOUT = "measure a request on 1, 2, 4 and 8 cores before it is submitted: time, size, memory, cores"
_ACCOUNTS = " or ".join(f"{name} (default: {default})" for name, default in ACCOUNTS.items())
COMMAND = Command(
    _ABOUT,
    (
        option("request REQUEST", "a TOML file, or JSON where its name ends in .json"),
        option("--state FILE", f"what is known so far (default: REQUEST{STATE})"),
        option("--backend NAME", f"where its runs are jobs (default: as it began, else {LOCAL})"),
        option("--account NAME", f"whose quota its runs use, in {_ACCOUNTS}"),
        option("--directory DIR", DIRECTORY_HELP),
        option("--again", "begin anew; what still runs of the last time is ended", one_of=MAY),
        option("--cancel", "end what runs; the validation has failed then", one_of=MAY),
        option("--show", "show what is known so far, and start nothing", one_of=MAY),
        option("--json", "print JSON"),
    ),
    run,
    f"{_ABOUT}. Ends with 0 when it has passed, 1 when it has failed. Interrupted or killed, it goes on where it was"
    " when it is run again.",
)
