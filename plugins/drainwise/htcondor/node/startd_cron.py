"""The startd cron: publish each pilot's report into exactly its slot.

One short run per period, as HTCondor's own user. It prints an ad per job that reports, closed by `- <slot> …`; a slot
whose pilot has gone is retracted by an ad that matches no slot, because a tag that is merely no longer printed keeps
its values for ever. What it printed last is remembered in a small state file, also to push only what changed.

Where MachineMaxVacateTime was changed while a job ran, its claim keeps the value of its start: the slot then has it as
`PilotVacateTime`. The sandbox's machine ad tells it, which a user can replace: so no more is believed than this node
ever had configured, and less only makes SIGTERM come earlier than that user's pilot expects.
"""

from __future__ import annotations

import posix
import time
from _stat import S_ISDIR  # `stat` itself would be one more module for the cron to load

from drainwise import __version__
from drainwise.common.local_file import Held
from drainwise.common.mounts import fuse_mounts_below
from drainwise.facts import fact
from drainwise.facts.errors import RefusedFile
from drainwise.facts.waste import classad_expressions
from drainwise.htcondor import node as names
from drainwise.htcondor.node import cron_state, sandbox
from drainwise.htcondor.node.cron_state import NODE_TAG, NOTHING, CronState
from drainwise.htcondor.node.job_directories import children_of, is_starter, job_directory_names, open_job_directory
from drainwise.node import JOB_FEATURES, JOB_STATUS
from drainwise.node.ad_text import raw_values
from drainwise.node.hook import run_to_end, say, settings_or_defaults, status_of, write_output
from drainwise.pilotad.attributes import ATTRIBUTES, HEARTBEAT, OBSERVATION, PROCESSES, REPORTED_BY, STANDING
from drainwise.pilotad.node_reader import read_glidein_ad, read_report, reasons_line
from drainwise.pilotad.observation import observation_text, observed_report
from drainwise.pilotad.report import CONTRADICTORY, STALE, PilotReport, bounded, standing
from drainwise.pilotad.safe_open import Patience

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from typing import NoReturn

    from drainwise.htcondor.node.cron_state import Published, Remembered
    from drainwise.htcondor.node.job_directories import JobSandbox
    from drainwise.htcondor.node.parts import OwnersRecord
    from drainwise.node.payloads.observer import Observer, SeenJob
    from drainwise.node.payloads.process_table import ProcessTable
    from drainwise.node.settings import NodeSettings
    from drainwise.pilotad.partial_return import ReturnedPart

PATIENCE = 1.0  # seconds; what a whole round waits for files that are being written or locked
_MACHINE_AD_LIMIT = 1 << 18  # bytes
_VACATE = "MachineMaxVacateTime"
_BELIEVED = 3  # periods; so old may be what was read of returned cores


@fact
class CronNode:
    """What a round knows of its node before it looks at the jobs. startd: the pid of our startd. now: UNIX s.

    vacate: the MachineMaxVacateTime of a new claim (s), None when it is not known; largest: the most that this node
    ever had. hooks: see `hooks_since`.
    """

    startd: int
    now: int
    settings: NodeSettings
    vacate: int | None = None
    largest: int = 0
    hooks: int = 0


@fact
class ReportedRun:
    """A run as its directory shows it: its pilot's report, and what was refused of it.

    has_hooks: whether it has them though it began before all jobs found them. part: what it is believed to have
    returned, None where it states nothing. lines: more of its slot's attributes.
    vacate: the MachineMaxVacateTime of its claim (s), None where it is a new one's.
    """

    job: JobSandbox
    report: PilotReport | None
    refused: str = ""
    has_hooks: bool = False
    part: ReturnedPart | None = None
    lines: tuple[str, ...] = ()
    vacate: int | None = None


def literal(value: float | bool | str | None) -> str:
    """Write a value as a ClassAd literal; unknown is `undefined`, so that nothing of an earlier report stays."""
    if value is None:
        return "undefined"
    if isinstance(value, str):
        return f'"{value}"'  # a curve's: digits and marks, nothing that would need an escape
    return ("false", "true")[value] if isinstance(value, bool) else repr(value)


