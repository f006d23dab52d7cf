"""`drainwise features`: look at features directories as a pilot does, judge them, ask them, serve them."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import time
from typing import TYPE_CHECKING

from drainwise.cli.arguments import number, whole
from drainwise.cli.feature_commands.places import add_place_options, readers
from drainwise.cli.feature_commands.questions import QUESTIONS, add_questions, answer
from drainwise.cli.feature_commands.serve import add_serve, serve
from drainwise.cli.feature_commands.virtual_machine import add_virtual_machine, end_machine, locate
from drainwise.cli.feature_commands.write import add_write, remove, write
from drainwise.cli.text import document
from drainwise.facts.errors import FeatureError
from drainwise.features.facts import BY_NAME, DECIMAL, INTEGER, keys_of

if TYPE_CHECKING:
    from drainwise.features.check import KeyVerdict
    from drainwise.features.read import FeatureReader

    Shown = dict[str, dict[str, "int | float | str"]]


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command and its sub-commands."""
    parser = subparsers.add_parser("features", help="machine and job features: show, check, ask, serve")
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, text in (
        ("show", "print every key as a pilot reads it"),
        ("check", "judge every key against the specification; ends with 1 when one is an error"),
    ):
        action = actions.add_parser(name, help=text, description=text)
        add_place_options(action)
        action.add_argument("--json", action="store_true", help="print JSON")
    add_questions(actions, number(0, 1e15))
    add_serve(actions, whole(0, 65535))
    add_virtual_machine(actions)
    add_write(actions)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the chosen action; the exit code."""
    others = {"serve": serve, "locate": locate, "end-machine": end_machine, "write": write, "remove": remove}
    others.update(dict.fromkeys(QUESTIONS, answer))
    if args.action in others:
        return others[args.action](args)
    return (_show if args.action == "show" else _check)(readers(args), args.json)


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
        print(json.dumps(document("features", {**shown, "errors": faults}), indent=2))
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
                with contextlib.suppress(OSError, OverflowError, ValueError):  # beyond all calendars
                    text += time.strftime("  (%Y-%m-%d %H:%M:%S %Z)", time.localtime(int(value)))
            elif BY_NAME[name].kind in {INTEGER, DECIMAL}:
                text += f" {BY_NAME[name].unit}"
            print(f"  {name:<20} {text}")
        if not values:
            print("  (no keys)")


def _check(readers: dict[str, FeatureReader], as_json: bool) -> int:
    from dataclasses import asdict

    from drainwise.features.check import ERROR, WARNING, check, worst
    from drainwise.features.facts import JOB, MACHINE

    verdicts = check(readers.get(MACHINE), readers.get(JOB), int(time.time()))
    if as_json:
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
