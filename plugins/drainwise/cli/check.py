"""`drainwise check SYSTEM`: inspect a live pool, name what is missing or dangerous, with the line to add."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from drainwise.cli.command_line.options import Command, option
from drainwise.cli.site_file import SITE_FILE
from drainwise.cli.text import document
from drainwise.common.printable import printable
from drainwise.facts.errors import DrainwiseError
from drainwise.siteconfig import load_or_defaults
from drainwise.systems.find import named, offering, tried
from drainwise.systems.system import System

if TYPE_CHECKING:
    from drainwise.agent.health import ServiceManager
    from drainwise.pool.finding import Finding
    from drainwise.siteconfig import SiteConfig

SHOWN_MACHINES = 4
INDENT = 10 * " "


def run(args: argparse.Namespace) -> int:
    """Inspect the pool; return 1 when something is missing or dangerous."""
    from drainwise.pool.finding import LEVELS, to_mend

    site, system = load_or_defaults(args.site), named(args.system, System.findings, "check")
    findings = system.findings(site, args, partial(agent_findings, args, site), show_progress)
    bad = to_mend(findings)
    remarks = _remarks(site, system)
    if args.json:
        print(as_json(findings, remarks))
    else:
        print(as_text(findings if args.all else bad))
        counts = (f"{sum(one.severity == level for one in findings)} {level}" for level in LEVELS)
        machines = len({finding.machine for finding in findings})
        summary = f"{machines} machines: {', '.join(counts)}"
        print("\n".join([summary, *(f"remark: {printable(text)}" for text in remarks)]))
    return 1 if bad else 0


def _remarks(site: SiteConfig, system: System) -> list[str]:
    """Return what the administrator should know of the scope; it is no finding."""
    from drainwise.pool.scope import job_facts

    if not system.offers(System.open_pool):
        return []
    jobs = None
    if site.scope:
        with contextlib.suppress(DrainwiseError):
            jobs = [job_facts(one) for one in system.open_pool(site, None).snapshot(int(time.time())).pilots]
    return site.scope.remarks(jobs)


def agent_findings(
    args: argparse.Namespace, site: SiteConfig, here: bool, service: ServiceManager | None, machine: str
) -> Iterable[Finding]:
    """Inspect the agent of `args.system` on this machine; here: whether an agent of it belongs here."""
    from drainwise.agent.health import facts_of, judge, systemd_manager
    from drainwise.cli.agent_place import journal_path, lock_of
    from drainwise.pool.finding import judged

    file = args.site if args.site and os.path.exists(args.site) else None
    place = argparse.Namespace(pool=args.system, directory=None, site=file, journal=None)
    lock, journal = lock_of(place).path, journal_path(place)
    facts = facts_of(lock, journal, site.agent.act == "yes", here, service or systemd_manager(), int(time.time()))
    return () if facts is None else judged(machine, (judge,), facts)


def show_progress(answered: int, total: int) -> None:
    """Show how many daemons have answered, on a line that the next one writes over; on a terminal alone."""
    if sys.stderr.isatty():
        end = "\r\x1b[K" if answered == total else ""
        print(f"\r{answered} of {total} daemons answered{end}", end="", file=sys.stderr, flush=True)


def as_json(findings: Sequence[Finding], remarks: Sequence[str] = ()) -> str:
    """Write all findings, one object each, and the remarks."""
    from drainwise.pool import finding

    rows = [finding.as_json(one) for one in findings]
    return json.dumps(document("check", {"findings": rows, "remarks": list(remarks)}), indent=2)


def as_text(findings: Iterable[Finding]) -> str:
    """Write one paragraph per finding, the dangerous ones first; what several machines share stands once."""
    from drainwise.pool.finding import worst_first

    alike: dict[Finding, list[str]] = {}
    for finding in worst_first(findings):
        alike.setdefault(replace(finding, machine=""), []).append(finding.machine)
    return "\n".join(_paragraph(finding, machines) for finding, machines in alike.items())


def _paragraph(finding: Finding, machines: Sequence[str]) -> str:
    shown, rest = ", ".join(machines[:SHOWN_MACHINES]), len(machines) - SHOWN_MACHINES
    where = shown + (f" and {rest} more" if rest > 0 else "")
    rows = [f"{finding.severity:<9} {finding.what} on {where}"]
    if finding.value:
        rows.append(f"{INDENT}found: {finding.value}")
    rows.append(f"{INDENT}why:   {finding.why}")
    rows += [f"{INDENT}{'' if number else 'add:':<6} {line}" for number, line in enumerate(finding.line.splitlines())]
    # What a daemon answered may hold anything; a terminal gets its printable characters.
    return "\n".join(map(printable, rows)) + "\n"


def _actions() -> dict[str, Command]:
    return {
        system.name: Command(
            f"{system.about_check}; ends with 1 when something must be corrected",
            (
                SITE_FILE,
                option("--all", "show what is in order, too"),
                option("--json", "print JSON, with what is in order"),
            ),
            run,
            extend=partial(_extended, system),
        )
        for system in offering(System.findings)
    }


def _extended(system: System, parser: argparse.ArgumentParser) -> None:
    tried(system, partial(system.add_check_options, parser), None)


COMMAND = Command("inspect a live pool: what is missing or dangerous", actions=_actions, dest="system", metavar="|")
