"""A glidein that reports nothing: its files are read as its user, its payloads' ads and its configuration report it.

A glidein is a pilot that runs an HTCondor of its own inside its job (glideinWMS, OSG, TARDIS). Beside each payload lies
what its slot has and what its user said: the cores, when it started, how long it may run. The end of a payload is that
limit: nothing else is known of it.

After its last payload a glidein of glideinWMS stays for GLIDEIN_Max_Tail, and looks at that whenever its startd sends
an update: its last end is so much later, on average by half of the time between two looks.

What is read is bounded in number, size and time, no link is followed, nothing waited for. Whoever forges the files
forges figures of his own pilot, which are bounded as those of every report are.

Source: condor_startup.sh and condor_config of glideinWMS; the files of HTCondor 23.9.6 and 25.14.1.
"""

from __future__ import annotations

import _stat as stat  # `stat` itself would be one more module for a hook to load
import posix
import time

from drainwise.common.local_file import Held
from drainwise.facts import fact
from drainwise.facts.errors import FeatureError, RefusedFile
from drainwise.node import JOB_STATUS
from drainwise.node.ad_text import literals, whole
from drainwise.node.glidein_places import EXECUTE, LOG, local_directories, names_of_directories
from drainwise.node.hook import say, status_of
from drainwise.pilotad.attributes import ATTRIBUTES, CORES, GLIDEIN_AD, PILOT_AD
from drainwise.pilotad.pilot_ad import write_pilot_ad
from drainwise.pilotad.report import PilotReport
from drainwise.pilotad.safe_open import Patience, open_dir, read_file
from drainwise.pilotad.values import LATEST
from drainwise.pilotad.values import whole as whole_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence
    from typing import TypeVar

    T = TypeVar("T")

USUAL_STAY = 400
"""Seconds of GLIDEIN_Max_Tail where a glidein does not state it."""
USUAL_LOOKS = 270, 370
"""Least and most seconds between two looks."""
SILENT_AFTER = 300
"""Seconds after which a startd that has not touched its log has ended; it does so each minute (TOUCH_LOG_INTERVAL)."""
SECONDS = 0.5
"""What reading all glideins of a job may take."""
MOST_PAYLOADS = 256
"""Payloads of one pilot that are read; of one with more nothing is stated."""
CONFIG = "condor_config"
_STARTD_LOGS = ("StartdLog", "StartLog")
_MACHINE_AD, _JOB_AD, _SCRATCH = ".machine.ad", ".job.ad", "scratch"
_AD_LIMIT, _CONFIG_LIMIT = 1 << 18, 1 << 18  # bytes
_LONGEST = 366 * 86400
_LIMITS = (("MaxWallTimeMins", 60), ("AllowedExecuteDuration", 1), ("AllowedJobDuration", 1))
_STARTED = "JobCurrentStartDate"
_CONFIGURED = (b"GLIDEIN_MAX_TAIL", b"GLIDEIN_TODIE", b"GLIDEIN_TORETIRE", b"UPDATE_INTERVAL")
_RANDOM = b"$RANDOM_INTEGER("
_SEAL = next(row.status_name for row in ATTRIBUTES if row.kind == CORES)


@fact
class GlideinPayload:
    """A payload that runs: its cores, its start, and the end that it may not pass (None: not known); UNIX s."""

    cores: int
    started: int
    end: int | None


@fact
class GlideinSettings:
    """How a glidein ends: idle for `stay` s after its last payload, with looks each `looks` s (least, most) for that.

    It takes no payload from `retires` on, and ends at `dies`, UNIX s; None when that is not known.
    """

    stay: int = 0
    looks: tuple[int, int] = (0, 0)
    retires: int | None = None
    dies: int | None = None


def settings_in(config: bytes) -> GlideinSettings:
    """Read the settings of a glidein's condor_config; one of another HTCondor does not stay."""
    found: dict[bytes, bytes] = {}
    for line in config.split(b"\n"):
        name, equals, value = line.partition(b"=")
        if equals and (key := name.strip().upper()) in _CONFIGURED:
            found[key] = value.strip()
    stay, dies, retires, looks = (found.get(name) for name in _CONFIGURED)
    if stay is None and dies is None:
        return GlideinSettings()
    stays, ends = _number(stay, _LONGEST), (_number(retires, LATEST) or None, _number(dies, LATEST) or None)
    return GlideinSettings(USUAL_STAY if stays is None else stays, _looks(looks or b""), *ends)


def _number(text: bytes | None, most: int) -> int | None:
    value = None if text is None else whole_bytes(text)
    return value if value is not None and 0 <= value <= most else None


def _looks(text: bytes) -> tuple[int, int]:
    is_random = text.upper().startswith(_RANDOM)
    bounds = [*text[len(_RANDOM) :].rstrip(b") ").split(b","), b""] if is_random else [text, text]
    least, most = (_number(word.strip(), _LONGEST) or 0 for word in bounds[:2])
    return (least, most) if 0 < least <= most else USUAL_LOOKS


def payload_of(machine_ad: bytes, job_ad: bytes, written: int) -> GlideinPayload | None:
    """Return a payload by the ad of its slot and its own; None when the slot's cores are not stated.

    written: when the ads were, UNIX s; the start where the payload's ad does not say.
    """
    cores = whole(literals(machine_ad, ("Cpus",)), "Cpus")
    if not cores:
        return None
    said = literals(job_ad, (_STARTED, *(name for name, _ in _LIMITS)))
    started = whole(said, _STARTED) or written
    limits = [limit * unit for name, unit in _LIMITS if (limit := whole(said, name))]
    return GlideinPayload(cores, started, started + min(limits) if limits and min(limits) <= _LONGEST else None)


