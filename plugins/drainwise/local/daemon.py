"""The daemon of the local batch system: rounds that end leases, write site notices, read reports and start leases.

All that it must not forget stands in the state before it acts, and leases live without it, so that it may be killed at
any moment: the next one finds them again. Between two rounds it sleeps.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence

from drainwise.common.service import Faults
from drainwise.facts.errors import DrainwiseError, PoolError
from drainwise.features import planned_shutdown
from drainwise.local.daemon_lock import DaemonLock
from drainwise.local.job import RUNNING, LocalJob, LocalNode, next_due
from drainwise.local.lease.files import remove_lease
from drainwise.local.leases import DaemonSettings, Leases, Say
from drainwise.local.pilot_files import Reports, SiteNotices
from drainwise.local.returned import acknowledged, owed_by_node, returned_parts
from drainwise.local.schedule import choose_starts, holdings
from drainwise.local.store import LEASES, DaemonStore
from drainwise.local.wake import Sleeper
from drainwise.node.settings import SettingsFile
from drainwise.pilotad.partial_return import ReturnedPart

SHUTDOWN = "shutdowntime"
"""The file of the machine's planned shutdown, in the directory of the state."""

NODE_SETTINGS = "node.conf"
"""The file of what the site says of its nodes, as on a real node, there too; it may be missing."""

_STARTS_PER_ROUND = 16  # so that many starts keep nobody waiting for his end
_SHORTEST_SLEEP = 0.02
_FORGET_EVERY = 3600.0


