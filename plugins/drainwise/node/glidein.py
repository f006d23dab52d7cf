"""The report of a glidein that reports nothing, by the ads of its payloads and its configuration. Pure.

A glidein is a pilot that runs an HTCondor of its own inside its job (glideinWMS, OSG, TARDIS). Beside each payload lies
what its slot has and what its user said: the cores, when it started, how long it may run. The end of a payload is that
limit: nothing else is known of it.

After its last payload a glidein of glideinWMS stays for GLIDEIN_Max_Tail, and looks at that whenever its startd sends
an update: its last end is so much later, on average by half of the time between two looks.

Source: condor_startup.sh and condor_config of glideinWMS; the files of HTCondor 23.9.6 and 25.14.1.
"""

from __future__ import annotations

from drainwise.facts import fact
from drainwise.node.ad_text import literals, whole
from drainwise.pilotad.attributes import GLIDEIN_AD
from drainwise.pilotad.report import PilotReport
from drainwise.pilotad.values import LATEST
from drainwise.pilotad.values import whole as whole_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

USUAL_STAY = 400
"""Seconds of GLIDEIN_Max_Tail where a glidein does not state it."""
USUAL_LOOKS = 270, 370
"""Least and most seconds between two looks."""
_LONGEST = 366 * 86400
_LIMITS = (("MaxWallTimeMins", 60), ("AllowedExecuteDuration", 1), ("AllowedJobDuration", 1))
_STARTED = "JobCurrentStartDate"
_CONFIGURED = (b"GLIDEIN_MAX_TAIL", b"GLIDEIN_TODIE", b"GLIDEIN_TORETIRE", b"UPDATE_INTERVAL")
_RANDOM = b"$RANDOM_INTEGER("


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
    stay, dies, retires, looks = (found.get(name) for name in (_CONFIGURED[0], *_CONFIGURED[1:]))
    if stay is None and dies is None:
        return GlideinSettings()
    return GlideinSettings(_seconds(stay, USUAL_STAY), _looks(looks), _moment(retires), _moment(dies))


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
    """Report a glidein with these payloads, on a lease of `cores` that has begun at `begun`.

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
    ends = [_earliest(each.end, settings.dies, last_start) for each in payloads]
    known = [end for end in ends if end is not None]
    if len(known) < len(ends):
        return PilotReport(
            now,
            float(min(used, cores)),
            last_start,
            None,
            None,
            None,
            uncommitted,
            None,
            0,
            can_postpone,
            source=GLIDEIN_AD,
        )
    first, last = min(known), ended(max(known), mean)
    busy = share * sum(each.cores * (end - first) for each, end in zip(payloads, known))
    return PilotReport(
        now,
        float(min(used, cores)),
        last_start,
        first,
        last,
        max(last, ended(max(known), most)),
        uncommitted,
        max(0.0, cores * (last - first) - busy),
        0,
        can_postpone,
        source=GLIDEIN_AD,
    )


def _earliest(end: int | None, dies: int | None, last_start: int) -> int | None:
    stated = [moment for moment in (end, dies) if moment is not None]
    return min(LATEST, max(last_start, min(stated))) if stated else None


def _seconds(text: bytes | None, otherwise: int) -> int:
    value = None if text is None else whole_bytes(text)
    return value if value is not None and 0 <= value <= _LONGEST else otherwise


def _moment(text: bytes | None) -> int | None:
    value = None if text is None else whole_bytes(text)
    return value if value is not None and 0 < value <= LATEST else None


def _looks(text: bytes | None) -> tuple[int, int]:
    if text is None:
        return USUAL_LOOKS
    if not text.upper().startswith(_RANDOM):
        every = _seconds(text, 0)
        return (every, every) if every else USUAL_LOOKS
    bounds = text[len(_RANDOM) :].rstrip(b") ").split(b",")
    least, most = _seconds(bounds[0].strip(), 0), _seconds(bounds[1].strip(), 0) if len(bounds) > 1 else 0
    return (least, most) if 0 < least <= most else USUAL_LOOKS