def report_ad(
    report: PilotReport,
    job: JobSandbox,
    now: int,
    heartbeat_limit: int,
    refuted: bool = False,
    part: ReturnedPart | None = None,
) -> str:
    """Write the attributes of one slot as the pilot stated them, each bounded.

    A report that is stale (also: left by an earlier run) or contradicts itself keeps its heartbeat and its standing
    only: it lost its protection. refuted: whether its claim contradicts what the node sees. part: what it is believed
    to have returned, which its claim of the cores in use does not touch; None where it states nothing of that.
    """
    state = CONTRADICTORY if refuted else standing(report, now, heartbeat_limit, job.started, job.cores)
    if state in {CONTRADICTORY, STALE}:
        returned = None if part is None or not part.since else part
        report = PilotReport(
            report.heartbeat,
            returned_cores=None if returned is None else returned.cores,
            returned_memory=None if returned is None else report.returned_memory,
            returned_since=None if returned is None else returned.since,
        )
    # The run's age bounds the live expressions: here it would make every round a change that is pushed.
    known = bounded(report, job.cores, 0, None, now)
    lines = [f"{row.published} = {literal(getattr(known, row.field))}\n" for row in ATTRIBUTES]
    run = f'{REPORTED_BY} = "{job.job}@{job.started}"\n'
    return f'{HEARTBEAT} = {report.heartbeat}\n{run}{STANDING} = "{state}"\n{"".join(lines)}'


def slot_ad(body: str, job: JobSandbox) -> str:
    """Aim the ad at one slot, and there only at this job: the next job in the slot must not inherit it."""
    return f'SlotMergeConstraint = Name == "{job.slot}" && GlobalJobId =?= "{job.job}"\n{body}'


def open_jobs(execute: str, startd: int) -> Iterator[JobSandbox]:
    """Yield the jobs below $(EXECUTE), each open as long as the caller looks at it. Raises OSError."""
    with Held(posix.open(execute, posix.O_RDONLY | posix.O_DIRECTORY | posix.O_CLOEXEC)) as directory:
        blocked = fuse_mounts_below(posix.readlink(f"/proc/self/fd/{directory}"))
        children = children_of(startd)
        for name in job_directory_names(directory):
            if blocked and any(f"/{name}/" in f"{mount}/" for mount in blocked):
                continue  # a file system served by a user can hold us for ever
            try:
                job = open_job_directory(directory, name, startd, children)
            except RefusedFile:
                continue  # the job has not begun, has just gone, or has no directory that we may enter
            if job is not None:
                with Held(job.descriptor):
                    yield job


def hook_ran(directory: int) -> bool:
    """Decide whether the prepare hook's work is in the open `directory` of a job.

    Who forges that lets its own pilot get orders, and nobody else's.
    """
    status = status_of(JOB_FEATURES, directory)
    return status is not None and S_ISDIR(status.st_mode)


def read_run(job: JobSandbox, node: CronNode, patience: Patience) -> ReportedRun:
    """Read what a job's directory says; what cannot be read costs that job's own report."""
    now, limit, lines = node.now, node.settings.heartbeat_limit, []
    report, refused = read_report(job.descriptor, job.uid, job.cores, JOB_STATUS, patience)
    if report is None or standing(report, now, limit, job.started) == STALE:
        report = read_glidein_ad(job.descriptor, job.uid, job.cores, JOB_STATUS, patience) or report
    part = None
    if node.settings.is_returning_parts:
        from drainwise.htcondor.node.parts import stated_part  # noqa: PLC0415 - only where pilots may return cores

        part = stated_part(report, job, now, limit)
    rules = node.settings.clients
    if rules is not None and rules.attributes():
        client = sandbox.client_in(sandbox.ad_at(sandbox.JOB_AD, job.descriptor), rules)
        lines = [] if client is None else [f'{names.CLIENT} = "{client.name}"']
    has_hooks = (job.started or 0) < node.hooks and hook_ran(job.descriptor)
    machine = sandbox.ad_at(sandbox.MACHINE_AD, job.descriptor, _MACHINE_AD_LIMIT) if node.vacate is not None else b""
    given = cron_state.seconds(raw_values(machine, (_VACATE,)).get(_VACATE, ""))
    vacate = None if given is None or given == node.vacate else min(given, node.largest)
    return ReportedRun(job, report, reasons_line(refused), has_hooks, part, tuple(lines), vacate)


