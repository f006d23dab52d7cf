"""`drainwise features`: look at features directories as a pilot does, judge them, ask them, serve them.

A question prints one number and nothing else. Where the site does not say, nothing is printed, a line on standard error
says why, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import contextlib
import ipaddress
import json
import shlex
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from drainwise.cli.arguments import number, whole
from drainwise.cli.command_line.options import Command, option
from drainwise.cli.feature_places import PLACES, readable, readers
from drainwise.cli.features_write import REMOVE, WRITE
from drainwise.cli.text import document
from drainwise.facts.errors import FeatureError, UsageError
from drainwise.features import questions
from drainwise.features.facts import BY_NAME, DECIMAL, INTEGER, JOB, MACHINE, keys_of
from drainwise.features.virtual_machine import ADDRESS, KEPT, find_locations, shut_down

if TYPE_CHECKING:
    from drainwise.features.check import KeyVerdict
    from drainwise.features.read import FeatureReader

    Shown = dict[str, dict[str, "int | float | str"]]


def _show(args: argparse.Namespace) -> int:
    found = readers(args)
    shown: Shown = {}
    faults: list[str] = []
    for directory, reader in found.items():
        problem = reader.problem()
        if problem is not None:
            raise FeatureError(problem)
        shown[directory] = {}
        for key in keys_of(directory):
            try:
                value = {INTEGER: reader.integer, DECIMAL: reader.decimal}.get(key.kind, reader.text)(key.name)
            except FeatureError as error:
                faults.append(str(error))
            else:
                if value is not None:
                    shown[directory][key.name] = value
    if args.json:
        print(json.dumps(document("features", {**shown, "errors": faults}), indent=2))
    else:
        _print_values(shown, found)
    for fault in faults:
        print(f"drainwise: {fault}", file=sys.stderr)
    return 1 if faults else 0


def _print_values(shown: Shown, readers: dict[str, FeatureReader]) -> None:
    for directory, values in shown.items():
        print(f"{directory} {readers[directory].location}")
        for name, value in values.items():
            text = f"{value:.10g}" if isinstance(value, float) else str(value)
            if BY_NAME[name].unit == "UNIX s":
                with contextlib.suppress(OSError, OverflowError, ValueError):  # beyond all calendars
                    text += time.strftime("  (%Y-%m-%d %H:%M:%S %Z)", time.localtime(int(value)))
            elif BY_NAME[name].kind in {INTEGER, DECIMAL}:
                text += f" {BY_NAME[name].unit}"
            print(f"  {name:<20} {text}")
        if not values:
            print("  (no keys)")


def _check(args: argparse.Namespace) -> int:
    from dataclasses import asdict

    from drainwise.features.check import ERROR, WARNING, check, worst

    found = readers(args)
    verdicts = check(found.get(MACHINE), found.get(JOB), int(time.time()))
    if args.json:
        shown = {"worst": worst(verdicts), "verdicts": [asdict(verdict) for verdict in verdicts]}
        print(json.dumps(document("features check", shown), indent=2))
    else:
        for verdict in verdicts:
            print(_line(verdict))
        errors, warnings = (sum(verdict.level == level for verdict in verdicts) for level in (ERROR, WARNING))
        print(f"{errors} errors, {warnings} warnings")
    return 1 if worst(verdicts) == ERROR else 0


def _line(verdict: KeyVerdict) -> str:
    value = "" if verdict.value is None else f"{verdict.value}  "
    rule = "" if verdict.rule == "present" else f"[{verdict.rule}] "
    return f"{verdict.level:<8} {verdict.directory:<8} {verdict.key or '-':<20} {value}{rule}{verdict.detail}".rstrip()


def _serve(args: argparse.Namespace) -> int:
    """Serve until Ctrl-C."""
    from drainwise.features.serve import FeatureServer, tls_context

    if args.key and not args.certificate:
        raise UsageError("--key without --certificate: expected both, or the key in the certificate's file")
    context = tls_context(args.certificate, args.key) if args.certificate else None
    with FeatureServer(args.root, args.host, args.port, context) as server:
        if context is None and not ipaddress.ip_address(server.server_address[0]).is_loopback:
            print("drainwise: http beyond this machine: tokens can be read on the way (--certificate)", file=sys.stderr)
        print(f"serving {server.root} at {server.url} (stop with Ctrl-C)", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            server.serve_forever()
    return 0


def _locate(args: argparse.Namespace) -> int:
    """Print the variables; 1 and nothing where the cloud has no such keys."""
    found = find_locations(args.metadata, args.kept)
    for variable, location in found.items():
        print(f"export {variable}={shlex.quote(location)}")
    return 0 if found else 1


def _end_machine(args: argparse.Namespace) -> int:
    """Run the site's command; its exit code. Raises FeatureError where there is none that is safe to run."""
    return shut_down(readable(args, MACHINE))


