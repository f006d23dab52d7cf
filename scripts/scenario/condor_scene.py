"""The scene of a contest on a real HTCondor pool."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from condor_pool import CondorPool
from scenario import contest, stage

_REMOVED = 60.0  # seconds


class CondorScene:
    """A running pool of one node, with drainwise on it, whose site file is `site`; see `contest.Scene`."""

    def __init__(self, pool: CondorPool, site: str) -> None:
        self.pool = pool
        self._site = ("--site", site)
        self._clusters: dict[str, int] = {}
        self._demand = 0

    def submit(self, mixes: Mapping[str, str]) -> None:
        """See `Scene`."""
        self._clusters.update(stage.submit_pilots(self.pool, mixes))

    def reporting(self) -> Mapping[str, int]:
        """See `Scene`."""
        slots = self.pool.slots('PilotReportStanding == "fresh"', ["GlobalJobId", "JobStart"])
        starts = {int(ad.text("GlobalJobId").split("#")[1].split(".")[0]): ad.integer("JobStart") for ad in slots}
        return {name: starts[cluster] for name, cluster in self._clusters.items() if cluster in starts}

    def demand(self) -> None:
        """See `Scene`."""
        self._demand = stage.submit_demand(self.pool, contest.WANTED, contest.BOBS_SECONDS)

    def demand_is_met(self) -> bool:
        """See `Scene`."""
        return stage.finished(self.pool, self._demand) == contest.WANTED

    def drainwise(self, *words: str) -> Any:
        """See `Scene`."""
        return stage.in_pool_json(self.pool, [*words, *self._site])

    def name_of(self, order: Mapping[str, Any]) -> str:
        """See `Scene`: a run is named by its job's id, `<schedd>#<cluster>.<proc>#<time>@<start>`."""
        cluster = int(order["run"].split("#")[1].split(".")[0])
        return next(name for name, number in self._clusters.items() if number == cluster)

    def account(self, name: str) -> Any:
        """See `Scene`."""
        if not self.pool.history(f"ClusterId == {self._clusters[name]} && JobStatus == 4", ["ProcId"]):
            return None
        return json.loads(stage.brought_back(self.pool, name, stage.REPORT))

    def end(self, name: str) -> int | None:
        """See `Scene`."""
        queued = self.pool.queue(f"ClusterId == {self._clusters[name]}", ["LastVacateTime"])
        return queued[0].integer("LastVacateTime") if queued and "LastVacateTime" in queued[0] else None

    def remove(self, names: Sequence[str]) -> None:
        """See `Scene`."""
        wanted = " || ".join(f"ClusterId == {self._clusters.pop(name)}" for name in names)
        self.pool.run(["condor_rm", "-constraint", wanted], check=False)
        self.pool.wait_for(lambda: not self.pool.queue(wanted, ["ClusterId"]), _REMOVED, "an empty queue")

    @property
    def journal(self) -> str:
        """See `Scene`."""
        return f"{self.pool.root}/srv/journal.jsonl"

    def wait_for(self, condition: Callable[[], object], seconds: float, what: str) -> Any:
        """See `Scene`."""
        return self.pool.wait_for(condition, seconds, what)


@contextlib.contextmanager
def condor_scene(release: str) -> Iterator[CondorScene]:
    """The scene in a pool of its own."""
    with CondorPool(nodes=1, cpus=contest.CPUS, release=release) as pool:
        yield CondorScene(pool, stage.install(pool, "none", contest.RECLAIM, (contest.ALICE, contest.BOB)))
