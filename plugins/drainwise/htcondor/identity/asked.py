"""The question who sent the pilots of a pool: beside each snapshot, in a process of its own, for runs not yet known.

The texts are users', of any length and number, so that the answer may be too large or too late: then the snapshot is
there without them. Whose identity was told once is not asked for again.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial

from drainwise.common.bounded_call import BoundedCall
from drainwise.facts.errors import PoolError
from drainwise.htcondor.ads.values import moment, shown, text
from drainwise.htcondor.identity.attributes import identity_in, job_attributes
from drainwise.identity.identity import PilotIdentity
from drainwise.identity.rules import IdentityRules
from drainwise.pool.facts import Pilot, Snapshot

_LATE = 1800
"""Seconds after its start within which the collector knows of a run, but for few."""
_WAIT = 2.0
"""Seconds that a snapshot waits for them at most when all else is there."""
_MEMORY = 2 << 30
"""Bytes that the answer may take in the process that asks."""

_Told = Mapping[str, "PilotIdentity | None"]


class Identities:
    """The identities of a pool's runs, as far as they were told, `known` by run; rules: the site's."""

    def __init__(self, rules: IdentityRules) -> None:
        self._rules = rules
        self.known: dict[str, PilotIdentity | None] = {}
        self._since, self._asked_at = 0, 0.0

    def ask(self, seconds: float) -> BoundedCall[_Told]:
        """Begin to ask for the runs that are not known."""
        self._asked_at = time.time()
        return BoundedCall(seconds, partial(_ask, self._rules, self._since), "the collector")

    def completed(self, snapshot: Snapshot, asked: BoundedCall[_Told]) -> Snapshot:
        """Return the snapshot with who sent each pilot, as far as that is told now or was; else with a notice."""
        if not snapshot.pilots:
            return snapshot
        try:
            self.known.update(next(asked.values(_WAIT)))
        except PoolError as fault:
            notice = f"who sent the pilots is not known of all: {shown(str(fault))}"
            snapshot = replace(snapshot, notices=(*snapshot.notices, notice))
        else:
            unknown = (pilot.started for pilot in snapshot.pilots if pilot.run not in self.known)
            self._since = min((int(self._asked_at) - _LATE, *unknown))
        self.known = {pilot.run: self.known[pilot.run] for pilot in snapshot.pilots if pilot.run in self.known}
        return replace(snapshot, pilots=tuple(map(self._identified, snapshot.pilots)))

    def _identified(self, pilot: Pilot) -> Pilot:
        identity = self.known.get(pilot.run)
        return pilot if identity is pilot.identity else replace(pilot, identity=identity)


def _ask(rules: IdentityRules, since: int) -> Iterator[_Told]:
    """Ask the collector for the runs that have begun since then (UNIX s); nothing of what users wrote is evaluated."""
    _bound_memory()
    from drainwise.htcondor.ads.bindings import htcondor2  # noqa: PLC0415 - they may hang, and read the configuration
    from drainwise.htcondor.ads.packed_ads import literals  # noqa: PLC0415
    from drainwise.htcondor.ads.query import COLLECTOR, queried  # noqa: PLC0415

    attributes = ("GlobalJobId", "JobStart", *job_attributes(rules))
    ads = queried(htcondor2.Collector(), COLLECTOR, htcondor2.AdType.Startd, f"JobStart >= {since}", attributes)
    found: dict[str, PilotIdentity | None] = {}
    for ad in ads:
        values = literals(ad, attributes)
        job, start = text(values, "GlobalJobId"), moment(values, "JobStart")
        if job is not None and start is not None:
            found[f"{job}@{start}"] = identity_in(values, rules)  # the name of a run that an order can reach
    yield found


def _bound_memory() -> None:
    """Have this process end, without a core, where the answer is too large."""
    with open("/proc/self/statm", encoding="ascii") as stream:
        used = int(stream.read().split()[0]) * resource.getpagesize()
    for limit, most in ((resource.RLIMIT_AS, used + _MEMORY), (resource.RLIMIT_CORE, 0)):
        hard = resource.getrlimit(limit)[1]
        resource.setrlimit(limit, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