def glidein_report(
    payloads: Sequence[GlideinPayload], settings: GlideinSettings, cores: int, begun: int, idle_since: int, now: int
) -> PilotReport:
    """Report a glidein with these payloads, on a lease of `cores` that has begun at `begun`. Pure.

    idle_since: when its last payload ended, of use where none runs. All times: UNIX s. What the payloads' ads say is
    bounded by what the batch system knows: nothing began before the job or will begin, and payloads with more cores
    than the lease has count as if each core did one part of it. An end is never before the last start. Without the end
    of each payload no end is stated. Source: SPEC §2 for the sums.
    """
    mean, most = settings.stay + sum(settings.looks) // 4, settings.stay + settings.looks[1]
    can_postpone = settings.retires is None or now < settings.retires

    def ended(moment: int, stay: int) -> int:
        later = min(moment + stay, LATEST)
        return later if settings.dies is None else max(moment, min(later, settings.dies))

    if not payloads:
        idle = min(now, max(begun, idle_since))
        last, last_max = ended(idle, mean), ended(idle, most)
        return PilotReport(now, 0.0, begun, last, last, last_max, 0.0, 0.0, 0, can_postpone, source=GLIDEIN_AD)
    used = sum(each.cores for each in payloads)
    share = min(1.0, cores / used)
    starts = [min(now, max(begun, each.started)) for each in payloads]
    last_start = max(starts)
    uncommitted = share * sum(each.cores * (last_start - start) for each, start in zip(payloads, starts))
    stated = [[end for end in (each.end, settings.dies) if end is not None] for each in payloads]
    ends: tuple[int | None, int | None, int | None] = (None, None, None)
    idles = None
    if all(stated):
        known = [min(LATEST, max(last_start, min(end))) for end in stated]
        first, last = min(known), ended(max(known), mean)
        ends = first, last, max(last, ended(max(known), most))
        busy = share * sum(each.cores * (end - first) for each, end in zip(payloads, known))
        idles = max(0.0, cores * (last - first) - busy)
    work = (now, float(min(used, cores)), last_start, *ends, uncommitted, idles)
    return PilotReport(*work, 0, can_postpone, source=GLIDEIN_AD)


def is_alive(directory: int, uid: int, now: int) -> bool:
    """Decide whether the startd with this open local directory has touched its log lately; `now` in UNIX s."""
    try:
        with Held(open_dir(LOG, directory, uid)) as log:
            logs = [status_of(name, log) for name in _STARTD_LOGS]
    except RefusedFile:
        return False
    own = [log for log in logs if log is not None and stat.S_ISREG(log.st_mode) and log.st_uid == uid]
    return bool(own) and now - own[0].st_mtime <= SILENT_AFTER


def read_glideins(
    directories: Generator[int, None, None], uid: int, cores: int, begun: int, now: int
) -> PilotReport | None:
    """Report the glideins of one job together; None when none of them is alive.

    directories: their local directories, each open as long as it is looked at. cores, begun: the lease's cores and the
    start of the job (UNIX s), as the batch system knows them. uid: the job's user, who must own what is read.
    Raises RefusedFile for what a sane glidein does not have: nothing is stated then.
    """
    end, patience = time.monotonic() + SECONDS, Patience(SECONDS / 10)
    payloads: list[GlideinPayload] = []
    settings, idle_since = None, begun
    try:
        for directory in directories:
            if not is_alive(directory, uid, now):
                continue
            config = _if_there(read_file, directory, CONFIG, uid, _CONFIG_LIMIT, patience)
            stated = settings_in(config[0] if config is not None else b"")
            if settings is None or stated.stay > settings.stay:
                settings = stated
            with Held(open_dir(EXECUTE, directory, uid)) as execute:
                idle_since = max(idle_since, int(posix.fstat(execute).st_mtime))
                for name in names_of_directories(execute):
                    is_payload = name.startswith("dir_") and name[4:].isdigit()
                    # One that is about to begin or has just ended is none.
                    payload = _if_there(_payload, name, execute, uid, patience) if is_payload else None
                    if payload is not None:
                        payloads.append(payload)
                    if len(payloads) > MOST_PAYLOADS:
                        raise RefusedFile("too many payloads")
                    if payloads and time.monotonic() > end:
                        raise RefusedFile("not read in time")
    finally:
        directories.close()
    return None if settings is None else glidein_report(payloads, settings, cores, begun, idle_since, now)


def _if_there(step: Callable[..., T], *arguments: object) -> T | None:
    """Return what a step finds; None where it is absent. Raises RefusedFile for anything else."""
    try:
        return step(*arguments)
    except RefusedFile as refused:
        if refused.reason == "absent":
            return None
        raise


def _payload(name: str, execute: int, uid: int, patience: Patience) -> GlideinPayload | None:
    place = open_dir(name, execute, uid)
    try:
        scratch = _if_there(open_dir, _SCRATCH, place, uid)  # since HTCondor 25.4 the ads lie there
        if scratch is not None:
            posix.close(place)
            place = scratch
        machine, _ = read_file(place, _MACHINE_AD, uid, _AD_LIMIT, patience)
        job, written = read_file(place, _JOB_AD, uid, _AD_LIMIT, patience)
    finally:
        posix.close(place)
    return payload_of(machine, job, written)


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
        with Held(open_dir(scratch, None, uid)) as sandbox:
            report = read_glideins(local_directories(sandbox, uid), uid, cores, begun, now)
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
    reports = [status_of(path) for path in (f"{scratch}/{PILOT_AD}", f"{scratch}/{JOB_STATUS}/{_SEAL}")]
    return any(report is not None and report.st_mtime >= since for report in reports)
