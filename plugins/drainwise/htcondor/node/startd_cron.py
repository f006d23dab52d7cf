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

from drainwise import __version__
from drainwise.common.mounts import fuse_mounts_below
from drainwise.facts.errors import RefusedFile
from drainwise.facts.waste import classad_expressions
from drainwise.htcondor.node import (
    CLAIM_VACATE,
    CLIENT,
    CRON_HEARTBEAT,
    CRON_VERSION,
    HOOK_RAN,
    HOOKS_SINCE,
    ORDERS_SINCE,
    RETURNED_AT,
    RETURNED_BY,
    UNUSABLE,
    USUAL_INTERVAL,
    WALL_LIMIT,
    sandbox,
)
from drainwise.htcondor.node import knobs as node_knobs
from drainwise.htcondor.node.cron_record import NODE_TAG, NOTHING, checksum, marks_of, remember, remembered
from drainwise.htcondor.node.hooks_since import hook_ran, hooks_since, unusable_files
from drainwise.htcondor.node.job_directories import children_of, job_directory_names, open_job_directory
from drainwise.node import JOB_STATUS
from drainwise.node.ad_text import raw_values
from drainwise.node.hook import read_bounded, run_to_end, say, settings_or_defaults, write_output
from drainwise.node.payloads.claims import contradicts
from drainwise.pilotad.attributes import (
    ATTRIBUTES,
    GLIDEIN_AD,
    HEARTBEAT,
    OBSERVATION,
    PROCESSES,
    REPORTED_BY,
    STANDING,
)
from drainwise.pilotad.node_reader import read_glidein_ad, read_report, reasons_line
from drainwise.pilotad.observation import observation_text, observed_report
from drainwise.pilotad.report import CONTRADICTORY, INCOMPLETE, STALE, PilotReport, bounded, standing
from drainwise.pilotad.safe_open import Patience

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import NoReturn

    from drainwise.facts.client_rules import ClientRules
    from drainwise.facts.clients import ClientProfile
    from drainwise.htcondor.node.cron_record import Published, Remembered
    from drainwise.htcondor.node.job_directories import JobSandbox
    from drainwise.htcondor.node.observed_slots import ObservedSlots
    from drainwise.htcondor.node.parts import OwnersRecord
    from drainwise.node.settings import NodeSettings
    from drainwise.pilotad.partial_return import ReturnedPart

PATIENCE = 1.0  # seconds; what a whole round waits for files that are being written or locked
_MACHINE_AD_LIMIT = 1 << 18  # bytes
_VACATE = "MachineMaxVacateTime"
_BELIEVED = 3  # periods; so old may be what was read of returned cores


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


def _open_jobs(execute: int, startd: int) -> Iterator[JobSandbox]:
    """Yield the jobs below the open $(EXECUTE), each open as long as the caller looks at it."""
    blocked = fuse_mounts_below(posix.readlink(f"/proc/self/fd/{execute}"))
    children = children_of(startd)
    for name in job_directory_names(execute):
        if blocked and any(f"/{name}/" in f"{mount}/" for mount in blocked):
            continue  # a file system served by a user can hold us for ever
        try:
            job = open_job_directory(execute, name, startd, children)
        except RefusedFile:
            continue  # the job has not begun, has just gone, or has no directory that we may enter
        if job is not None:
            try:
                yield job
            finally:
                posix.close(job.descriptor)


def claims_vacate_time(job: JobSandbox) -> int | None:
    """Read the MachineMaxVacateTime (s) of the job's claim from its sandbox; None when it is not stated there."""
    try:
        ad = read_bounded(sandbox.MACHINE_AD, _MACHINE_AD_LIMIT, job.descriptor)
    except OSError:
        return None
    return node_knobs.seconds(raw_values(ad, (_VACATE,)).get(_VACATE, ""))


def vacate_ad(job: JobSandbox, configured: int | None, largest: int) -> str:
    """Write the slot's attribute for a claim with another MachineMaxVacateTime than a new one; "" for any other.

    configured: what a new claim is given (s), None when unknown; largest: the most that this node ever had.
    """
    given = None if configured is None else claims_vacate_time(job)
    if given is None or given == configured:
        return ""
    return slot_ad(f"{CLAIM_VACATE} = {min(given, largest)}", job)


