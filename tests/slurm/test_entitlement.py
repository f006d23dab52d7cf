"""Who may take from whom by Slurm's own rule of preemption."""

from __future__ import annotations

from dataclasses import replace

import pytest

from drainwise.pool.amounts import Amounts
from drainwise.pool.facts import Account, Pilot
from drainwise.slurm.jobs.job import SlurmJob
from drainwise.slurm.pool.demand import WaitingTasks, Wanted
from drainwise.slurm.pool.entitlement import by_preemption, entitled, may_preempt
from drainwise.slurm.pool.qos_rules import Qos
from drainwise.slurm.pool.rules import ClusterRules, Partition

NOW = 1795270000
ENDS = frozenset({"requeue"})
BY_QOS = ClusterRules(preempt_type="preempt/qos", preempt_modes=ENDS)
GPU, FREE = Partition("gpu", tier=10), Partition("free", tier=1, modes=ENDS)
BY_TIER = replace(BY_QOS, preempt_type="preempt/partition_prio", partitions={"gpu": GPU, "free": FREE})
CLUSTER = frozenset({"cluster"})
QOS = {
    "owner": Qos("owner", frozenset({"scavenge", "shy"}), CLUSTER),
    "other": Qos("other", frozenset({"shy"}), CLUSTER),
    "scavenge": Qos("scavenge", frozenset(), CLUSTER),
    "shy": Qos("shy", frozenset(), CLUSTER),
}
JOB = SlurmJob(9, qos="owner", partitions=("gpu",), tasks=1)


def pilot(run: str = "1@9", qos: str = "scavenge", partition: str = "free", account: str = "cms") -> Pilot:
    traits = (("qos", (qos,)), ("partition", (partition,)))
    return Pilot(run, run, "n1", account, "carol", 8, NOW - 600, traits=traits)


def waiting(job: SlurmJob, tasks: int = 1) -> WaitingTasks:
    return WaitingTasks(job, "atlas", tasks, Wanted(4, 1, Amounts(4), frozenset({"a"})))


@pytest.mark.parametrize(
    ("job", "run", "rules", "may"),
    [
        (JOB, pilot(), BY_QOS, True),
        (replace(JOB, qos="other"), pilot(), BY_QOS, False),
        (replace(JOB, qos="unknown"), pilot(), BY_QOS, False),
        (JOB, pilot(qos="owner"), BY_QOS, False),
        (JOB, pilot(), replace(BY_QOS, preempt_modes=frozenset({"off"})), False),
        (JOB, pilot(), replace(BY_QOS, preempt_modes=frozenset({"suspend", "gang"})), False),
        (JOB, pilot(), replace(BY_QOS, preempt_exempt=601), False),
        (JOB, pilot(), replace(BY_QOS, preempt_exempt=600), True),
        (JOB, pilot(), replace(BY_QOS, preempt_type="preempt/none"), False),
        (JOB, pilot(), BY_TIER, True),
        (replace(JOB, partitions=("gpu", "free")), pilot(), BY_TIER, False),
        (JOB, pilot(partition="gpu"), BY_TIER, False),
        (JOB, pilot(partition="gone"), BY_TIER, False),
        (JOB, pilot(), replace(BY_TIER, partitions={"gpu": GPU, "free": replace(FREE, modes=frozenset())}), False),
    ],
)
def test_slurms_rule_says_who_may_take(job: SlurmJob, run: Pilot, rules: ClusterRules, may: bool) -> None:
    assert may_preempt(job, run, rules, QOS, NOW) is may


@pytest.mark.parametrize(("own", "may"), [({"off"}, False), ({"cancel"}, True)])
def test_a_mode_of_a_qos_counts_before_that_of_the_cluster(own: set[str], may: bool) -> None:
    qos = {**QOS, "scavenge": Qos("scavenge", frozenset(), frozenset(own), exempt=60)}
    assert may_preempt(JOB, pilot(), replace(BY_QOS, preempt_exempt=9999), qos, NOW) is may


def test_all_that_counts_may_take_from_each_run() -> None:
    """What may take from none is left out, and so is, by its number, what may take from others than the first."""
    runs = pilot("1@9"), pilot("2@9", "shy"), pilot("3@9", "owner")
    first, other = waiting(JOB, 2), waiting(replace(JOB, qos="other"), 3)
    assert entitled([first], runs, BY_QOS, QOS, NOW) == ([first], frozenset({"1@9", "2@9"}), [])
    assert entitled([first, other], runs, BY_QOS, QOS, NOW) == ([first, other], frozenset({"2@9"}), [])
    none = waiting(replace(JOB, qos="scavenge"))
    assert entitled([none, first, other], runs[:1], BY_QOS, QOS, NOW) == ([first], frozenset({"1@9"}), [])
    _, _, said = entitled([first], runs, replace(BY_QOS, preempt_type=""), QOS, NOW)
    assert said == ["entitlement = preemption: PreemptType = preempt/none lets no job take from another"]
    normal = Qos("normal", frozenset(), CLUSTER)
    apart = {**QOS, "normal": normal, "other": Qos("other", frozenset({"normal"}), CLUSTER)}
    counted, taken, said = entitled([first, other], (*runs, pilot("4@9", "normal")), BY_QOS, apart, NOW)
    assert (counted, taken) == ([first], frozenset({"1@9", "2@9"}))
    why = "may take from others than the first in the queue, and count after these"
    assert said == [f"entitlement = preemption: 3 waiting jobs {why}"]


def test_who_waits_is_owed_that_and_what_may_be_preempted_is_all_to_give_back() -> None:
    """Also of the same account; what else it uses it keeps."""
    accounts = (Account("cms", 24.0, 3.0, 16.0, 2.0, 8.0, 3.0), Account("atlas", 8.0, 99.0, 0.0, 1.0))
    runs = pilot("1@9"), pilot("2@9", "normal"), pilot("3@9", account="atlas")
    found, pilots = by_preemption(accounts, runs, {"1@9"})
    assert found == (
        Account("cms", 16.0, 32.0, 16.0, 2.0, 8.0),
        Account("cms (preemptible)", 8.0, 0.0, 0.0, 2.0),
        Account("atlas", 8.0, 8.0, 0.0, 1.0),
    )
    assert [one.account for one in pilots] == ["cms (preemptible)", "cms", "atlas"]
    assert dict(pilots[0].traits)["account"] == ("cms",), "conditions of the site file find it"
