"""The library for other pilots: report what starts and ends, learn what the site orders."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping

from drainwise.facts.errors import UsageError
from drainwise.pilot.channels import Channels, SiteNoticeReader
from drainwise.pilot.decide.estimates import move_overdue
from drainwise.pilot.decide.lease import Lease, ReturnedCores, SiteOrders, lease_from
from drainwise.pilot.decide.payload import LONGEST, Payload
from drainwise.pilot.decide.settings import PilotSettings
from drainwise.pilot.decide.workload import Checkpoint, RestingValues, Workload, report_of, running_since


def _to_standard_error(line: str) -> None:
    print(f"drainwise: {line}", file=sys.stderr)


class PilotReporter:
    """Reports for one pilot what it would waste, at every event, and reads the site's orders.

        reporter = PilotReporter.from_environment()
        reporter.started("payload-1", cores=4, expected=3600, maximum=7200)
        reporter.ended("payload-1")
        if reporter.orders().leave: ...

    Call `heartbeat` at least every half hour. A report that cannot be written costs a log line, never an exception.
    Not for several threads at a time.
    """

    def __init__(
        self,
        lease: Lease,
        startup_directory: str,
        environment: Mapping[str, str],
        settings: PilotSettings,
        clock: Callable[[], float],
        log: Callable[[str], None],
        part: ReturnedCores | None = None,
    ) -> None:
        self.lease = lease
        self._part = part
        self._settings = settings
        self._clock = clock
        self._notices = SiteNoticeReader(startup_directory, environment, log)
        self._channels = Channels(startup_directory, environment.get("JOBSTATUS"), lease.cores, log)
        self._workload = Workload(clock())
        self._draining = False
        self._notice: SiteOrders | None = None
        self._resting = RestingValues(settings.rest)
        self.heartbeat()

    @classmethod
    def from_environment(
        cls,
        cores: int | None = None,
        seconds: float | None = None,
        directory: str = ".",
        settings: PilotSettings | None = None,
        environment: Mapping[str, str] | None = None,
        clock: Callable[[], float] = time.time,
        log: Callable[[str], None] = _to_standard_error,
        returns: bool = False,
        return_memory: int = 0,
    ) -> PilotReporter:
        """Begin to report in the job's startup `directory`, which is the working directory unless given.

        cores, seconds: the lease, where the features do not say, or a narrower one. The directory is remembered as an
        absolute path, so that the pilot may go elsewhere. returns: the pilot keeps to `fillable`, and so gives back
        some of its cores when the site asks for them, with `return_memory` MiB each.
        Raises: UsageError when the cores of the lease are not known, FeatureError when a feature is garbage.
        """
        known = os.environ if environment is None else environment
        lease = lease_from(known, cores, seconds, clock(), open_ended=True)
        part = ReturnedCores(lease.cores, clock(), return_memory) if returns else None
        return cls(lease, os.path.abspath(directory), known, settings or PilotSettings(), clock, log, part)

    def started(self, name: str, cores: int, expected: float, maximum: float | None = None) -> None:
        """Report a payload that starts now, and takes `expected` seconds in good faith and `maximum` at most.

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
        """Report a payload that has ended, however. Raises: UsageError when none of that name runs."""
        self._workload.remove(name)
        self.heartbeat()

    def estimate(self, name: str, expected_end: float) -> None:
        """Report another expected end of a payload, UNIX s; one in the past is moved out of it.

        Raises: UsageError when none of that name runs, or for a time that is none.
        """
        now = self._clock()
        if not abs(expected_end - now) <= LONGEST:
            raise UsageError(f"payload {name!a}: expected end {expected_end}: expected a UNIX time")
        self._workload.move(name, expected_end)
        self._report(now)

    def checkpoint(
        self, name: str, following: float | None = None, seconds: float | None = None, restart: float = 0.0
    ) -> None:
        """Report that a payload has saved its work now: ended, it loses no more than what it does since.

        following: when it saves next, UNIX s, where that is known. seconds: that saving takes, where it does so by the
        time `checkpoint_by` of `orders`. restart: core-seconds to begin again from there. Raises: UsageError when none
        of that name runs, or for numbers that cannot be.
        """
        now = self._clock()
        times = restart, seconds or 0.0, 0.0 if following is None else following - now
        if not all(0 <= one <= LONGEST for one in times):
            raise UsageError(f"payload {name!a}: checkpoint: expected a UNIX time ahead, and seconds of 0 or more")
        self._workload.save(name, Checkpoint(now, following, seconds, restart))
        self._report(now)

    def heartbeat(self) -> None:
        """Report again; a payload that ran past its estimate gets a new one."""
        self._report(self._clock())

    @property
    def fillable(self) -> int:
        """Cores that payloads may use in all when one more starts. `orders` and `ended` bring it up to date."""
        return self.lease.cores if self._part is None else self._part.fillable

    def orders(self, terminated: float | None = None) -> SiteOrders:
        """Return what the site orders now; the report says at once whether this pilot drains.

        terminated: when the pilot got SIGTERM, UNIX s, if it did.
        """
        now = self._clock()
        orders = self._notices.orders(terminated, self.lease, self._settings, now)
        self._notice = orders
        if self._settle(now) or orders.draining != self._draining:
            self._draining = orders.draining
            self._report(now)
        return orders

    def _settle(self, now: float) -> bool:
        """Give back what can be given back; whether another number is to be stated."""
        if self._part is None or self._notice is None:
            return False
        return self._part.settle(self._notice.part, self._notice.answer, self._workload.used, now)

    def _report(self, now: float) -> None:
        move_overdue(self._workload, now)
        self._settle(now)
        part, factor = None if self._part is None else self._part.stated, self._settings.priority_factor
        report = report_of(self._workload, self.lease, not self._draining, factor, now, part=part)
        self._channels.publish(self._resting.stated(report, now))