def collect(
    execute: str,
    startd: int,
    now: int,
    heartbeat_limit: int,
    vacate: int | None = None,
    largest: int = 0,
    hooks: int = 0,
    observed: ObservedSlots | None = None,
    clients: ClientRules | None = None,
    owners: OwnersRecord | None = None,
) -> Published:
    """Read the reports of all jobs below $(EXECUTE); a job that cannot be read costs only its own report.

    Where a directory that an earlier run left behind names the same slot, the later run counts. vacate, largest: see
    `vacate_ad`. hooks: see `hooks_since`. observed: None where the site does not want its jobs to be looked at.
    clients: where rows ask for attributes of jobs. owners: where pilots may return some of their cores.
    Raises OSError when $(EXECUTE) itself cannot be read.
    """
    if owners is not None:
        from drainwise.htcondor.node import parts as returning  # noqa: PLC0415 - only where pilots may return cores

    published: Published = {}
    started: dict[str, int] = {}
    patience = Patience(PATIENCE)
    live = "\n".join(f"{name} = {text}" for name, text in classad_expressions(heartbeat_limit).items())
    descriptor = posix.open(execute, posix.O_RDONLY | posix.O_DIRECTORY | posix.O_CLOEXEC)
    try:
        for job in _open_jobs(descriptor, startd):
            start = job.started or 0
            if started.get(job.slot, 0) > start:
                continue
            started[job.slot] = start
            report, refused = read_report(job.descriptor, job.uid, job.cores, JOB_STATUS, patience)
            if report is None or standing(report, now, heartbeat_limit, job.started) == STALE:
                report = read_glidein_ad(job.descriptor, job.uid, job.cores, JOB_STATUS, patience) or report
            is_weak = _is_weak(report, job, now, heartbeat_limit)
            is_own = report is not None and report.source != GLIDEIN_AD and not is_weak
            part = None if owners is None else returning.stated_part(report, job, now, heartbeat_limit)
            seen, refuted = None, False
            if observed is not None:
                claimed = report.used_cpu if report is not None and is_own else None
                kept = None if part is None else returning.kept_cores(part, job)
                seen = observed.of(job, now, claimed, kept)
                refuted = seen is not None and contradicts(seen.wrong, now, observed.contradictory_after)
            if seen is not None and seen.told is not None and seen.has_worked and is_weak:
                report = observed_report(seen.told)
            parts = [report_ad(report, job, now, heartbeat_limit, refuted, part) + live] if report is not None else []
            if owners is not None and part is not None:
                parts.append(returning.returned_by(part, job, owners.since(job, seen, now), owners.age))
            if (report is None or report.source == PROCESSES) and start < hooks and hook_ran(job.descriptor):
                parts.append(f"{HOOK_RAN} = true")
            if seen is not None and seen.told is not None:
                parts.append(f'{OBSERVATION} = "{observation_text(seen.told)}"')
            if clients is not None and (client := _client_of(job, clients)) is not None:
                parts.append(f'{CLIENT} = "{client.name}"')
            published[job.slot] = (slot_ad("\n".join(parts), job) if parts else "", reasons_line(refused))
            if given := vacate_ad(job, vacate, largest):
                published[f"vacate-{job.slot}"] = (given, "")
    finally:
        posix.close(descriptor)
    return published


def _client_of(job: JobSandbox, rules: ClientRules) -> ClientProfile | None:
    from drainwise.htcondor.node.job_client import client_of_job  # noqa: PLC0415 - only where the site has such rows

    return client_of_job(sandbox.JOB_AD, rules, job.descriptor)


def _is_weak(report: PilotReport | None, job: JobSandbox, now: int, heartbeat_limit: int) -> bool:
    """Decide whether what the node saw comes before a report: there is none, it is old, or it lacks a figure."""
    return report is None or standing(report, now, heartbeat_limit, job.started, job.cores) in {STALE, INCOMPLETE}


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
    orders = "" if since is None else f"{ORDERS_SINCE} = {since}\n"
    orders += f"{HOOKS_SINCE} = {hooks}\n" if hooks else ""
    orders += f"{WALL_LIMIT} = {wall_limit}\n" if wall_limit else ""
    for word in guarded:
        name, _, value = word.partition("=")
        orders += f"{name} = {value or 'undefined'}\n"
    return f'{orders}{CRON_VERSION} = "{__version__}"\n{UNUSABLE} = "{" ".join(unusable)}"\n'


