"""`drainwise config check`: all faults of the site file at once, and every value that counts with its origin."""

from __future__ import annotations

import argparse
import itertools
import json
import os
from collections.abc import Iterator, Mapping

from drainwise.common.printable import printable
from drainwise.local.system import VARIABLE, default_directory
from drainwise.siteconfig.load import DEFAULT_SITE_FILE, EffectiveValue, SiteReading, effective_values, examine
from drainwise.siteconfig.schema import SiteConfig

_LEFT_OUT = "(left out)"
_ORIGIN_COLUMN = 46


def add_check(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the sub-command."""
    text = "check the site file: all faults at once with their lines; ends with 1 when there is one"
    action = actions.add_parser("check", help=text, description=text)
    action.add_argument(
        "--site", metavar="FILE", help=f"the site's settings (default: {DEFAULT_SITE_FILE} where there is one)"
    )
    action.add_argument("--show", action="store_true", help="show every value that counts, and where it comes from")
    action.add_argument("--json", action="store_true", help="print JSON: faults, and every value with its origin")


def check_site_file(args: argparse.Namespace, head: Mapping[str, object]) -> int:
    """Check the file and show what was asked for; 1 when there are faults. head: of the JSON document.

    Raises ConfigurationError where the file cannot be read.
    """
    if args.site is None and not os.path.exists(DEFAULT_SITE_FILE):
        reading = SiteReading(SiteConfig(), {}, ())
    else:
        reading = examine(DEFAULT_SITE_FILE if args.site is None else args.site)
    if args.json:
        print(json.dumps({**head, **_as_json(reading)}, indent=2))
    else:
        print("\n".join(map(printable, _lines(reading, args.show))))
    return 1 if reading.faults else 0


def _lines(reading: SiteReading, show: bool) -> Iterator[str]:
    values = list(effective_values(reading))
    if show:
        for section, rows in itertools.groupby(values, key=lambda one: one.section):
            yield f"[{section}]"
            for one in rows:
                yield f"{f'{one.key} = {one.value or _LEFT_OUT}':<{_ORIGIN_COLUMN}}  # {_origin(reading, one)}"
            yield ""
        origin = f"environment: ${VARIABLE}" if os.environ.get(VARIABLE) else "default"
        yield f"{f'local batch system: {default_directory()}':<{_ORIGIN_COLUMN}}  # {origin}"
        yield ""
    yield from map(str, reading.faults)
    yield from reading.config.former
    file = reading.config.file or f"no site file {DEFAULT_SITE_FILE}"
    count, written = len(reading.faults), sum(1 for one in values if one.line)
    faults = f"{count} fault{'s' if count > 1 else ''}" if count else "no fault"
    yield f"{file}: {faults}; {written} keys are set, {len(values) - written} have their default or are left out"


def _origin(reading: SiteReading, one: EffectiveValue) -> str:
    return f"{reading.config.file}:{one.line}" if one.line else "default"


def _as_json(reading: SiteReading) -> dict[str, object]:
    return {
        "file": reading.config.file or None,
        "faults": [
            {
                "line": one.line or None,
                "section": one.section,
                "key": one.key,
                "value": one.value,
                "expected": one.expected,
            }
            for one in reading.faults
        ],
        "read_no_more": list(reading.config.former),
        "values": [
            {
                "section": one.section,
                "key": one.key,
                "value": one.value or None,
                "origin": "file" if one.line else "default",
                "line": one.line or None,
            }
            for one in effective_values(reading)
        ],
        "local_directory": default_directory(),
        "local_directory_origin": "environment" if os.environ.get(VARIABLE) else "default",
    }
