"""A comparison's pool on real HTCondor."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from condor_pool import CondorPool
from scenario import comparison, condor_site

_REMOVED = 60.0  # seconds


class ComparedCondor:
    """A running pool of one node, with drainwise on it, whose site file is `site`; see `comparison.ComparedPool`."""

    def __init__(self, pool: CondorPool, site: str) -> None:
        self.pool = pool
        self._site = ("--site", site)
        self._clusters: dict[str, int] = {}
        self._demand = 0

    def submit(self, mixes: Mapping[str, str]) -> None:
        """See `ComparedPool`."""
        self._clusters.update(condor_site.submit_pilots(self.pool, mixes))

    def reporting(self) -> Mapping[str, int]:
        """See `ComparedPool`."""
        slots = self.pool.slots('PilotReportStanding == "fresh"', ["GlobalJobId", "JobStart"])
        starts = {int(ad.text("GlobalJobId").split("#")[1].split(".")[0]): ad.integer("JobStart") for ad in slots}
        return {name: starts[cluster] for name, cluster in self._clusters.items() if cluster in starts}

    def demand(self) -> None:
        """See `ComparedPool`."""
        self._demand = condor_site.submit_demand(self.pool, comparison.WANTED, comparison.BOBS_SECONDS)

    def demand_is_met(self) -> bool:
        """See `ComparedPool`."""
        return condor_site.finished(self.pool, self._demand) == comparison.WANTED

    def drainwise(self, *words: str) -> Any:
        """See `ComparedPool`."""
        return condor_site.in_pool_json(self.pool, [*words, *self._site])

    def name_of(self, order: Mapping[str, Any]) -> str:
        """See `ComparedPool`: a run is named by its job's id, `<schedd>#<cluster>.<proc>#<time>@<start>`."""
        cluster = int(order["run"].split("#")[1].split(".")[0])
        return next(name for name, number in self._clusters.items() if number == cluster)

    def account(self, name: str) -> Any:
        """See `ComparedPool`."""
        if not self.pool.history(f"ClusterId == {self._clusters[name]} && JobStatus == 4", ["ProcId"]):
            return None
        return json.loads(condor_site.brought_back(self.pool, name, condor_site.REPORT))

    def end(self, name: str) -> int | None:
        """See `ComparedPool`."""
        queued = self.pool.queue(f"ClusterId == {self._clusters[name]}", ["LastVacateTime"])
        return queued[0].integer("LastVacateTime") if queued and "LastVacateTime" in queued[0] else None

    def remove(self, names: Sequence[str]) -> None:
        """See `ComparedPool`."""
        wanted = " || ".join(f"ClusterId == {self._clusters.pop(name)}" for name in names)
        self.pool.run(["condor_rm", "-constraint", wanted], check=False)
        self.pool.wait_for(lambda: not self.pool.queue(wanted, ["ClusterId"]), _REMOVED, "an empty queue")

    def journal(self, policy: str) -> str:
        """See `ComparedPool`."""
        return f"{self.pool.root}/srv/{policy}.jsonl"

    def wait_for(self, condition: Callable[[], object], seconds: float, what: str) -> Any:
        """See `ComparedPool`."""
        return self.pool.wait_for(condition, seconds, what)


@contextlib.contextmanager
def compared_condor(release: str) -> Iterator[ComparedCondor]:
    """Yield a comparison's pool of its own."""
    with CondorPool(nodes=1, cpus=comparison.CPUS, release=release) as pool:
        yield ComparedCondor(
            pool, condor_site.install(pool, "none", comparison.RECLAIM, (comparison.ALICE, comparison.BOB))
        )
