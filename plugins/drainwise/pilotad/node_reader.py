"""Read one job's report from the newer of its two sources: the one call for whoever publishes it."""

from __future__ import annotations

from drainwise.common.local_file import Held
from drainwise.facts.errors import RefusedFile
from drainwise.pilotad.attributes import GLIDEIN_AD, JOBSTATUS, PILOT_AD
from drainwise.pilotad.jobstatus import read_jobstatus
from drainwise.pilotad.pilot_ad import parse_pilot_ad
from drainwise.pilotad.report import newest
from drainwise.pilotad.safe_open import open_dir, read_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from drainwise.pilotad.report import PilotReport
    from drainwise.pilotad.safe_open import Patience

PILOT_AD_LIMIT = 16384
"""Bytes a `.pilot.ad` may hold."""
LINE_LIMIT = 200


def read_report(
    dir_fd: int, uid: int, cores: int, jobstatus_name: str | None = None, patience: Patience | None = None
) -> tuple[PilotReport | None, tuple[str, ...]]:
    """Read the newest report in the job's directory, not bounded yet, and the reasons of what was refused.

    dir_fd: from `open_dir`. uid: the job's user, who must own what is read. cores: of the lease.
    patience: share one between the jobs of a round, so that the waiting of all together is bounded (None: own).
    jobstatus_name: the $JOBSTATUS directory below dir_fd, "a" or "a/b", "": dir_fd itself; None: not looked for.
    (None, ()) means that the job says nothing. Raises nothing for anything the user can do.
    """
    reasons: list[str] = []

    def sound(name: str, read: Callable[[], tuple[PilotReport, tuple[str, ...]]]) -> PilotReport | None:
        try:
            report, rejected = read()
        except RefusedFile as refused:
            if refused.reason != "absent":
                reasons.append(f"{name}: {refused.reason}")
            return None
        if rejected:
            reasons.append(f"{name}: not sound: {' '.join(rejected)}")
        return report

    def pilot_ad() -> tuple[PilotReport, tuple[str, ...]]:
        data, heartbeat = read_file(dir_fd, PILOT_AD, uid, PILOT_AD_LIMIT, patience)
        return parse_pilot_ad(data, cores, heartbeat)

    from_ad, from_status = sound(PILOT_AD, pilot_ad), None
    if jobstatus_name is not None:
        from_status = sound(JOBSTATUS, lambda: _jobstatus_at(dir_fd, uid, jobstatus_name, patience))
    return newest(from_ad, from_status), tuple(reasons)


def read_glidein_ad(
    dir_fd: int, uid: int, cores: int, jobstatus_name: str, patience: Patience | None = None
) -> PilotReport | None:
    """Read what the node derived from the files of the job's glidein, not bounded yet; None for nothing sound.

    Arguments as in `read_report`. The file is of the job's user: it says no more than a `.pilot.ad` could.
    """
    try:
        with Held(open_dir(jobstatus_name, dir_fd, uid)) as below:
            data, heartbeat = read_file(below, GLIDEIN_AD, uid, PILOT_AD_LIMIT, patience)
    except RefusedFile:
        return None
    return parse_pilot_ad(data, cores, heartbeat, GLIDEIN_AD)[0]


def reasons_line(reasons: tuple[str, ...]) -> str:
    """Write `reasons` as one printable line of at most 200 characters, for a log."""
    return "; ".join(reasons)[:LINE_LIMIT]


def _jobstatus_at(dir_fd: int, uid: int, path: str, patience: Patience | None) -> tuple[PilotReport, tuple[str, ...]]:
    if not path:
        return read_jobstatus(dir_fd, uid, patience)
    name, _, rest = path.partition("/")
    with Held(open_dir(name, dir_fd, uid)) as below:
        return _jobstatus_at(below, uid, rest, patience)
