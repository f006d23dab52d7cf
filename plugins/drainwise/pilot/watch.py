"""What the site asks, read from its three channels: `.site.ad`, `shutdowntime_job` and `shutdowntime`.

What cannot be read or makes no sense is one log line, and the last sound word holds: only a file that says otherwise,
or has vanished, takes an order back.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from drainwise.errors import DrainwiseError
from drainwise.features.read import HTTP_PREFIXES, FeatureReader, open_features
from drainwise.pilot.lease import Lease
from drainwise.pilot.log import Faults
from drainwise.pilot.orders import SHUTDOWN, SHUTDOWN_JOB, Orders, orders_from
from drainwise.pilot.settings import Settings
from drainwise.pilotad.attributes import SITE_AD
from drainwise.pilotad.site_ad import SiteAd, read_site_ad

SERVER_PAUSE = 30.0
"""Seconds until a features server that did not answer is asked again: each try may take 2 s."""
_VARIABLES = {SHUTDOWN_JOB: "JOBFEATURES", SHUTDOWN: "MACHINEFEATURES"}


class Watch:
    """The site's channels of one pilot. environment: has $JOBFEATURES and $MACHINEFEATURES where there are any."""

    def __init__(
        self,
        startup_directory: str,
        environment: Mapping[str, str],
        log: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._directory, self._faults, self._clock = startup_directory, Faults(log), clock
        self._site_ad: SiteAd | None = None
        self._planned: dict[str, int | None] = {}
        self._not_before: dict[str, float] = {}
        self._readers: dict[str, FeatureReader] = {}
        for key, variable in _VARIABLES.items():
            if environment.get(variable):
                try:
                    self._readers[key] = open_features(environment[variable])
                except DrainwiseError as error:
                    self._faults.set(f"${variable}", str(error))

    def orders(self, terminated: float | None, lease: Lease, settings: Settings, now: float) -> Orders:
        """What holds at `now`. terminated: when SIGTERM came first; both UNIX s. Raises nothing."""
        self._read_site_ad()
        job, machine = self._shutdown(SHUTDOWN_JOB, now), self._shutdown(SHUTDOWN, now)
        return orders_from(self._site_ad, job, machine, terminated, lease, settings, now)

    def _read_site_ad(self) -> None:
        found, reason = read_site_ad(self._directory)
        if reason == "absent":
            reason = ""
        elif found is None:
            found, reason = self._site_ad, f"not used: {reason}"
        self._faults.set(SITE_AD, reason)
        self._site_ad = found

    def _shutdown(self, key: str, now: float) -> int | None:
        """The planned time under a key. One that has arrived stands, although its file goes at that moment."""
        before = self._planned.get(key)
        reader = self._readers.get(key)
        if reader is None or self._clock() < self._not_before.get(key, 0.0):
            return before
        try:
            found = reader.integer(key)
        except DrainwiseError as error:
            if reader.location.startswith(HTTP_PREFIXES):
                self._not_before[key] = self._clock() + SERVER_PAUSE
            self._faults.set(key, f"not used: {error}")
            return before
        self._faults.set(key, "")
        if found is None and before is not None and before <= now:
            found = before
        self._planned[key] = found
        return found


def read_orders(
    startup_directory: str,
    environment: Mapping[str, str],
    terminated: float | None,
    lease: Lease,
    settings: Settings,
    now: float,
    log: Callable[[str], None],
) -> Orders:
    """What holds at `now`, read once; whoever asks again and again keeps a `Watch`. Parameters as there."""
    return Watch(startup_directory, environment, log).orders(terminated, lease, settings, now)
