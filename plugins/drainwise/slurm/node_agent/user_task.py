"""Do per-user tasks: as a job's user, write the site notice into its directories and read the pilot's report there.

`$JOBSTATUS` lies in the job's tree and is no other job's. The directory that a job was submitted from may be shared by
all its user's jobs on all nodes, and lie on a file server: it is looked at only for a job that says nothing in
$JOBSTATUS, after everything else is done, and believed only when no other job of that user here has the same.

For a job that says nothing anywhere, the files of its glidein say it, where it is one: see `glideins`.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from drainwise.facts.errors import FeatureError, RefusedFile
from drainwise.node import JOB_STATUS
from drainwise.node.site_notice import bring_site_ad
from drainwise.pilotad.attributes import JOBSTATUS, PILOT_AD
from drainwise.pilotad.node_reader import read_report, reasons_line
from drainwise.pilotad.report import PilotReport, as_plain, from_plain
from drainwise.pilotad.safe_open import Patience, open_dir, reason_of
from drainwise.pilotad.site_ad import SiteAd
from drainwise.slurm.node_agent.glideins import report_of_startds, startds
from drainwise.slurm.node_agent.work_dir_ad import remove_left_over

PATIENCE = 1.0
"""Seconds that all jobs of a user together may make a round wait for locks and for files that are being written."""
SHARED = f"WorkDir: {PILOT_AD}: another job has the same directory"
_AS_JSON = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode
_LINES = 16
"""Results that are sent at a time: what is not sent is lost with the child."""


@dataclass(frozen=True)
class UserTask:
    """A task for one job. `key`: how its result names it. `tree`: a descriptor of its tree.

    notice: the content of its `.site.ad` (None: no such file). cores: of the lease, None when its report is not wanted.
    work_dir: where its `.pilot.ad` may be, b"" when it is not to be looked for; `shared` with another job. started:
    UNIX s. job: its number, "" when its glidein is not to be looked for. stale: a report of before that counts as none,
    UNIX s.
    """

    key: str
    tree: int
    uid: int
    notice: SiteAd | None
    cores: int | None
    work_dir: bytes
    shared: bool
    started: int
    job: str = ""
    stale: int = 0


@dataclass(frozen=True)
class UserTaskResult:
    """The result of a task. report: not judged nor bounded yet. refused, fault: one line each, "" for nothing."""

    report: PilotReport | None
    refused: str
    fault: str
    in_work_dir: bool = False


def run_tasks(tasks: Iterable[UserTask], send: Callable[[bytes], None]) -> None:
    """Do all tasks as the user that this process is by now, and send a line for each that is done.

    What may never end comes last, so that it costs nothing but itself.
    """
    patience = Patience(PATIENCE)
    later, lines = [], []
    for task in tasks:
        found = _in_tree(task, patience)
        lines.append(result_line(task.key, found))
        if len(lines) == _LINES:
            send(b"".join(lines))
            lines = []
        if is_silent(task, found) and task.cores is not None and (task.work_dir or task.job):
            later.append((task, found))
    send(b"".join(lines))
    silent = []
    for task, in_tree in later:
        found = in_tree
        if task.work_dir and found.report is None:
            found = _in_work_dir(task, found, patience)
            send(result_line(task.key, found))
        if task.job and is_silent(task, found):
            silent.append((task, found))
    if silent:
        _in_glideins(silent, send)


def _in_tree(task: UserTask, patience: Patience) -> UserTaskResult:
    fault, report = "", None
    refused: tuple[str, ...] = ()
    try:
        directory = open_dir(JOB_STATUS, task.tree, task.uid)
    except RefusedFile as error:
        return UserTaskResult(None, f"{JOBSTATUS}: {error.reason}", "")
    try:
        try:
            bring_site_ad(directory, task.notice)
        except FeatureError as error:
            fault = str(error)
        if task.cores is not None:
            report, refused = read_report(directory, task.uid, task.cores, "", patience)
    finally:
        os.close(directory)
    return UserTaskResult(report, reasons_line(refused), fault)


def _in_work_dir(task: UserTask, before: UserTaskResult, patience: Patience) -> UserTaskResult:
    """Read the `.pilot.ad` there, unless it is from before the job's start: then an earlier job left it."""
    try:
        # As the user: wherever his links lead, no further than he gets himself.
        directory = os.open(task.work_dir, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        reason = reason_of(error)
        return (
            before if reason == "absent" else UserTaskResult(None, before.refused or f"WorkDir: {reason}", before.fault)
        )
    try:
        report, refused = read_report(directory, task.uid, task.cores or 1, None, patience)
        if not task.shared:
            remove_left_over(directory, task.uid, int(time.time()))
    finally:
        os.close(directory)
    if report is not None and report.heartbeat < task.started:
        return before
    if task.shared:
        said = SHARED if report is not None else ""
        return UserTaskResult(None, before.refused or said, before.fault)
    return UserTaskResult(report, before.refused or reasons_line(refused), before.fault, in_work_dir=True)


def is_silent(task: UserTask, found: UserTaskResult) -> bool:
    """Decide whether nothing that is fresh was found."""
    return found.report is None or found.report.heartbeat < task.stale


def _in_glideins(silent: list[tuple[UserTask, UserTaskResult]], send: Callable[[bytes], None]) -> None:
    """Send what the files of the jobs' glideins say; one pass through the processes for all of them."""
    there = startds(os.geteuid(), {task.job for task, _ in silent})
    now = int(time.time())
    for task, before in silent:
        pids = there.get(task.job)
        if pids:
            report, refused = report_of_startds(pids, task.uid, task.cores or 1, task.started, now)
            found = UserTaskResult(report or before.report, before.refused or refused, before.fault)
            send(result_line(task.key, found))


def result_line(key: str, found: UserTaskResult) -> bytes:
    """Return a result as a line."""
    report = None if found.report is None else as_plain(found.report)
    answer = [key, report, found.refused, found.fault, found.in_work_dir]
    return _AS_JSON(answer).encode("ascii") + b"\n"


def result_in(line: bytes) -> tuple[str, UserTaskResult]:
    """Read a result out of its line. Raises ValueError for anything else."""
    try:
        key, values, refused, fault, in_work_dir = json.loads(line)
        report = None if values is None else from_plain(values)
        return str(key), UserTaskResult(report, str(refused), str(fault), bool(in_work_dir))
    except (AttributeError, KeyError, OverflowError, RecursionError, TypeError, ValueError) as error:
        raise ValueError(f"no result of a task: {error}") from None