def output(
    published: Published, marks: Remembered, before: Remembered, now: int, node: str = "", is_news: bool = False
) -> str:
    """Write a round's whole output: the node's own heartbeat, `node_ad`, reports, retractions.

    Only an ad that `marks` calls for, and the node's where it `is_news`, asks to be sent to the collector at once; the
    others go with the startd's next update.
    """
    parts = [f"{CRON_HEARTBEAT} = {now}\n{node}- {NODE_TAG}{' update:true' if is_news else ''}"]
    for slot, (ad, _) in published.items():
        if ad:
            push = "" if before.get(slot, NOTHING)[0] == marks[slot][0] else " update:true"
            parts.append(f"{_with_time(ad, now)}\n- {slot}{push}")
    gone = [slot for slot, (ad, *_) in before.items() if ad != NOTHING[0] and not published.get(slot, ("",))[0]]
    parts += [f"SlotMergeConstraint = false\n- {slot} update:true" for slot in gone]
    return "\n".join(parts) + "\n"


def _with_time(ad: str, now: int) -> str:
    """Return a slot's ad with the time of this round (UNIX s) where it names a run that has returned cores.

    It stands apart from the ad: by itself it is no change that would be sent at once.
    """
    return f"{ad}\n{RETURNED_AT} = {now}" if f'\n{RETURNED_BY} = "' in ad else ad


def run(knobs: dict[str, str]) -> None:
    """Run one round: read, print, log what was newly refused, remember. `knobs` are the cron's options."""
    settings, now = settings_or_defaults(knobs["settings"]), int(time.time())
    before, possible = remembered(knobs["state"]), node_knobs.orders_possible(knobs)
    since, vacate = before.since, node_knobs.seconds(knobs.get("vacate", ""))
    if possible is not None:
        placed = node_knobs.placed_at(knobs.get("config-dirs", ""), knobs.get("drop-in", ""))
        since = node_knobs.orders_since(before.since, before.found, possible, placed, now)
    unusable = unusable_files(knobs["settings"])
    try:
        hooks = hooks_since(knobs["state"], node_knobs.seconds(knobs.get("period", "")) or 0, now, unusable)
    except OSError:
        hooks = 0  # where nothing can be kept, one line says so of the state itself
    largest, startd = max(before.vacate, vacate or 0), posix.getppid()
    observed = _observed(knobs["state"], startd, settings)
    clients = settings.clients if settings.clients is not None and settings.clients.attributes() else None
    owners = _owners(knobs) if settings.is_returning_parts else None
    published = collect(
        *(knobs["execute"], startd, now, settings.heartbeat_limit, vacate, largest, hooks, observed, clients),
        owners=owners,
    )
    pause = node_knobs.seconds(knobs.get("updates", ""))
    marks = marks_of(published, before.marks, now, USUAL_INTERVAL if pause is None else pause)
    orders = None if possible is None else since
    limit = settings.of_node("").whole("wall_limit_secs") if settings.kinds else None
    node = node_ad(orders, unusable, hooks, limit, knobs.get("guarded", "").split())
    sent = checksum(node) if since is not None else before.node
    write_output(output(published, marks, before.marks, now, node, sent != before.node).encode("ascii"))
    for slot, (_, refused) in published.items():
        if refused and before.marks.get(slot, NOTHING)[1] != marks[slot][1]:
            say(f"{slot}: {refused}")
    if (since, largest, marks, sent) != (before.since, before.vacate, before.marks, before.node):
        remember(knobs["state"], since, largest, marks, sent)
    if observed is not None:
        observed.remember()
    if owners is not None:
        owners.remember()


def _observed(state: str, startd: int, settings: NodeSettings) -> ObservedSlots | None:
    if not settings.is_observing:
        return None
    from drainwise.htcondor.node.observed_slots import ObservedSlots  # noqa: PLC0415 - a site without pays nothing
    from drainwise.node.payloads.payload_profiles import site_rows  # noqa: PLC0415

    return ObservedSlots(
        f"{state}-seen", startd, site_rows(settings.text("payload_patterns")), settings.contradictory_after
    )


def _owners(knobs: dict[str, str]) -> OwnersRecord:
    from drainwise.htcondor.node.parts import OwnersRecord  # noqa: PLC0415 - only where pilots may return cores

    return OwnersRecord(f"{knobs['state']}-owners", _BELIEVED * (node_knobs.seconds(knobs.get("period", "")) or 0))


def main(arguments: list[str]) -> NoReturn:
    """Run the cron and end: `--execute DIR --state FILE --settings FILE`, and knobs of `node_knobs`, in any order."""
    run_to_end(lambda: run(node_knobs.options(arguments)))