def collect(
    jobs: Iterable[JobSandbox], node: CronNode, observer: Observer | None = None, owners: OwnersRecord | None = None
) -> Published:
    """Read the reports of all these jobs, look at their processes, and write the ad of each slot.

    Where a directory that an earlier run left behind names the same slot, the later run counts. observer: None where
    the site does not want its jobs to be looked at. owners: where pilots may return some of their cores.
    """
    runs: dict[str, ReportedRun] = {}
    patience = Patience(PATIENCE)
    for job in jobs:
        if job.slot not in runs or (runs[job.slot].job.started or 0) <= (job.started or 0):
            runs[job.slot] = read_run(job, node, patience)
    if observer is not None:
        _observe(observer, runs.values(), node)
    limit = node.settings.heartbeat_limit
    live = "\n".join(f"{name} = {text}" for name, text in classad_expressions(limit).items())
    published: Published = {}
    for slot, run in runs.items():
        seen = None if observer is None else observer.seen.get(run.job.job)
        lines = _slot_lines(run, node, seen, live, owners)
        published[slot] = (slot_ad("\n".join(lines), run.job) if lines else "", run.refused)
        if run.vacate is not None:
            published[f"vacate-{slot}"] = (slot_ad(f"{names.CLAIM_VACATE} = {run.vacate}", run.job), "")
    return published


def _observe(observer: Observer, runs: Collection[ReportedRun], node: CronNode) -> None:
    from drainwise.node.payloads.observer import KeptCores, ObservedRun, claimed_cores  # noqa: PLC0415 - as `_observer`

    def starters(table: ProcessTable) -> tuple[dict[str, tuple[int, ...]], tuple[int, ...]]:
        # A directory that an earlier run left behind never leads to another's processes.
        found: dict[str, tuple[int, ...]] = {}
        for run in runs:
            starter = table.process(run.job.starter)
            if starter is not None and starter.parent == node.startd:
                try:
                    if is_starter(str(run.job.starter), node.startd, posix.geteuid()):
                        found[run.job.job] = (run.job.starter,)
                except OSError:
                    continue
        return found, ()

    observed = {}
    for run in runs:
        job, part = run.job, run.part
        if job.started is not None:
            claimed = claimed_cores(run.report, job.cores, job.started, node.now, node.settings.heartbeat_limit)
            kept = KeptCores(job.cores - part.cores, part.since) if part is not None and part.cores else None
            observed[job.job] = ObservedRun(job.cores, job.started, claimed, kept)
    observer.look(observed, starters, node.settings.text("payload_patterns"), node.now)


def _slot_lines(
    run: ReportedRun, node: CronNode, seen: SeenJob | None, live: str, owners: OwnersRecord | None
) -> list[str]:
    """Write the attributes of a run's slot. seen: of its processes; live: the expressions that go with a report."""
    job, report, limit = run.job, run.report, node.settings.heartbeat_limit
    lines = []
    if seen is not None and seen.told is not None and seen.has_worked:
        from drainwise.node.payloads.observer import is_weak  # noqa: PLC0415 - there already

        if is_weak(report, job.cores, job.started, node.now, limit):
            report = observed_report(seen.told)
    if report is not None:
        refuted = seen is not None and seen.contradicts(node.now, node.settings.contradictory_after)
        lines.append(report_ad(report, job, node.now, limit, refuted, run.part) + live)
    if owners is not None and run.part is not None:
        from drainwise.htcondor.node.parts import returned_by  # noqa: PLC0415 - there already

        lines.append(returned_by(run.part, job, owners.since(job, seen, node.now), owners.age))
    if (report is None or report.source == PROCESSES) and run.has_hooks:
        lines.append(f"{names.HOOK_RAN} = true")
    if seen is not None and seen.told is not None:
        lines.append(f'{OBSERVATION} = "{observation_text(seen.told)}"')
    return [*lines, *run.lines]


def node_ad(
    since: int | None,
    unusable: Iterable[str] = (),
    hooks: int = 0,
    wall_limit: int | None = None,
    guarded: Iterable[str] = (),
) -> str:
    """Write what is published on all slots of the node beside the time: version, `unusable` files.

    since, hooks: since when the node takes orders and has the hooks, as far as that is known (UNIX s). wall_limit: of
    the jobs on nodes of this kind, seconds, where the site has limits by kind. guarded: attributes that decide, each
    with the value of a slot without a report, or undefined: somebody with level WRITE may set what nobody publishes.
    """
    lines = [] if since is None else [f"{names.ORDERS_SINCE} = {since}"]
    lines += [f"{names.HOOKS_SINCE} = {hooks}"] if hooks else []
    lines += [f"{names.WALL_LIMIT} = {wall_limit}"] if wall_limit else []
    for word in guarded:
        name, _, value = word.partition("=")
        lines.append(f"{name} = {value or 'undefined'}")
    lines += [f'{names.CRON_VERSION} = "{__version__}"', f'{names.UNUSABLE} = "{" ".join(unusable)}"', ""]
    return "\n".join(lines)


