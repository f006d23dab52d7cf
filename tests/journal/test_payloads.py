"""How long payloads run is learned from what nodes saw begin and end, and is still known after a restart."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from drainwise.journal.file import journal_line
from drainwise.journal.memory import Memory
from drainwise.journal.remembered import MOST_WRITTEN, SeenPayloads, gone
from drainwise.pilotad.observation import Observation, observed_report
from drainwise.pilotad.report import OBSERVED
from drainwise.pool.facts import Account, Pilot, Snapshot
from drainwise.reclaim.candidates import LEAVE
from drainwise.reclaim.decide.decision import make_plan
from drainwise.reclaim.quota import WhatIf
from drainwise.reclaim.seen_pilots import kind_of_payload, with_expected_ends
from drainwise.reclaim.settings import ReclaimSettings
from one_pilot import assess

NOW, STEP, LASTS = 1795249000, 60, 3600
SETTINGS = ReclaimSettings("least-waste", 7200, 7200, 86400, 3600, 1000, 1000, 1000, drain_only=False)


def observed(at: int, *begins: int, cores_busy: float = 4.0, client: str = "plain") -> Observation:
    cpu = round(sum(at - begin for begin in begins) * cores_busy / max(1, len(begins)))
    return Observation(client, at, len(begins), cores_busy if begins else 0.0, cpu, 0, begins)


def pilot(run: str, seen: Observation, user: str = "alice", cores: int = 8) -> Pilot:
    started = NOW - 20_000
    return Pilot(run, run, "node1", "group_a", user, cores, started, report=observed_report(seen), seen=seen)


def snapshot(*pilots: Pilot, taken: int) -> Snapshot:
    return Snapshot(taken, pilots, (Account("group_a", 16, 0, 0, 1.0),))


def learned(user: str = "alice", payloads: int = 8) -> Memory:
    """An agent that has seen so many payloads of an hour begin and end in one pilot."""
    memory = Memory()
    begin = NOW - payloads * LASTS
    for number in range(payloads + 1):
        first = begin + number * LASTS
        one = pilot("r", observed(first + STEP, first), user)
        for event in memory.payloads.seen(snapshot(one, taken=first + STEP)):
            memory.note(event)
    return memory


def test_what_ended_is_what_a_node_tells_no_more() -> None:
    memory, begin = SeenPayloads(), NOW - LASTS
    assert memory.seen(snapshot(pilot("r", observed(NOW, begin, begin + 60)), taken=NOW)) == []
    [event] = memory.seen(snapshot(pilot("r", observed(NOW + 60, begin + 61)), taken=NOW + 70))
    life = {"run": "r", "user": "alice", "client": "plain", "began": begin, "ended": NOW + 60}
    assert (event["event"], event["ended"]) == ("payloads", [life])


def test_a_pilot_that_has_gone_teaches_nothing() -> None:
    """Somebody may have ended it, and its payloads with it."""
    memory = SeenPayloads()
    memory.seen(snapshot(pilot("r", observed(NOW, NOW - 60)), taken=NOW))
    assert memory.seen(snapshot(taken=NOW + 60)) == []
    assert memory.seen(snapshot(pilot("r", observed(NOW + 90)), taken=NOW + 90)) == []


def test_an_old_answer_or_another_client_teaches_nothing() -> None:
    memory = SeenPayloads()
    memory.seen(snapshot(pilot("r", observed(NOW, NOW - 60)), taken=NOW))
    assert memory.seen(snapshot(pilot("r", observed(NOW)), taken=NOW + 60)) == []
    memory.seen(snapshot(pilot("r", observed(NOW + 60, NOW - 60)), taken=NOW + 60))
    assert memory.seen(snapshot(pilot("r", observed(NOW + 120, client="panda")), taken=NOW + 120)) == []


def test_payloads_that_began_together_are_told_apart_by_their_number() -> None:
    assert gone(observed(NOW, NOW - 50, NOW - 50, NOW - 49), observed(NOW, NOW - 50)) == [NOW - 50, NOW - 49]
    assert gone(observed(NOW, NOW - 50), observed(NOW, NOW - 52)) == []


def test_what_one_cycle_writes_is_bounded() -> None:
    memory = SeenPayloads()
    runs = [f"r{number}" for number in range(MOST_WRITTEN + 50)]
    memory.seen(snapshot(*(pilot(run, observed(NOW, NOW - 60)) for run in runs), taken=NOW))
    [event] = memory.seen(snapshot(*(pilot(run, observed(NOW + 60)) for run in runs), taken=NOW + 60))
    assert len(event["ended"]) == MOST_WRITTEN  # type: ignore[arg-type]


def test_ends_are_expected_of_what_was_learned() -> None:
    times = learned().history(NOW).run_times
    assert times is not None and times.known(kind_of_payload("alice", "plain")) == 8
    seen = observed(NOW, NOW - 1800, NOW - 600)
    [found] = with_expected_ends(snapshot(pilot("r", seen), taken=NOW), times, NOW).pilots
    report = found.report
    assert report is not None and report.first_exp_job_end is not None and report.last_exp_job_end is not None
    assert report.first_exp_job_end - NOW == pytest.approx(1800, rel=0.3)
    assert report.last_exp_job_end - NOW == pytest.approx(3000, rel=0.3)
    between = report.last_exp_job_end - report.first_exp_job_end
    assert report.add_final_exp_waste == pytest.approx(8 * between - 2 * between, rel=1e-3)
    one = assess(found, NOW, SETTINGS)
    assert (one.standing, one.rule) == (OBSERVED, "")
    assert one.draining_waste is not None and one.kill_waste == seen.cpu_seconds
    assert LEAVE in [option.kind for option in one.options]


def test_nothing_learned_is_no_figure() -> None:
    """Nor is what others' payloads took. The kill is priced by what was seen, the drain by cores and run time."""
    seen = observed(NOW, NOW - 1800)
    for times in (
        None,
        learned(payloads=3).history(NOW).run_times,
        learned("bob").history(NOW).run_times,
    ):
        [found] = with_expected_ends(snapshot(pilot("r", seen), taken=NOW), times, NOW).pilots
        one = assess(found, NOW, SETTINGS)
        assert (one.standing, one.remaining, one.draining_waste) == (OBSERVED, None, None)
        assert one.kill_waste == seen.cpu_seconds < 8 * 20_000
        assert one.rule