class Daemon:
    """The one daemon of a directory.

    `nodes` replaces the nodes known from before; where there are none at all, one of this machine's cores is made.

    Raises PoolError when there is one already, UsageError when the state cannot be kept there.
    """

    def __init__(self, directory: str, settings: DaemonSettings, say: Say, nodes: Sequence[LocalNode] = ()) -> None:
        self._store = DaemonStore(directory, create=True)
        directory = self._store.directory
        self._lock = DaemonLock(directory)
        if nodes or not self._store.nodes():
            self._store.set_nodes(nodes or (LocalNode("node1", len(os.sched_getaffinity(0))),))
        self._cores = {node.name: node.cores for node in self._store.nodes()}
        self._returned: dict[str, ReturnedPart] = {}
        self._settings, self._say, self._faults = settings, say, Faults(say)
        os.makedirs(os.path.join(directory, LEASES), 0o700, exist_ok=True)
        self._sleeper = Sleeper(directory)
        self._file = SettingsFile(os.path.join(directory, NODE_SETTINGS))
        self._leases = Leases(self._store, self._sleeper, settings, self._file, say)
        self._notices = SiteNotices(self._faults, settings.repair)
        self._reports = Reports(self._store, self._faults)
        self._seen: int | None = None
        self._look_at_queue = True
        self._stopping = self._ending = False
        self._next_forget = 0.0
        self._retry_at: float | None = None

    def run(self, ready: Callable[[], None] = lambda: None) -> None:
        """Serve until `stop`; `ready` is called after the first round."""
        nodes, cores = len(self._cores), sum(self._cores.values())
        self._say(f"serves {self._store.directory}: {nodes} nodes, {cores} cores, pid {os.getpid()}")
        wait = self.round(time.time())
        ready()
        while not self._stopping:
            self._sleeper.sleep(wait)
            if not self._stopping:
                wait = self.round(time.time())
        self._say("stopped")

    def stop(self) -> None:
        """Leave after this round; leases go on. May be called by a signal handler and by another thread."""
        self._stopping = True
        self._sleeper.wake()

    def close(self) -> None:
        """Let another daemon serve."""
        self._sleeper.close()
        self._store.close()
        self._lock.release()

    def round(self, now: float) -> float:
        """Look at everything at `now` (UNIX s); return how long to sleep then, in seconds.

        While the state cannot be written nothing is started and the round does not count, so that nobody decides on it.
        """
        try:
            if not self._store.in_place():
                raise PoolError("the state was removed: nobody can be served from it any more")
            self._lock.must_hold("another daemon could serve")
        except PoolError as fault:
            self._say(str(fault))
            self.stop()
            return 0.0
        try:
            wait = self._round(now)
        except (DrainwiseError, OSError) as fault:
            self._faults.set("the state", str(fault))
            self._seen = None  # whatever was changed in between is to be looked at
            return self._settings.period
        self._faults.set("the state", "")
        self._lock.stamp(time.time())
        return wait

    def end_leases(self) -> int:
        """End all leases, start none; how many it were, when they have ended. Raises PoolError when some cannot be."""
        self._ending = True
        ids = [job.job_id for job in self._store.live()]
        self._store.remove(ids, time.time())
        ends = time.monotonic() + self._settings.kill_wait + 10.0
        while live := self._store.live():
            if time.monotonic() > ends:
                left = ", ".join(str(job.job_id) for job in live)
                raise PoolError(f"processes of the jobs {left} cannot be ended; see {self._store.directory}")
            self._sleeper.sleep(min(self.round(time.time()), 0.1))
        return len(ids)

    def _round(self, now: float) -> float:
        directory = self._store.directory
        planned, remark = planned_shutdown.read(os.path.join(directory, SHUTDOWN), int(now))
        self._faults.set(SHUTDOWN, remark or "")
        node_settings = self._file.follow()
        self._faults.set(NODE_SETTINGS, self._file.fault)
        seen = self._store.changes_by_others()
        live = self._settle(now)
        parts, returned = self._store.parts(), self._returned
        owed = owed_by_node(live, returned, self._cores)
        for job in live:
            self._leases.enforce(job, now)
            settings, directory = node_settings.of_node(job.node), self._store.lease_directory(job.run)
            slots, part = settings.job_slots(self._cores.get(job.node)), parts.get(job.run)
            answer = acknowledged(job, returned, owed.get(job.node, 0))
            self._notices.write(job, directory, planned, slots, now, settings.clients, part, answer)
        self._reports.read(live, self._settings.patience)
        self._returned = returned_parts(live, self._reports.known, now, node_settings.heartbeat_limit)
        news = self._returned != returned
        self._look_at_queue = self._look_at_queue or news
        again = self._retry_at is not None and now >= self._retry_at
        started = 0
        if (self._look_at_queue or again or seen != self._seen) and not self._ending:
            self._look_at_queue = False
            started = self._start_waiting(planned, now)
        self._seen = seen
        self._retry_at = self._store.earliest_retry(now)
        if now >= self._next_forget:
            self._next_forget = now + _FORGET_EVERY
            for old in self._store.forget(now - self._settings.keep_ended):
                remove_lease(old)
        return _SHORTEST_SLEEP if news else self._pause(live, started, now)  # so that it is acknowledged at once

    def _settle(self, now: float) -> list[LocalJob]:
        """See to the jobs that have ended; return those that hold cores."""
        live = []
        for job in self._store.live():
            if self._leases.settle(job, now):
                live.append(job)
                continue
            self._look_at_queue = True
            self._notices.forget(job)
            self._reports.forget(job)
        return live

    def _start_waiting(self, planned: int | None, now: float) -> int:
        """Start what is to start now; how many were begun."""
        state = self._store.state(now)
        cores, all_cores = self._cores, sum(self._cores.values())
        starts = choose_starts(
            state.waiting, holdings(state.live, self._returned), state.nodes, state.accounts, int(now)
        ).starts
        self._look_at_queue = len(starts) > _STARTS_PER_ROUND
        for start in starts[:_STARTS_PER_ROUND]:
            job = self._store.begin_start(start.job_id, start.node, int(now))
            if job is not None and self._leases.start(job, cores[start.node], all_cores, planned, now):
                self._lock.stamp(time.time())
            else:
                self._look_at_queue = True
        return len(starts)

    def _pause(self, live: Sequence[LocalJob], started: int, now: float) -> float:
        """Return the seconds until something has to be looked at."""
        if self._look_at_queue:
            return _SHORTEST_SLEEP
        moments = [now + (self._settings.period if live or started else self._settings.idle_period)]
        moments += [next_due(job, self._settings.kill_wait) for job in live if job.state == RUNNING]
        moments += [self._retry_at] if self._retry_at is not None else []
        return max(_SHORTEST_SLEEP, min(moments) - now)