def output(
    published: Published, marks: Remembered, before: Remembered, now: int, node: str = "", is_news: bool = False
) -> str:
    """Write a round's whole output: the node's own heartbeat, `node_ad`, reports, retractions.

    Only an ad that `marks` calls for, and the node's where it `is_news`, asks to be sent to the collector at once; the
    others go with the startd's next update.
    """
    parts = [f"{names.CRON_HEARTBEAT} = {now}\n{node}- {NODE_TAG}{' update:true' if is_news else ''}"]
    for slot, (ad, _) in published.items():
        if ad:
            push = "" if before.get(slot, NOTHING)[0] == marks[slot][0] else " update:true"
            # The time of a run that has returned cores stands apart: by itself it is no change that would be sent.
            at = f"\n{names.RETURNED_AT} = {now}" if f'\n{names.RETURNED_BY} = "' in ad else ""
            parts.append(f"{ad}{at}\n- {slot}{push}")
    gone = [slot for slot, (ad, *_) in before.items() if ad != NOTHING[0] and not published.get(slot, ("",))[0]]
    parts += [f"SlotMergeConstraint = false\n- {slot} update:true" for slot in gone]
    return "\n".join(parts) + "\n"


def run(knobs: dict[str, str]) -> None:
    """Run one round: read, print, log what was newly refused, remember. `knobs` are the cron's options."""
    settings, now = settings_or_defaults(knobs["settings"]), int(time.time())
    file = cron_state.state_of(knobs["state"], posix.getppid())
    vacate, period, updates = (cron_state.seconds(knobs.get(name, "")) for name in ("vacate", "period", "updates"))
    before, possible = cron_state.remembered(file), cron_state.orders_possible(knobs)
    since, largest = before.since, max(before.vacate, vacate or 0)
    if possible is not None:
        placed = cron_state.placed_at(knobs.get("config-dirs", ""), knobs.get("drop-in", ""))
        since = cron_state.orders_since(before.since, before.found, possible, placed, now)
    unusable = cron_state.unusable_files(knobs["settings"])
    try:
        hooks = cron_state.hooks_since(file, period or 0, now, unusable)
    except OSError:
        hooks = 0  # where nothing can be kept, one line says so of the state itself
    observer = owners = None
    if settings.is_observing:
        from drainwise.node.payloads.observer import Observer  # noqa: PLC0415 - a site without pays nothing

        observer = Observer(cron_state.kept_lines(f"{file}-seen") or ())
    if settings.is_returning_parts:
        from drainwise.htcondor.node.parts import OwnersRecord  # noqa: PLC0415 - only where pilots may return cores

        owners = OwnersRecord(f"{file}-owners", _BELIEVED * (period or 0))
    node = CronNode(posix.getppid(), now, settings, vacate, largest, hooks)
    published = collect(open_jobs(knobs["execute"], node.startd), node, observer, owners)
    marks = cron_state.marks_of(published, before.marks, now, names.USUAL_INTERVAL if updates is None else updates)
    limit = settings.of_node("").whole("wall_limit_secs") if settings.kinds else None
    of_node = node_ad(None if possible is None else since, unusable, hooks, limit, knobs.get("guarded", "").split())
    sent = cron_state.checksum(of_node) if since is not None else before.node
    write_output(output(published, marks, before.marks, now, of_node, sent != before.node).encode("ascii"))
    for slot, (_, refused) in published.items():
        if refused and before.marks.get(slot, NOTHING)[1] != marks[slot][1]:
            say(f"{slot}: {refused}")
    after = CronState(since, largest, marks, before.found, sent)
    if after != before:
        cron_state.remember(file, after)
    if observer is not None and observer.has_looked:
        cron_state.replace_file(f"{file}-seen", "\n".join([*observer.record(), ""]))
    if owners is not None:
        owners.remember()


def main(arguments: list[str]) -> NoReturn:
    """Run the cron and end: `--execute DIR --state FILE --settings FILE`, and `cron_state.options`, in any order."""
    run_to_end(lambda: run(cron_state.options(arguments)))