def test_a_pilot_without_a_payload_costs_nothing() -> None:
    [found] = with_expected_ends(snapshot(pilot("r", observed(NOW)), taken=NOW), None, NOW).pilots
    one = assess(found, NOW, SETTINGS)
    assert (one.remaining, one.draining_waste, one.kill_waste) == (0, 0, 0)


def test_no_figure_is_beyond_what_the_batch_system_knows() -> None:
    """A node that tells more is not believed beyond that."""
    for busy in (0.0, 4.0, 1e9):
        seen = Observation("plain", NOW, 1, busy, 10**12, 0, (NOW - 10**6,))
        one = assess(pilot("r", seen), NOW, SETTINGS)
        assert 0 < one.kill_waste <= 8 * 20_000


def test_the_plan_knows_what_was_learned() -> None:
    alike = [pilot(f"r{number}", observed(NOW, NOW - 1800)) for number in range(2)]
    late = replace(alike[1], seen=observed(NOW, NOW - 60), report=observed_report(observed(NOW, NOW - 60)))
    plan = make_plan(snapshot(alike[0], late, taken=NOW), NOW, SETTINGS, learned().history(NOW), WhatIf(8))
    [order] = [order for user in plan.users for order in user.orders]
    assert order.candidate.standing == OBSERVED and order.candidate.draining_waste is not None


def test_what_was_learned_survives_a_restart(tmp_path: Path) -> None:
    memory, file = Memory(), tmp_path / "journal"
    with file.open("w", encoding="ascii") as stream:
        for number in range(9):
            begin = NOW - (8 - number) * LASTS
            one = pilot("r", observed(begin + STEP, begin))
            for event in memory.payloads.seen(snapshot(one, taken=begin + STEP)):
                memory.note(event)
                stream.write(journal_line(event))
    kind = kind_of_payload("alice", "plain")
    fresh = Memory.load([str(file)], NOW).history(NOW).run_times
    before = memory.history(NOW).run_times
    assert fresh is not None and before is not None
    fresh.watch(())
    before.watch(())
    assert fresh.expected(kind) == before.expected(kind) is not None
