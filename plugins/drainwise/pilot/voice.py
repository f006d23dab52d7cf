"""The library for other pilots: say what starts and ends, hear what the site asks."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping

from drainwise.errors import UsageError
from drainwise.pilot.channels import Channels
from drainwise.pilot.lease import Lease, lease_from
from drainwise.pilot.orders import Orders
from drainwise.pilot.overrun import move_overdue
from drainwise.pilot.payload import LONGEST, Payload
from drainwise.pilot.settings import Settings
from drainwise.pilot.watch import Watch
from drainwise.pilot.workload import Workload, report_of, running_since


def _to_standard_error(line: str) -> None:
    print(f"drainwise: {line}", file=sys.stderr)


class PilotVoice:
    """Says for one pilot what it would waste, at every event, and hears the site's orders.

        voice = PilotVoice.from_environment()
        voice.started("payload-1", cores=4, expected=3600, maximum=7200)
        voice.ended("payload-1")
        if voice.orders().leave: ...

    Call `heartbeat` at least every half hour. A report that cannot be written costs a log line, never an exception.
    Not for several threads at a time.
    """

    def __init__(
        self,
        lease: Lease,
        startup_directory: str,
        environment: Mapping[str, str],
        settings: Settings,
        clock: Callable[[], float],
        log: Callable[[str], None],
    ) -> None:
        self.lease = lease
        self._settings = settings
        self._clock = clock
        self._watch = Watch(startup_directory, environment, log)
        self._channels = Channels(startup_directory, environment.get("JOBSTATUS"), lease.cores, log)
        self._workload = Workload(clock())
        self._draining = False
        self.heartbeat()

    @classmethod
    def from_environment(
        cls,
        cores: int | None = None,
        seconds: float | None = None,
        directory: str = ".",
        settings: Settings | None = None,
        environment: Mapping[str, str] | None = None,
        clock: Callable[[], float] = time.time,
        log: Callable[[str], None] = _to_standard_error,
    ) -> PilotVoice:
        """Begin to speak in the job's startup `directory`, which is the working directory unless given.

        cores, seconds: the lease, where the features do not say, or a narrower one. The directory is remembered as an
        absolute path, so that the pilot may go elsewhere.
        Raises: UsageError when the cores of the lease are not known, FeatureError when a feature is garbage.
        """
        known = os.environ if environment is None else environment
        lease = lease_from(known, cores, seconds, clock(), open_ended=True)
        return cls(lease, os.path.abspath(directory), known, settings or Settings(), clock, log)

    def started(self, name: str, cores: int, expected: float, maximum: float | None = None) -> None:
        """A payload starts now, and takes `expected` seconds in good faith and `maximum` at most.

        Without `maximum` it may run as long as the lease. Raises: UsageError when one of that name runs already,
        PayloadError for times and cores that cannot be.
        """
        now = self._clock()
        if maximum is None:
            end = self.lease.end
            maximum = max(expected, LONGEST if end is None else end - now)
        payload = Payload(name, cores, (), min(expected, maximum), maximum)
        self._workload.add(running_since(payload, now))
        self._report(now)

    def ended(self, name: str) -> None:
        """A payload has ended, however. Raises: UsageError when none of that name runs."""
        self._workload.remove(name)
        self.heartbeat()

    def estimate(self, name: str, expected_end: float) -> None:
        """A payload is now expected to end at `expected_end`, UNIX s; what lies in the past is moved out of it.

        Raises: UsageError when none of that name runs, or for a time that is none.
        """
        now = self._clock()
        if not abs(expected_end - now) <= LONGEST:
            raise UsageError(f"payload {name!a}: expected end {expected_end}: expected a UNIX time")
        self._workload.move(name, expected_end)
        self._report(now)

    def heartbeat(self) -> None:
        """Say again what holds; a payload that ran past its estimate gets a new one."""
        self._report(self._clock())

    def orders(self, terminated: float | None = None) -> Orders:
        """What the site asks now; the report says at once whether this pilot drains.

        terminated: when the pilot got SIGTERM, UNIX s, if it did.
        """
        now = self._clock()
        orders = self._watch.orders(terminated, self.lease, self._settings, now)
        if orders.draining != self._draining:
            self._draining = orders.draining
            self._report(now)
        return orders

    def _report(self, now: float) -> None:
        move_overdue(self._workload, now)
        report = report_of(self._workload, self.lease, not self._draining, self._settings.priority_factor, now)
        self._channels.publish(report)
