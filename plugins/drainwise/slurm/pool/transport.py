"""Ask Slurm for all that a snapshot needs, at the same time; for the jobs by pyslurm where that is usable.

pyslurm is built for one release of Slurm and takes libslurm's structures for those of that release: with another one
it would read nonsense, or crash. So its version is looked up before it is imported, and it is never imported here but
in a process of its own, see `pyslurm_reader`. sinfo and sshare answer in milliseconds whatever the cluster does, have
one shape in all versions, and pyslurm knows no shares: they are asked as ever.
"""

from __future__ import annotations

import importlib.util
import os
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

from drainwise.common.bounded_command import MOST_OUTPUT, Answer, Running
from drainwise.facts.errors import PoolUnreachable
from drainwise.pool.clocks import require_same_clock
from drainwise.slurm.jobs import squeue_lines as job_lines
from drainwise.slurm.jobs.commands import SlurmCommands
from drainwise.slurm.jobs.job import SlurmJob
from drainwise.slurm.jobs.values import PENDING
from drainwise.slurm.jobs.written import with_written, written_in
from drainwise.slurm.pool import limits, node_line, rules, shares
from drainwise.slurm.pool.limits import limits_in
from drainwise.slurm.pool.node_line import SlurmNode, nodes_in
from drainwise.slurm.pool.old_release import with_details
from drainwise.slurm.pool.places import Allocation
from drainwise.slurm.pool.qos_rules import Qos
from drainwise.slurm.pool.rules import ClusterRules, controller_time, groups_of, rules_in
from drainwise.slurm.pool.shares import Shares, shares_in

FILTERED_JSON = (23, 2)
"""The release since which `squeue --json` writes the jobs that it is asked for, and no others."""
SHAPES = {(25, 11): "=v0.0.44", (24, 11): "=v0.0.42"}
"""The shape of JSON that is asked for since these releases, the latest first: one that is known, whatever is new."""
WITH_CORES = ("configuring", "running", "completing", "suspended", "stopped", "signaling", "resizing", "stage_out")
"""The states of jobs that have cores, or had until now, as squeue takes them."""
MOST_JOBS = 1 << 31
"""Bytes of an answer about all jobs: the JSON has 11 KB of each."""

AUTO, COMMANDS, PYSLURM = "auto", "commands", "pyslurm"

_READER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "pyslurm_reader.py")
_NUMBERS = re.compile(r"\d+")


@dataclass(frozen=True)
class Answers:
    """Slurm's answers about its jobs, its nodes, its accounts and its rules for nodes, within one moment.

    allocations: what jobs of several nodes have on each, by number, and qos, by name, as far as that was asked for.
    """

    jobs: Sequence[SlurmJob]
    nodes: list[SlurmNode]
    shares: Shares
    rules: ClusterRules = field(default_factory=ClusterRules)
    allocations: Mapping[int, Allocation] = field(default_factory=dict)
    qos: Mapping[str, Qos] = field(default_factory=dict)


class _Asked(ExitStack):
    """The commands that were started for one snapshot; they end when it is left. `seconds`: as for SlurmTransport."""

    def __init__(self, commands: SlurmCommands, seconds: float) -> None:
        super().__init__()
        self._commands, self._seconds = commands, seconds

    def start(self, *command: str, stdin: str = "", most: int = MOST_OUTPUT) -> Running:
        """Start one of Slurm's commands; most: bytes that it may print."""
        return self.also(self._commands.start(*command, stdin=stdin, most=most))

    def start_long(self, *command: str) -> Running:
        """Start one that prints something of all jobs."""
        return self.also(self._commands.start(*command, seconds=self._seconds, most=MOST_JOBS))

    def also(self, running: Running) -> Running:
        """Have a command that was started elsewhere end with the others."""
        self.callback(running.end)
        return running


_Completed = Callable[[Sequence[SlurmJob]], Sequence[SlurmJob]]
"""Returns the jobs of plain squeue with their texts. Raises PoolUnreachable when these are missing, late or not whole.
"""


