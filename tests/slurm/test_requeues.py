"""Which runs are requeued at a deadline, and when they are warned and requeued."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pytest_mock import MockerFixture

from drainwise.facts.errors import ActionRefused, RunEnded
from drainwise.facts.scope_rules import Scope, ScopeRules
from drainwise.pool.facts import Pilot
from drainwise.slurm.jobs.commands import SlurmCommands
from drainwise.slurm.jobs.job import SlurmJob
from drainwise.slurm.jobs.squeue_lines import jobs_of_lines
from drainwise.slurm.pool.orders import SlurmOrders
from drainwise.slurm.pool.qos_rules import qos_in
from drainwise.slurm.pool.requeues import SlurmRequeues
from drainwise.slurm.pool.rules import Partition

NOW, RUN = 1795270000, "12@1795260000"
SCOPES = ScopeRules(scopes=(Scope("free", "qos=scavenge", at_deadline="requeue"),))
TRAITS = (("qos", ("scavenge",)), ("partition", ("gpu",)))
PILOT = Pilot(RUN, "12", "n1", "cms", "carol", 8, NOW - 10_000, traits=TRAITS)
GPU = {"gpu": Partition("gpu", grace=45)}


def jobs(can: str) -> list[SlurmJob]:
    """One running job as a snapshot's squeue lists it."""
    line = (
        f"||normal|*|(null)|{can}|1|12|12|N/A|0|1795260000|{NOW + 9999}|5|0|carol|cms|RUNNING|None|8|1|n1|10:00:00|OK|"
        "cpu=8,node=1|1|N/A|N/A|N/A|N/A|||(null)|0|gpu|(null)|\n"
    )
    return jobs_of_lines(line.encode())


@pytest.mark.parametrize(
    ("pilot", "can", "qos", "lead"),
    [
        (PILOT, "1", "scavenge||requeue|00:02:00|", 120),
        (PILOT, "1", "scavenge||requeue|00:00:00|00:01:00", 45),
        (PILOT, "1", "", 300),
        (PILOT, "0", "scavenge||requeue|00:02:00|", None),
        (replace(PILOT, traits=(("qos", ("normal",)), ("partition", ("gpu",)))), "1", "", None),
    ],
    ids=["GraceTime of the QOS", "of the partition", "no accounting", "its owner does not let it", "another scope"],
)
def test_the_lead_is_slurms_grace_time(pilot: Pilot, can: str, qos: str, lead: int | None) -> None:
    told = {one.name: one for one in qos_in(qos)}
    [found] = SlurmRequeues(SlurmOrders(SlurmCommands()), SCOPES).with_leads([pilot], jobs(can), GPU, told)
    assert found == (pilot if lead is None else replace(pilot, lead=lead, vacate=15))


def test_a_run_is_warned_once_and_requeued_before_its_deadline(mocker: MockerFixture) -> None:
    orders = mocker.create_autospec(SlurmOrders, instance=True)
    found = SlurmRequeues(orders, SCOPES)
    pilot = replace(PILOT, deadline=NOW + 200, lead=120, vacate=15)
    others = (replace(pilot, lead=None, vacate=None), replace(pilot, leaving=True), replace(pilot, deadline=None))
    warned = ["12 was sent SIGTERM: it is requeued in 120 s"]
    for at, said in ((NOW, []), (NOW + 65, warned), (NOW + 70, [])):
        assert list(found.carry_out([pilot, *others], at)) == said
    assert list(found.carry_out([pilot], NOW + 185)) == [
        "12 is requeued at its deadline, with the time limit that it was granted"
    ]
    orders.warn.assert_called_once_with(RUN)
    orders.requeue.assert_called_once_with(RUN)


def test_what_cannot_be_requeued_is_named_and_what_has_ended_is_not(mocker: MockerFixture) -> None:
    orders = mocker.create_autospec(SlurmOrders, instance=True)
    orders.requeue.side_effect = [ActionRefused("nobody knows"), RunEnded("gone")]
    found, pilot = SlurmRequeues(orders, SCOPES), replace(PILOT, deadline=NOW, lead=0)
    assert list(found.carry_out([pilot, pilot], NOW)) == ["12 is not requeued: nobody knows"]
