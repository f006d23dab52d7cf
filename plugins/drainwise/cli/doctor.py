"""The command `drainwise doctor`. Whatever fails on the way is one of its facts: it always says what it knows."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from drainwise.cli.command_line.options import Command, option
from drainwise.cli.screen.layout import BOLD, RED, YELLOW, Paper, standard_output
from drainwise.cli.site_file import SITE_FILE
from drainwise.cli.text import show
from drainwise.common.printable import printable
from drainwise.doctor.bundle import bundle_texts, facts_as_json, write_bundle
from drainwise.doctor.facts import AgentLook, BatchFacts, Installation, MachineFacts
from drainwise.doctor.judge import judge, next_step
from drainwise.doctor.looks import installation, rendered_files, running_processes
from drainwise.facts.errors import DrainwiseError
from drainwise.install.expected_files import ExpectedFiles, laid_down, rendered_anew
from drainwise.install.rendered_tree import RenderedFile
from drainwise.pool.finding import DANGEROUS, OK, Finding, to_mend
from drainwise.siteconfig import SiteConfig, load_or_defaults
from drainwise.systems.find import named, offering
from drainwise.systems.system import System

if TYPE_CHECKING:
    from drainwise.agent.health import ServiceManager

T = TypeVar("T")

_STYLES = {DANGEROUS: RED, OK: ""}
_TOPIC_WIDTH, _SEVERITY_WIDTH = 11, 10


def run(args: argparse.Namespace) -> int:
    """Look at this machine and say what is found; the exit code. Raises UsageError where a bundle cannot be written."""
    facts, site = look(args.site)
    findings = judge(facts)
    step = next_step(findings)
    values = partial(facts_as_json, facts, findings, step)
    show(args.json, "doctor", values, lambda: lines_of(findings, step, standard_output()))
    if args.bundle:
        write_bundle(args.bundle, bundle_texts(facts, None if facts.site_fault else site))
    if facts.site_fault:
        return 2
    return 1 if to_mend(findings) else 0


def lines_of(findings: list[Finding], step: str, paper: Paper) -> Iterator[str]:
    """Yield a line for each verdict, and last the next step, and that others may follow."""
    topic = ""
    for one in findings:
        said = one.what if one.what != topic else ""
        topic = one.what
        style = _STYLES.get(one.severity, YELLOW)
        severity = paper.styled(f"{one.severity:<{_SEVERITY_WIDTH}}", style)
        yield f"{said:<{_TOPIC_WIDTH}}{severity}{printable(' '.join(one.why.split()))}"
    yield paper.styled(f"next: {printable(step)}", BOLD)
    if to_mend(findings):
        yield "then: drainwise doctor again, here and on the other machines, until there is nothing to mend"


def look(site_file: str) -> tuple[MachineFacts, SiteConfig]:
    """Gather the facts of this machine; the site's settings, the defaults where its file cannot be used."""
    faults: list[str] = []

    def tried(what: str, call: Callable[[], T], otherwise: T) -> T:
        """Return what the call gives; `otherwise`, and a fault, where it fails in whatever way."""
        try:
            return call()
        except Exception as fault:  # a look at a machine in disorder must not end here
            said = str(fault) if isinstance(fault, DrainwiseError) else f"{type(fault).__name__}: {fault}"
            faults.append(f"{what}: {said}")
            return otherwise

    site, site_fault = SiteConfig(), ""
    try:
        site = load_or_defaults(site_file)
    except DrainwiseError as fault:
        site_fault = str(fault)
    here = tried("what is installed", installation, Installation("", "", ""))
    batch: list[BatchFacts] = []
    for system in offering(System.machine_facts):
        found = tried(system.name, partial(system.machine_facts, site), None)
        batch += [] if found is None else [found]
    nothing = ExpectedFiles()
    laid = tried("the files that were installed", laid_down, nothing)
    expected, agent = [laid], list[AgentLook]()
    is_rendered = not site_fault and (bool(site.file) or not laid.files)
    for one in batch:
        if is_rendered and one.version:  # of one that does not answer nobody knows what it has
            expected.append(tried(f"rendering for {one.system}", partial(_rendered_here, one, site), nothing))
        if one.agent_here:
            agent += tried("the agent", partial(_agent, one, site_file, site), [])
    facts = MachineFacts(
        host=os.uname().nodename,
        uid=os.geteuid(),
        installation=here,
        batch=tuple(batch),
        rendered=tuple(tried("rendered files", lambda: list(rendered_files(expected)), [])),
        running=tuple(tried("processes", lambda: list(running_processes()), [])),
        agent=tuple(agent),
        site=site_file if os.path.exists(site_file) else "",
        site_fault=site_fault,
        faults=tuple(faults),
    )
    return facts, site


def _rendered_here(one: BatchFacts, site: SiteConfig) -> ExpectedFiles:
    """Return the files by the site file for this machine's roles, those that are there: a package may bring others."""
    system = named(one.system, System.render, "doctor")

    def render() -> Iterator[RenderedFile]:
        for role in one.roles:
            yield from system.render(site, argparse.Namespace(role=role, live=None, out="/"))

    command = "; ".join(f"drainwise config {one.system} --role {role} --out /" for role in one.roles)
    found = rendered_anew(render, command)
    return replace(found, files=tuple(file for file in found.files if os.path.lexists(file.path)))


def _agent(one: BatchFacts, site_file: str, site: SiteConfig) -> list[AgentLook]:
    """Look at the agent that belongs on this machine, as `check` does."""
    from drainwise.cli.check import agent_findings

    service: ServiceManager | None = None
    where = argparse.Namespace(system=one.system, site=site_file)
    found = list(agent_findings(where, site, True, service, ""))
    if not found:
        return [AgentLook(True, "no agent runs, and none is asked for: [agent] act = no")]
    return [AgentLook(verdict.severity == OK, verdict.why, verdict.line) for verdict in found]


_ABOUT = "what this machine is, what is installed, rendered and running here, and what to do next"
COMMAND = Command(
    _ABOUT,
    (
        SITE_FILE,
        option("--json", "print JSON"),
        option("--bundle FILE", "also write a tar.gz for a bug report, without secrets and names"),
    ),
    run,
    f"{_ABOUT}. Ends with 0 when nothing is wrong, 1 when something is, 2 when the site file is wrong.",
)