def by_commands(asked: _Asked, commands: SlurmCommands) -> _Completed:
    """Ask for the jobs' texts by Slurm's own commands, once plain squeue has answered.

    Only jobs with cores can have reports: the JSON of those tells them, or `scontrol` before 23.02, where the JSON is
    always of all. Who has left meanwhile is passed over.
    """
    version = asked.start_long("scontrol", "--version")

    def completed(listed: Sequence[SlurmJob]) -> Sequence[SlurmJob]:
        release = _release(_text(version))
        if release < FILTERED_JSON:
            return with_details(listed, commands, lambda *command: asked.start_long(*command).output())
        shape = next((shape for first, shape in SHAPES.items() if release >= first), "")
        answer = asked.start_long("squeue", f"--json{shape}", "--all", f"--states={','.join(WITH_CORES)}").output()
        written = written_in(answer, "squeue --json printed")
        return with_written([job for job in listed if PENDING in job.states or job.number in written], written)

    return completed


def _text(running: Running) -> str:
    return running.output().decode("utf-8", "replace")


def _release(text: str) -> tuple[int, ...]:
    """Return the first two numbers in `slurm-wlm 24.11.5`."""
    return tuple(int(number) for number in _NUMBERS.findall(text)[:2])


@dataclass(frozen=True)
class InstalledPySlurm:
    """A pyslurm with its version ("" when unknown) and the directory it is in."""

    version: str
    directory: str


@dataclass(frozen=True)
class TransportChoice:
    """The transport of the query for jobs, and why it is not pyslurm ("" when it is)."""

    by: str
    why_not: str


def installed() -> InstalledPySlurm | None:
    """Return the pyslurm that an import would find, by its metadata alone."""
    if importlib.util.find_spec("pyslurm") is None:
        return None
    from importlib import metadata  # noqa: PLC0415 - 30 ms that most sites need not pay

    try:
        found = metadata.distribution("pyslurm")
        return InstalledPySlurm(str(found.version or ""), os.path.abspath(str(found.locate_file(""))))
    except (metadata.PackageNotFoundError, KeyError):  # metadata without a version, in newer Pythons
        return None


def mismatch(pyslurm: str, slurm: str) -> str:
    """Say why a pyslurm of one version is not for a Slurm of another (`slurm-wlm 24.11.5`), "" when it is.

    The first two numbers are the release of Slurm that a pyslurm is for; the third is its own.
    """
    ours, theirs = _release(pyslurm), _release(slurm)
    if len(ours) == 2 and ours == theirs:
        return ""
    return f"pyslurm {pyslurm or 'of no version'} does not match Slurm {slurm.strip().rpartition(' ')[2] or '?'}"


