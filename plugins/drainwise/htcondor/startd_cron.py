"""The startd cron: publishes what each pilot on this node says of itself, into exactly its slot.

One short run per period, as HTCondor's own user. It prints an ad per job that reports, closed by `- <slot> …`; a slot
whose pilot has gone is retracted by an ad that matches no slot, because a tag that is merely no longer printed keeps
its values for ever. What it printed last is remembered in a small state file, also to push only what changed.
"""

from __future__ import annotations

import binascii
import posix
import time

from drainwise.errors import RefusedFile
from drainwise.htcondor.hooks_since import HOOK_RAN, hook_ran, hooks_since
from drainwise.htcondor.job_directories import children_of, job_directory_names, open_job_directory
from drainwise.node import JOB_STATUS
from drainwise.node.hook import read_bounded, run_to_end, say, settings_or_defaults, write_output
from drainwise.pilotad.attributes import ATTRIBUTES, HEARTBEAT
from drainwise.pilotad.mounts import fuse_mounts_below
from drainwise.pilotad.node_reader import read_report, reasons_line
from drainwise.pilotad.patience import Patience
from drainwise.pilotad.report import CONTRADICTORY, STALE, PilotReport, bounded, standing
from drainwise.waste import classad_expressions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import NoReturn

    from drainwise.htcondor.job_directories import JobDirectory

    Published = dict[str, tuple[str, str]]  # slot name -> (text of its ad, what was refused in its report)
    Remembered = dict[str, tuple[str, str]]  # slot name -> (checksum of its ad, checksum of what was refused)

PATIENCE = 1.0  # seconds; what a whole round waits for files that are being written or locked
STATE_LIMIT = 1 << 20
NODE_TAG = "drainwise"


def literal(value: float | bool | None) -> str:
    """A value as a ClassAd literal; unknown is `undefined`, so that nothing of an earlier report shines through."""
    if value is None:
        return "undefined"
    return ("false", "true")[value] if isinstance(value, bool) else repr(value)


def report_ad(report: PilotReport, job: JobDirectory, now: int, heartbeat_limit: int) -> str:
    """The attributes of one slot as the pilot stated them, each bounded.

    A report that is stale (also: left by an earlier run) or contradicts itself keeps its heartbeat and its standing
    only: it lost its protection.
    """
    state = standing(report, now, heartbeat_limit, job.started)
    if state in {CONTRADICTORY, STALE}:
        report = PilotReport(report.heartbeat)
    # The run's age bounds the live expressions: here it would make every round a change that is pushed.
    known = bounded(report, job.cores, 0, None, now)
    lines = [f"{row.published} = {literal(getattr(known, row.field))}\n" for row in ATTRIBUTES]
    return f'{HEARTBEAT} = {report.heartbeat}\nPilotReportStanding = "{state}"\n{"".join(lines)}'


def slot_ad(body: str, job: JobDirectory) -> str:
    """The ad aimed at one slot, and there only at this job: the next job in the slot must not inherit it."""
    return f'SlotMergeConstraint = Name == "{job.slot}" && GlobalJobId =?= "{job.job}"\n{body}'


def _open_jobs(execute: int, startd: int) -> Iterator[JobDirectory]:
    """The jobs below the open $(EXECUTE), each open as long as the caller looks at it."""
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


def collect(execute: str, startd: int, now: int, heartbeat_limit: int, since: int = 0) -> Published:
    """Read the reports of all jobs below $(EXECUTE); a job that cannot be read costs only its own report.

    Where a directory that an earlier run left behind names the same slot, the later run counts. since: from when on
    (UNIX s) jobs find the hooks. Raises OSError when $(EXECUTE) itself cannot be read.
    """
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
            if report is not None:
                body = report_ad(report, job, now, heartbeat_limit) + live
            else:
                body = HOOK_RAN if start < since and hook_ran(job.descriptor) else ""
            published[job.slot] = (slot_ad(body, job) if body else "", reasons_line(refused))
    finally:
        posix.close(descriptor)
    return published


def checksum(text: str) -> str:
    """A short mark by which a later round sees a change."""
    return f"{binascii.crc32(text.encode()):08x}"


def remembered(state: str) -> Remembered:
    """What the last round printed; empty when there was none or its record is broken."""
    try:
        lines = read_bounded(state, STATE_LIMIT).decode("ascii", "replace").splitlines()
    except OSError:
        return {}
    rows = (line.split(" ") for line in lines)
    return {row[0]: (row[1], row[2]) for row in rows if len(row) == 3}


def remember(state: str, marks: Remembered) -> None:
    """Keep what this round printed, as a whole or not at all; raises OSError."""
    with open(f"{state}.new", "wb") as stream:
        stream.write("".join([f"{slot} {ad} {refused}\n" for slot, (ad, refused) in marks.items()]).encode("ascii"))
    posix.rename(f"{state}.new", state)


def marks_of(published: Published) -> Remembered:
    """What a round remembers of what it prints."""
    return {slot: (checksum(ad), checksum(refused)) for slot, (ad, refused) in published.items()}


def output(published: Published, marks: Remembered, before: Remembered, now: int, hooks: int = 0) -> str:
    """The whole of a round's output: the node's heartbeat, since when it has `hooks`, the reports, and the retractions.

    Only an ad that changed asks to be sent to the collector at once; the others go with the startd's next update.
    """
    known = f"PilotHooksSince = {hooks}\n" if hooks else ""
    parts = [f"PilotCronHeartbeat = {now}\n{known}- {NODE_TAG}"]
    nothing = (checksum(""), "")
    for slot, (ad, _) in published.items():
        if ad:
            push = "" if before.get(slot, nothing)[0] == marks[slot][0] else " update:true"
            parts.append(f"{ad}\n- {slot}{push}")
    gone = [slot for slot, (ad, _) in before.items() if ad != nothing[0] and not published.get(slot, ("",))[0]]
    parts += [f"SlotMergeConstraint = false\n- {slot} update:true" for slot in gone]
    return "\n".join(parts) + "\n"


def run(execute: str, state: str, settings_path: str, period: int) -> None:
    """One round: read, print, say what was newly refused, remember."""
    settings, now = settings_or_defaults(settings_path), int(time.time())
    before = remembered(state)
    try:
        since = hooks_since(state, period, now)
    except OSError:
        since = 0  # where nothing can be kept, one line says so of the state itself
    published = collect(execute, posix.getppid(), now, settings.heartbeat_limit, since)
    marks = marks_of(published)
    write_output(output(published, marks, before, now, since).encode("ascii"))
    for slot, (_, refused) in published.items():
        if refused and before.get(slot, ("", ""))[1] != marks[slot][1]:
            say(f"{slot}: {refused}")
    if marks != before:
        remember(state, marks)


def main(arguments: list[str]) -> NoReturn:
    """`--execute DIR --state FILE --settings FILE [--period SECONDS]`, in any order; ends this process."""
    options = dict(zip(arguments[::2], arguments[1::2]))
    period = options.get("--period", "")
    seconds = int(period) if period.isdigit() else 0
    run_to_end(lambda: run(options["--execute"], options["--state"], options["--settings"], seconds))
