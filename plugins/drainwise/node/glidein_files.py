"""Read the files of a glidein as its user: bounded in number, size and time, no link followed, nothing waited for.

Whoever forges them forges figures of his own pilot, which are bounded as those of every report are.
"""

from __future__ import annotations

import _stat as stat  # `stat` itself would be one more module for a hook to load
import posix
import time

from drainwise.facts.errors import RefusedFile
from drainwise.node.glidein import GlideinSettings, glidein_report, payload_of, settings_in
from drainwise.node.glidein_places import EXECUTE, LOG, names_of_directories
from drainwise.pilotad.safe_open import Patience, open_dir, read_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from drainwise.node.glidein import GlideinPayload
    from drainwise.pilotad.report import PilotReport

CONFIG = "condor_config"
_STARTD_LOGS = ("StartdLog", "StartLog")
_MACHINE_AD, _JOB_AD, _SCRATCH = ".machine.ad", ".job.ad", "scratch"

SILENT_AFTER = 300
"""Seconds after which a startd that has not touched its log has ended; it does so each minute (TOUCH_LOG_INTERVAL)."""
SECONDS = 0.5
"""What reading all glideins of a job may take."""
MOST_PAYLOADS = 256
"""Payloads of one pilot that are read; of one with more nothing is stated."""
_AD_LIMIT, _CONFIG_LIMIT = 1 << 18, 1 << 18  # bytes


def is_alive(directory: int, uid: int, now: int) -> bool:
    """Decide whether the startd with this open local directory has touched its log lately; `now` in UNIX s."""
    try:
        log = open_dir(LOG, directory, uid)
    except RefusedFile:
        return False
    try:
        for name in _STARTD_LOGS:
            try:
                found = posix.stat(name, dir_fd=log, follow_symlinks=False)
            except OSError:
                continue
            if stat.S_ISREG(found.st_mode) and found.st_uid == uid:
                return now - found.st_mtime <= SILENT_AFTER
    finally:
        posix.close(log)
    return False


def read_glideins(
    directories: Generator[int, None, None], uid: int, cores: int, begun: int, now: int
) -> PilotReport | None:
    """Report the glideins of one job together; None when none of them is alive.

    directories: their local directories, each open as long as it is looked at. cores, begun: the lease's cores and the
    start of the job (UNIX s), as the batch system knows them. uid: the job's user, who must own what is read.
    Raises RefusedFile for what a sane glidein does not have: nothing is stated then.
    """
    try:
        return _read(directories, uid, cores, begun, now)
    finally:
        directories.close()


def _read(directories: Generator[int, None, None], uid: int, cores: int, begun: int, now: int) -> PilotReport | None:
    end, patience = time.monotonic() + SECONDS, Patience(SECONDS / 10)
    payloads: list[GlideinPayload] = []
    settings, idle_since = None, begun
    for directory in directories:
        if not is_alive(directory, uid, now):
            continue
        said = _settings(directory, uid, patience)
        if settings is None or said.stay > settings.stay:
            settings = said
        execute = open_dir(EXECUTE, directory, uid)
        try:
            idle_since = max(idle_since, int(posix.fstat(execute).st_mtime))
            for payload in _payloads(execute, uid, patience):
                payloads.append(payload)
                if len(payloads) > MOST_PAYLOADS:
                    raise RefusedFile("too many payloads")
                if time.monotonic() > end:
                    raise RefusedFile("not read in time")
        finally:
            posix.close(execute)
    return None if settings is None else glidein_report(payloads, settings, cores, begun, idle_since, now)


def _settings(directory: int, uid: int, patience: Patience) -> GlideinSettings:
    try:
        return settings_in(read_file(directory, CONFIG, uid, _CONFIG_LIMIT, patience)[0])
    except RefusedFile as refused:
        if refused.reason == "absent":
            return GlideinSettings()
        raise


def _payloads(execute: int, uid: int, patience: Patience) -> Iterator[GlideinPayload]:
    """Yield the payloads below the open EXECUTE; one that is about to begin or has just ended is none."""
    for name in names_of_directories(execute):
        if not name.startswith("dir_") or not name[4:].isdigit():
            continue
        try:
            payload = _payload(name, execute, uid, patience)
        except RefusedFile as refused:
            if refused.reason == "absent":
                continue
            raise
        if payload is not None:
            yield payload


def _payload(name: str, execute: int, uid: int, patience: Patience) -> GlideinPayload | None:
    place = open_dir(name, execute, uid)
    try:
        try:
            scratch = open_dir(_SCRATCH, place, uid)  # since HTCondor 25.4 the ads lie there
        except RefusedFile as refused:
            if refused.reason != "absent":
                raise
        else:
            posix.close(place)
            place = scratch
        machine, _ = read_file(place, _MACHINE_AD, uid, _AD_LIMIT, patience)
        job, written = read_file(place, _JOB_AD, uid, _AD_LIMIT, patience)
    finally:
        posix.close(place)
    return payload_of(machine, job, written)
