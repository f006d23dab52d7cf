"""What is done in a job's own directories, as its user: the site's word is written there, the pilot's report is read.

`$JOBSTATUS` lies in the job's tree and is no other job's. The directory that a job was submitted from may be shared by
all its user's jobs on all nodes, and lie on a file server: it is looked at only for a job that says nothing in
$JOBSTATUS, after everything else is done, and believed only when no other job of that user here has the same.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from drainwise.errors import FeatureError, RefusedFile
from drainwise.node import JOB_STATUS
from drainwise.node.tell import tell_pilot
from drainwise.pilotad.attributes import ATTRIBUTES, JOBSTATUS, PILOT_AD
from drainwise.pilotad.node_reader import read_report, reasons_line
from drainwise.pilotad.patience import Patience
from drainwise.pilotad.report import PilotReport
from drainwise.pilotad.safe_open import open_dir, reason_of
from drainwise.pilotad.site_ad import SiteAd

PATIENCE = 1.0
"""Seconds that all jobs of a user together may make a round wait for locks and for files that are being written."""
_LINES = 16
"""Answers that are sent at a time: what is not sent is lost with the child."""


@dataclass(frozen=True)
class Errand:
    """What to do for one job. `key`: how the answer names it. `tree`: a descriptor of its tree.

    word: what its `.site.ad` is to say (None: no such file). cores: of the lease, None when its report is not wanted.
    work_dir: where its `.pilot.ad` may be, b"" when it is not to be looked for; `shared` with another job. started:
    UNIX s.
    """

    key: str
    tree: int
    uid: int
    word: SiteAd | None
    cores: int | None
    work_dir: bytes
    shared: bool
    started: int


@dataclass(frozen=True)
class Found:
    """What came of an errand. report: not judged nor bounded yet. refused, fault: one line each, "" for nothing."""

    report: PilotReport | None
    refused: str
    fault: str
    in_work_dir: bool = False


def run_errands(errands: Iterable[Errand], send: Callable[[bytes], None]) -> None:
    """Do them all, as the user that this process is by now, and send a line for each that is done.

    What may never end comes last, so that it costs nothing but itself.
    """
    patience = Patience(PATIENCE)
    later, lines = [], []
    for errand in errands:
        found = _in_tree(errand, patience)
        lines.append(line_of(errand.key, found))
        if len(lines) == _LINES:
            send(b"".join(lines))
            lines = []
        if found.report is None and errand.work_dir and errand.cores is not None:
            later.append((errand, found))
    send(b"".join(lines))
    for errand, found in later:
        send(line_of(errand.key, _in_work_dir(errand, found, patience)))


def _in_tree(errand: Errand, patience: Patience) -> Found:
    fault, report = "", None
    refused: tuple[str, ...] = ()
    try:
        directory = open_dir(JOB_STATUS, errand.tree, errand.uid)
    except RefusedFile as error:
        return Found(None, f"{JOBSTATUS}: {error.reason}", "")
    try:
        try:
            tell_pilot(directory, errand.word)
        except FeatureError as error:
            fault = str(error)
        if errand.cores is not None:
            report, refused = read_report(directory, errand.uid, errand.cores, "", patience)
    finally:
        os.close(directory)
    return Found(report, reasons_line(refused), fault)


def _in_work_dir(errand: Errand, before: Found, patience: Patience) -> Found:
    """The `.pilot.ad` there, unless it is from before the job's start: then an earlier job left it."""
    try:
        # As the user: wherever his links lead, no further than he gets himself.
        directory = os.open(errand.work_dir, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        reason = reason_of(error)
        return before if reason == "absent" else Found(None, before.refused or f"WorkDir: {reason}", before.fault)
    try:
        report, refused = read_report(directory, errand.uid, errand.cores or 1, None, patience)
    finally:
        os.close(directory)
    if report is not None and report.heartbeat < errand.started:
        return before
    if errand.shared:
        said = f"WorkDir: {PILOT_AD}: another job has the same directory" if report is not None else ""
        return Found(None, before.refused or said, before.fault)
    return Found(report, before.refused or reasons_line(refused), before.fault, in_work_dir=True)


_FIELDS = tuple(row.field for row in ATTRIBUTES)


def line_of(key: str, found: Found) -> bytes:
    """An answer as a line."""
    report = found.report
    values = None if report is None else [report.heartbeat, *(getattr(report, field) for field in _FIELDS)]
    answer = [key, values, found.refused, found.fault, found.in_work_dir]
    return json.dumps(answer, separators=(",", ":"), allow_nan=False).encode("ascii") + b"\n"


def answer_in(line: bytes) -> tuple[str, Found]:
    """An answer out of its line. Raises ValueError for anything else."""
    try:
        key, values, refused, fault, in_work_dir = json.loads(line)
        if values is None:
            return str(key), Found(None, str(refused), str(fault), bool(in_work_dir))
        heartbeat, *others = values
        fields = dict(zip(_FIELDS, others))
        source = PILOT_AD if in_work_dir else JOBSTATUS
        return str(key), Found(
            PilotReport.from_values(int(heartbeat), source, fields), str(refused), str(fault), bool(in_work_dir)
        )
    except (TypeError, ValueError) as error:
        raise ValueError(f"no answer to an errand: {error}") from None
