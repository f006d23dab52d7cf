"""What a node has seen of one job's payloads from outside, as one short text in a slot's ad or in AdminComment. Pure.

    panda:1795249000:2:7.94:12345:0:3600,60

client, when it was seen (UNIX s), payloads, cores busy, CPU seconds of the payloads, seconds without any payload, and
how long the oldest payloads have run, in s. It has the node's own numbers alone, and no text of a user's.
"""

from __future__ import annotations

from drainwise.facts import fact
from drainwise.pilotad.attributes import PROCESSES
from drainwise.pilotad.report import PilotReport
from drainwise.pilotad.values import EARLIEST, LATEST

MOST_BEGINS = 24
"""Payloads whose begin is told, the oldest first."""
LONGEST = 400
"""Characters of the longest text that is read."""
_CLIENT = "abcdefghijklmnopqrstuvwxyz0123456789_-"
_LONGEST_CLIENT = 16
_MOST_DIGITS = 10


@fact
class Observation:
    """The payloads of one run as they were at `at` (UNIX s).

    client: whose payloads they look like, a name of the profile. payloads: how many. cores_busy: cores that they kept
    busy lately. cpu_seconds: what they have used since they began, which a kill would lose. idle: seconds without any
    payload, 0 while there is one. begins: when the oldest ones began, UNIX s, the oldest first, at most MOST_BEGINS.
    """

    client: str
    at: int
    payloads: int
    cores_busy: float
    cpu_seconds: int
    idle: int = 0
    begins: tuple[int, ...] = ()


def is_client(name: str) -> bool:
    """Decide whether this may be the name of a kind of pilots: small letters, digits, `_` and `-`, at most 16."""
    return 0 < len(name) <= _LONGEST_CLIENT and not name.strip(_CLIENT)


def observation_text(seen: Observation) -> str:
    """Write it as one text."""
    ages = ",".join(str(seen.at - begin) for begin in seen.begins[:MOST_BEGINS])
    return f"{seen.client}:{seen.at}:{seen.payloads}:{round(seen.cores_busy, 2)}:{seen.cpu_seconds}:{seen.idle}:{ages}"


def observation_in(text: object) -> Observation | None:
    """Read it; None for anything that is none."""
    parts = text.split(":") if type(text) is str and len(text) <= LONGEST else []
    if len(parts) != 7 or not is_client(parts[0]):
        return None
    whole, point, hundredths = parts[3].partition(".")
    ages = parts[6].split(",") if parts[6] else []
    if not all(is_number(one) for one in (parts[1], parts[2], whole, parts[4], parts[5], *ages)):
        return None
    if point and not is_number(hundredths):
        return None
    at = int(parts[1])
    if not EARLIEST <= at <= LATEST or len(ages) > MOST_BEGINS or len(ages) > int(parts[2]):
        return None
    begins = tuple(at - int(age) for age in ages)
    return Observation(parts[0], at, int(parts[2]), float(parts[3]), int(parts[4]), int(parts[5]), begins)


def observed_report(seen: Observation, saved: int = 0, each: int = 0) -> PilotReport:
    """Report a pilot by what was seen of it: cores in use, and what a kill loses; how long it needs is not known.

    The kill waste of the report is `cpu_seconds` at `at`, and grows by the cores that are busy. Where the payloads
    have used less since the last one began than those cores make, the last start is as late as that is true.
    saved: when the job last wrote a checkpoint, UNIX s, and `each`, s between two; 0: not known.
    """
    used, lost = seen.cores_busy, float(seen.cpu_seconds)
    start = max(seen.begins, default=seen.at)
    since = used * (seen.at - start)
    if since > lost:
        start, since = seen.at - int(lost / used), lost
    lost = max(0.0, lost - since)
    last, following = saved or None, saved + each if each else None
    return PilotReport(
        seen.at, used, start, add_uncom_time=lost, last_checkpoint=last, next_checkpoint=following, source=PROCESSES
    )


def is_number(text: str) -> bool:
    """Decide whether a text is a whole number of at most ten digits."""
    return text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS
