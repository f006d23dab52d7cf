"""`drainwise check htcondor | slurm`: look at a live pool, say what is missing or dangerous, with the line to add."""

from __future__ import annotations

import argparse
import json
import os
import pwd
import sys
import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from drainwise.cli.text import printable
from drainwise.siteconfig import DEFAULT_SITE_FILE, load

if TYPE_CHECKING:
    from drainwise.finding import Finding

ROLES = ("execute", "access", "central")
SHOWN_MACHINES = 4
INDENT = 10 * " "


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = subparsers.add_parser("check", help="inspect a live pool: what is missing or dangerous")
    systems = parser.add_subparsers(dest="system", metavar="htcondor|slurm", required=True)
    text = "inspect the knobs, hooks and crons of a live HTCondor pool; ends with 1 when something must be mended"
    htcondor = systems.add_parser("htcondor", help=text, description=text)
    htcondor.add_argument("--role", choices=(*ROLES, "all"), default="all", help="only machines of this role")
    htcondor.add_argument("--node", metavar="NAME", help="of the execute nodes only this one")
    text = "inspect configuration, jobs and, on a node, hooks of a live Slurm cluster; ends with 1 if any is wrong"
    slurm = systems.add_parser("slurm", help=text, description=text)
    for system in (htcondor, slurm):
        system.add_argument("--site", metavar="FILE", default=DEFAULT_SITE_FILE, help="default: %(default)s")
        system.add_argument("--all", action="store_true", help="show what is in order, too")
        system.add_argument("--json", action="store_true", help="print JSON, with what is in order")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Inspect the pool; 1 when something is missing or dangerous."""
    from drainwise.finding import OK

    findings = _of_slurm(args) if args.system == "slurm" else _of_htcondor(args)
    bad = [finding for finding in findings if finding.severity != OK]
    if args.json:
        print(as_json(findings))
    else:
        print(as_text(findings if args.all else bad))
        print(_summary(findings))
    return 1 if bad else 0


def _of_htcondor(args: argparse.Namespace) -> Sequence[Finding]:
    from drainwise.cli.check_agent import agent_findings, master_keeper
    from drainwise.htcondor.check import judge
    from drainwise.htcondor.collect_facts import collect

    site = load(args.site)
    roles = ROLES if args.role == "all" else (args.role,)
    facts = collect(site, roles, args.node, show_progress)
    here = any(one.role == "central" and one.machine == facts.here for one in facts.daemons)
    agent = agent_findings(args, site, here, master_keeper(), facts.here) if "central" in roles else ()
    return [*judge(facts, site, roles), *agent]


def _user_name() -> str:
    uid = os.geteuid()
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def show_progress(asked: int, total: int) -> None:
    """How far the questions have come, on a line of its own that the next one writes over; on a terminal alone."""
    if sys.stderr.isatty():
        end = "\r\x1b[K" if asked == total else ""
        print(f"\r{asked} of {total} daemons asked{end}", end="", file=sys.stderr, flush=True)


def _of_slurm(args: argparse.Namespace) -> Sequence[Finding]:
    from drainwise.cli.check_agent import agent_findings
    from drainwise.slurm.check import judge
    from drainwise.slurm.check_facts import collect
    from drainwise.slurm.check_hooks import hook_files, judge_hooks
    from drainwise.slurm.check_orders import caller_of, is_controller, judge_orders
    from drainwise.slurm.check_space import judge_space, space_of

    site, host, now = load(args.site), os.uname().nodename, int(time.time())
    facts = collect(site)
    caller = caller_of(facts, site, os.geteuid(), _user_name())
    findings = [*judge(facts, site, now), *judge_orders(facts, caller, site, now)]
    findings += agent_findings(args, site, is_controller(facts, host), None, host)
    space = judge_space(space_of(site.slurm.runtime_dir), host)
    return [*findings, *judge_hooks(hook_files(facts, site), host), *space]


def as_json(findings: Sequence[Finding]) -> str:
    """All findings, one object each."""
    from dataclasses import asdict

    return json.dumps({"findings": [asdict(finding) for finding in findings]}, indent=2)


def as_text(findings: Iterable[Finding]) -> str:
    """One paragraph per finding, the dangerous ones first; what several machines share stands once."""
    from drainwise.finding import DANGEROUS, MISSING, OK

    alike: dict[Finding, list[str]] = {}
    for finding in sorted(findings, key=lambda one: (DANGEROUS, MISSING, OK).index(one.severity)):
        alike.setdefault(_anywhere(finding), []).append(finding.machine)
    return "\n".join(_paragraph(finding, machines) for finding, machines in alike.items())


def _anywhere(finding: Finding) -> Finding:
    from dataclasses import replace

    return replace(finding, machine="")


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


def _summary(findings: Sequence[Finding]) -> str:
    from drainwise.finding import DANGEROUS, MISSING, OK

    counts = (
        f"{sum(one.severity == severity for one in findings)} {severity}" for severity in (DANGEROUS, MISSING, OK)
    )
    return f"{len({finding.machine for finding in findings})} machines: {', '.join(counts)}"
