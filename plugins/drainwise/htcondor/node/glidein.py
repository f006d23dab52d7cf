"""Report a pilot that says nothing, as its user, where it is a glidein: its files tell what runs in it.

The report is a file of its own in `$JOBSTATUS`. The cron publishes it as long as the pilot says nothing itself.
"""

from __future__ import annotations

import posix

from drainwise.facts.errors import FeatureError, RefusedFile
from drainwise.node import JOB_STATUS
from drainwise.node.glidein_files import read_glideins
from drainwise.node.glidein_places import local_directories
from drainwise.node.hook import say
from drainwise.pilotad.attributes import ATTRIBUTES, CORES, GLIDEIN_AD, PILOT_AD
from drainwise.pilotad.pilot_ad import write_pilot_ad
from drainwise.pilotad.safe_open import open_dir

_SEAL = next(row.status_name for row in ATTRIBUTES if row.kind == CORES)


def report_glidein(scratch: str, cores: int | None, begun: int | None, heartbeat_limit: int, now: int) -> None:
    """Write the report of the glidein in the job's directory, or remove the one of a glidein that has ended.

    cores, begun: the slot's cores and the job's start (UNIX s); nothing is done while they are not known (None).
    heartbeat_limit: seconds after which a report of the pilot's own counts as none. What is refused costs the report.
    """
    if not cores or begun is None or _says_itself(scratch, now - heartbeat_limit):
        return
    uid = posix.geteuid()
    report = None
    try:
        sandbox = open_dir(scratch, None, uid)
        try:
            report = read_glideins(local_directories(sandbox, uid), uid, cores, begun, now)
        finally:
            posix.close(sandbox)
    except RefusedFile as refused:
        say(f"the glidein's files: {refused.reason}; nothing is reported of it")
    if report is not None:
        try:
            write_pilot_ad(f"{scratch}/{JOB_STATUS}", report, cores, GLIDEIN_AD)
        except FeatureError as error:
            say(str(error))
        return
    try:
        posix.unlink(f"{scratch}/{JOB_STATUS}/{GLIDEIN_AD}")
    except OSError:
        return


def _says_itself(scratch: str, since: int) -> bool:
    """Decide whether the pilot has written a report in one of its places since then (UNIX s)."""
    for path in (f"{scratch}/{PILOT_AD}", f"{scratch}/{JOB_STATUS}/{_SEAL}"):
        try:
            if posix.stat(path, follow_symlinks=False).st_mtime >= since:
                return True
        except OSError:
            continue
    return False