_QUESTIONS = {
    "left": "seconds that this job may still run, by its limit and all planned shutdowns",
    "ran": "seconds since the batch system started this job",
    "rest": "seconds that work of --work HS06 seconds takes on this job's cores",
    "shutdown": "UNIX seconds when this job must be gone or its host shuts down",
    "threads": "threads that this job may start: its cores",
    "slots": "job slots of the host that this job holds, by its share of the cores",
    "disk": "bytes of scratch space that this job may use",
    "memory": "bytes of memory that this job may use",
}
"""Use cases 1 to 8 of the draft, in its order."""


def _answer(args: argparse.Namespace) -> int:
    """Print the answer to the chosen question. Raises FeatureError where the site does not say."""
    machine, job, now = partial(readable, args, MACHINE), partial(readable, args, JOB), int(time.time())
    answers: dict[str, Callable[[], int]] = {
        "left": lambda: questions.time_left(machine(), job(), now),
        "ran": lambda: questions.time_since_start(job(), now),
        "rest": lambda: round(args.work / questions.power(job())),
        "shutdown": lambda: questions.planned_shutdown_time(machine(), job(), now),
        "threads": lambda: questions.known(job(), "allocated_cpu"),
        "slots": lambda: questions.slots(machine(), job()),
        "disk": lambda: questions.known(job(), "scratch_limit_bytes"),
        "memory": lambda: questions.known(job(), "max_rss_bytes"),
    }
    print(answers[args.action]())
    return 0


_WORK = option("--work S", "work left, HS06 s", number(0, 1e15), required=True)
_SEEN = (*PLACES, option("--json", "print JSON"))
COMMAND = Command(
    "machine and job features: show, check, ask, serve",
    actions={
        "show": Command("print every key as a pilot reads it", _SEEN, _show),
        "check": Command("judge every key against the specification; ends with 1 when one is an error", _SEEN, _check),
        **{
            name: Command(text, (*PLACES, *[_WORK][: name == "rest"]), _answer, f"Print the {text}.")
            for name, text in _QUESTIONS.items()
        },
        "serve": Command(
            "serve the directories below DIR over http or https, read-only",
            (
                option("root DIR", None),
                option("--host HOST", "address to listen on (default: %(default)s)", default="127.0.0.1"),
                option("--port PORT", "port (default: a free one, which is printed)", whole(0, 65535), default=0),
                option("--certificate FILE", "serve https: the certificate with its chain, PEM"),
                option("--key FILE", "the certificate's private key, PEM (default: in the same file)"),
            ),
            _serve,
        ),
        "locate": Command(
            "print the variables by which a virtual machine finds its features, as lines for a shell",
            (
                option("--metadata URL", "the cloud's metadata (default: %(default)s)", default=ADDRESS),
                option("--kept FILE", "what was found, so that the cloud is asked once (%(default)s)", default=KEPT),
            ),
            _locate,
        ),
        "end-machine": Command(
            "run the command that $MACHINEFEATURES/shutdown_command names: this virtual machine is destroyed",
            PLACES,
            _end_machine,
        ),
        "write": WRITE,
        "remove": REMOVE,
    },
)