class SlurmTransport:
    """Asks as `[slurm] transport` says; `seconds`: how long the list of jobs may take, which grows with the cluster.

    COMMANDS: squeue. AUTO: pyslurm where it can be used, otherwise squeue; PYSLURM: pyslurm, or no answer. What can be
    used is found out for each snapshot anew, since Slurm may be upgraded meanwhile; a pyslurm that could not be
    imported is left alone. Once it is imported, its answer counts: when there is none, nobody else is asked.
    """

    def __init__(self, commands: SlurmCommands, seconds: float, setting: str = COMMANDS) -> None:
        self._commands, self._seconds, self._setting = commands, seconds, setting
        self._broken: dict[InstalledPySlurm, str] = {}

    def answers(self) -> Answers:
        """Return all answers. Raises PoolUnreachable when one is missing, late or not whole.

        No answer, too, when slurmctld's clock is another one than this machine's.
        """
        with _Asked(self._commands, self._seconds) as asked:
            lines, completed = asked.start_long(*job_lines.COMMAND), self._completed(asked)
            begun = time.time()
            running = (
                asked.start(*rules.COMMAND, stdin=rules.QUESTIONS),
                asked.start(*node_line.COMMAND),
                asked.start(*shares.COMMAND),
            )
            # The quick ones first: when slurmctld is gone, their time is over sooner.
            config, nodes, tree = map(_text, running)
            require_same_clock(controller_time(config), begun, time.time(), "slurmctld's")
            found = rules_in(config)
            enforces = limits.ENFORCED in found.enforced
            left = asked.start(*limits.COMMAND, most=limits.MOST_BYTES) if enforces else None
            jobs = completed(job_lines.jobs_of_lines(lines.output()))
            waiting = [job for job in jobs if PENDING in job.states]
            if waiting and left is not None:
                found = replace(found, limits=limits_in(_text(left)))
            found = replace(found, groups=groups_of(waiting, found.partitions))
            seen = nodes_in(nodes, found.release)
            if missing := found.nodes - {node.name for node in seen}:
                # An answer that is cut at a line's end looks whole.
                raise PoolUnreachable(f"incomplete answer: sinfo lacks {len(missing)} nodes, such as {min(missing)}")
            return Answers(jobs, found.on(seen), shares_in(tree), found)

    def choice(self) -> TransportChoice:
        """Return what this leads to here and now; pyslurm is imported to see. Raises PoolUnreachable."""
        if self._setting == COMMANDS:
            return TransportChoice("squeue --json", f"[slurm] transport = {COMMANDS}")
        found, why = _usable(self._commands)
        if found is not None:
            with _Asked(self._commands, self._seconds) as asked:
                why = _import_fault(_answer(asked.also(_start(found, "import", self._seconds))))
            if not why:
                return TransportChoice(f"pyslurm {found.version}", "")
        return TransportChoice("" if self._setting == PYSLURM else "squeue --json", why)

    def _completed(self, asked: _Asked) -> _Completed:
        """Ask for the jobs' texts: by pyslurm, by commands where it is none."""
        found, why = (None, "") if self._setting == COMMANDS else _usable(self._commands)
        if found is None or found in self._broken:
            return self._by_commands(asked, self._broken[found] if found else why)
        reader = asked.also(_start(found, "jobs", self._seconds))

        def completed(listed: Sequence[SlurmJob]) -> Sequence[SlurmJob]:
            answer = _answer(reader)
            if fault := _import_fault(answer):
                self._broken[found] = fault
                return self._by_commands(asked, fault)(listed)
            if answer.code != 0:
                raise PoolUnreachable(f"pyslurm failed: {answer.said or _ended(answer.code)}")
            return with_written(listed, written_in(answer.out.partition(b"\n")[2], "pyslurm gave"))

        return completed

    def _by_commands(self, asked: _Asked, why: str) -> _Completed:
        if self._setting == PYSLURM:
            raise PoolUnreachable(f"[slurm] transport = {PYSLURM}, but {why}")
        return by_commands(asked, self._commands)


def _usable(commands: SlurmCommands) -> tuple[InstalledPySlurm | None, str]:
    """Return a pyslurm that should do, else the reason.

    Raises PoolUnreachable when Slurm's own version cannot be had.
    """
    found = installed()
    if found is None:
        return None, "pyslurm is not installed"
    why = mismatch(found.version, commands.ask("scontrol", "--version"))
    return (None, why) if why else (found, "")


def _start(found: InstalledPySlurm, wanted: str, seconds: float) -> Running:
    directory, name = os.path.split(sys.executable)
    return SlurmCommands(directory).start(name, "-I", _READER, found.directory, wanted, seconds=seconds, most=MOST_JOBS)


def _answer(reader: Running) -> Answer:
    try:
        return reader.answer()
    except PoolUnreachable as fault:
        raise PoolUnreachable(f"pyslurm: {fault}") from None


def _import_fault(answer: Answer) -> str:
    """Say why pyslurm was not imported, "" when it was: then the reader has printed its first line."""
    return "" if b"\n" in answer.out else f"pyslurm cannot be imported: {answer.said or _ended(answer.code)}"


def _ended(code: int) -> str:
    return f"its process was ended by signal {-code}" if code < 0 else f"its process ended with code {code}"
