"""`drainwise validate REQUEST`: run it on one core, adjust what it claims, run it on more, say what to submit."""

from __future__ import annotations

import argparse
import getpass
import importlib
import importlib.util
import os
import secrets
import sys
import time
from functools import partial

from drainwise.cli.layout import Heading, standard_output, table
from drainwise.cli.local_directory import add_directory, default_directory
from drainwise.cli.text import json_text, printable
from drainwise.errors import ConfigurationError, UsageError
from drainwise.estimate import validation_machine as machine
from drainwise.estimate.validation_backend import Backend
from drainwise.estimate.validation_file import load_request
from drainwise.estimate.validation_machine import Validation
from drainwise.estimate.validation_report import HEADINGS, as_json, rows, verdict
from drainwise.estimate.validation_request import Request
from drainwise.estimate.validation_run import kill_pointless, refuse_impossible, run_to_end
from drainwise.estimate.validation_state import StateFile, read_state

STATE = ".state"
"""What the name of the state file has behind that of the request."""
RUNS = ".runs"
"""What the name of the directory of the runs of other batch systems has behind that of the state file."""
LOCAL, HTCONDOR = "local", "htcondor"
LAUNCHED = ("slurm", "sge")
"""Batch systems that are those of `drainwise launch`, told what they need by a table of the request."""
RESOURCES = "resources"
"""The key of such a table that is ours: what each run asks for beside cores and memory."""
_CUTTABLE = "remark"


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    text = "measure a request on 1, 2, 4 and 8 cores before it is submitted: time, size, memory, cores"
    parser = subparsers.add_parser(
        "validate",
        help=text,
        description=f"{text}. Ends with 0 when it has passed, 1 when it has failed. Interrupted or killed, it goes on"
        " where it was when it is run again.",
    )
    parser.add_argument("request", metavar="REQUEST", help="a TOML file, or JSON where its name ends in .json")
    parser.add_argument("--state", metavar="FILE", help=f"what is known so far (default: REQUEST{STATE})")
    parser.add_argument(
        "--backend",
        choices=(LOCAL, HTCONDOR, *LAUNCHED),
        help=f"where its runs are jobs (default: as it began, else {LOCAL})",
    )
    parser.add_argument(
        "--account",
        metavar="NAME",
        help=f"whose quota its runs use, in {LOCAL} (default: the login name) or {HTCONDOR} (default: no group)",
    )
    add_directory(parser)
    act = parser.add_mutually_exclusive_group()
    act.add_argument("--again", action="store_true", help="begin anew; what still runs of the last time is ended")
    act.add_argument("--cancel", action="store_true", help="end what runs; the validation has failed then")
    act.add_argument("--show", action="store_true", help="show what is known so far, and start nothing")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Validate to the end, or do as told; the exit code. Raises UsageError, PoolError."""
    request = load_request(args.request)
    for name in request.backends:
        if name not in LAUNCHED:
            raise ConfigurationError(args.request, "backends", name[:60], "a table", f"one of {', '.join(LAUNCHED)}")
    path = args.state or args.request + STATE
    if args.show:
        validation = _known(read_state(path), args.request)
    else:
        with StateFile(path) as state:
            validation = _act(args, request, state)
    _show(validation, args.json)
    return 1 if validation.state == machine.REFUSED else 0


def _act(args: argparse.Namespace, request: Request, state: StateFile) -> Validation:
    """Cancel, or begin where that is needed and run to the end."""
    found = state.load()
    name = args.backend or (found.backend if found is not None else LOCAL)
    if found is not None and found.backend != name and not args.again:
        raise UsageError(f"{args.request}: its runs are in {found.backend}, not in {name}; --again begins a new one")
    if args.directory and name != LOCAL:
        raise UsageError(f"--directory goes with --backend {LOCAL}")
    if args.account is not None and name in LAUNCHED:
        raise UsageError(
            f"--account goes with {LOCAL} and {HTCONDOR}; {name} is told by [backends.{name}] of the request"
        )
    backend = _backend(name, args, request)
    if args.cancel:
        return _cancel(_known(found, args.request), state, backend)
    if args.again and found is not None:
        _cancel(found, state, backend if found.backend == name else _backend(found.backend, args, request))
        found = None
    if found is None:
        validation = _begin(request, name, state, backend)
        doubt = backend.doubt(validation.request.cores if request.can_thread else ())
        if doubt:
            _say(doubt)
    else:
        validation = _same(found, request, args.request)
    return run_to_end(validation, backend, state.save, _say, time.sleep)


def _known(found: Validation | None, file: str) -> Validation:
    if found is None:
        raise UsageError(f"{file}: no validation of it has begun")
    return found


def _backend(name: str, args: argparse.Namespace, request: Request) -> Backend:
    """The batch system of that name."""
    runs = (args.state or args.request + STATE) + RUNS
    if name in LAUNCHED:
        return _launched(name, args, request, runs)
    if name == HTCONDOR:
        if importlib.util.find_spec("htcondor2") is None:  # it is imported later, in a process of its own
            raise ModuleNotFoundError("htcondor2", name="htcondor2")
        from drainwise.htcondor.validation_backend import HTCondorValidationBackend

        return HTCondorValidationBackend(runs, args.account)
    from drainwise.local.validation_backend import LocalValidationBackend

    user = _login_name()
    return LocalValidationBackend(args.directory or default_directory(), args.account or user, user)


def _launched(name: str, args: argparse.Namespace, request: Request, runs: str) -> Backend:
    """A batch system of the launcher's; it is looked for when it is needed first."""
    from drainwise.cli.launch import BACKENDS
    from drainwise.estimate.validation_launched import TAGS, LaunchedValidationBackend
    from drainwise.launch.backend import Place

    table = dict(request.backends.get(name, {}))
    resources = table.pop(RESOURCES, {})
    if not isinstance(resources, dict):
        raise ConfigurationError(args.request, f"backends.{name}", RESOURCES, ascii(resources)[:60], "a table")
    place = Place(args.request, "validation", os.path.abspath(runs), TAGS)
    opener = partial(importlib.import_module(BACKENDS[name]).open_backend, table, "", place)
    return LaunchedValidationBackend(opener, runs, resources, f"{args.request}: [backends.{name}] {RESOURCES}")


def _begin(request: Request, name: str, state: StateFile, backend: Backend) -> Validation:
    refuse_impossible(request, backend)
    validation = machine.begin(request, f"{request.name}-{secrets.token_hex(6)}", name)
    state.save(validation)
    return validation


def _same(found: Validation, request: Request, file: str) -> Validation:
    """The validation that has begun, if it is of this request."""
    if found.request != request:
        raise UsageError(f"{file}: has changed since its validation began; --again begins a new one")
    return found


def _cancel(found: Validation, state: StateFile, backend: Backend) -> Validation:
    """End what still runs of it."""
    validation = machine.cancelled(found, "cancelled")
    state.save(validation)
    kill_pointless(validation, backend)
    return validation


def _login_name() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


def _say(text: str) -> None:
    print(f"drainwise: {printable(text)}", file=sys.stderr, flush=True)


def _show(validation: Validation, as_values: bool) -> None:
    if as_values:
        print(json_text(as_json(validation)))
        return
    headings = [Heading(one.lstrip(">"), number=one.startswith(">"), cuttable=one == _CUTTABLE) for one in HEADINGS]
    lines, _ = table(headings, rows(validation), standard_output())
    print("\n".join(lines))
    print(printable(verdict(validation)))
