"""`drainwise features show | check | serve`: look at features directories as a pilot does, judge them, serve them."""

from __future__ import annotations

import argparse
import contextlib
import ipaddress
import json
import os
import sys
import time
from typing import TYPE_CHECKING

from drainwise.cli.arguments import whole
from drainwise.facts.errors import FeatureError, UsageError
from drainwise.features.keys import BY_NAME, DECIMAL, INTEGER, JOB, MACHINE, keys_of
from drainwise.features.read import open_features
from drainwise.features.reader import FeatureReader

if TYPE_CHECKING:
    from drainwise.features.check_key import KeyVerdict

    Shown = dict[str, dict[str, "int | float | str"]]

VARIABLES = {MACHINE: "MACHINEFEATURES", JOB: "JOBFEATURES"}


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command and its three sub-commands."""
    parser = subparsers.add_parser("features", help="show, check or serve machine and job features")
    actions = parser.add_subparsers(dest="action", metavar="show | check | serve", required=True)
    for name, text in (
        ("show", "print every key as a pilot reads it"),
        ("check", "judge every key against the specification; ends with 1 when one is an error"),
    ):
        action = actions.add_parser(name, help=text, description=text)
        for directory, variable in VARIABLES.items():
            action.add_argument(
                f"--{directory}", metavar="DIR_OR_URL", help=f"features of the {directory} (default: ${variable})"
            )
        action.add_argument("--json", action="store_true", help="print JSON")
    serve = actions.add_parser("serve", help="serve the directories below DIR over http or https, read-only")
    serve.add_argument("root", metavar="DIR")
    serve.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    serve.add_argument("--port", type=whole(0, 65535), default=0, help="port (default: a free one, which is printed)")
    serve.add_argument("--certificate", metavar="FILE", help="serve https: the certificate with its chain, PEM")
    serve.add_argument("--key", metavar="FILE", help="the certificate's private key, PEM (default: in the same file)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the chosen action; the exit code."""
    if args.action == "serve":
        return _serve(args)
    readers = _readers(args.machine, args.job)
    return (_show if args.action == "show" else _check)(readers, args.json)


def _readers(machine: str | None, job: str | None) -> dict[str, FeatureReader]:
    """Open the directories named on the command line, else those that the environment names.

    One directory named on the command line is looked at alone: the other of the environment need not belong to it.
    """
    given = {MACHINE: machine, JOB: job}
    if machine is None and job is None:
        given = {directory: os.environ.get(variable) for directory, variable in VARIABLES.items()}
        for directory, variable in VARIABLES.items():
            if not given[directory]:
                raise UsageError(
                    f"${variable} is not set: run this inside a job, or name a directory or URL with --{directory}"
                )
    return {directory: open_features(location) for directory, location in given.items() if location is not None}


def _show(readers: dict[str, FeatureReader], as_json: bool) -> int:
    shown: Shown = {}
    faults: list[str] = []
    for directory, reader in readers.items():
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
    if as_json:
        print(json.dumps({**shown, "errors": faults}, indent=2))
    else:
        _print_values(shown, readers)
    for fault in faults:
        print(f"drainwise: {fault}", file=sys.stderr)
    return 1 if faults else 0


def _print_values(shown: Shown, readers: dict[str, FeatureReader]) -> None:
    for directory, values in shown.items():
        print(f"{directory} {readers[directory].location}")
        for name, value in values.items():
            text = f"{value:.10g}" if isinstance(value, float) else str(value)
            if BY_NAME[name].unit == "UNIX s":
                text += time.strftime("  (%Y-%m-%d %H:%M:%S %Z)", time.localtime(int(value)))
            elif BY_NAME[name].kind in {INTEGER, DECIMAL}:
                text += f" {BY_NAME[name].unit}"
            print(f"  {name:<20} {text}")
        if not values:
            print("  (no keys)")


def _check(readers: dict[str, FeatureReader], as_json: bool) -> int:
    from dataclasses import asdict

    from drainwise.features.check import check
    from drainwise.features.check_key import ERROR, WARNING, worst

    verdicts = check(readers.get(MACHINE), readers.get(JOB), int(time.time()))
    if as_json:
        print(json.dumps({"worst": worst(verdicts), "verdicts": [asdict(verdict) for verdict in verdicts]}, indent=2))
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
    from drainwise.features.serve.server import FeatureServer, tls_context

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
