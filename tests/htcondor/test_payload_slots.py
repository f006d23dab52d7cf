"""What glideins advertise in a CE's collector becomes figures of their batch jobs, whatever their users write there."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from drainwise.htcondor.pool.payload_slots import reports_of
from drainwise.pilotad.report import OBSERVED
from drainwise.pool.facts import Pilot
from drainwise.reclaim.candidates import candidate_of
from drainwise.reclaim.history import History
from drainwise.reclaim.settings import ReclaimSettings
from reached_asserts import judged

NOW = 1_795_236_000
SETTINGS = ReclaimSettings("least-waste", 7200, 7200, 86_400, 4200, 512, 128, 1024)
SLURM = {"GLIDEIN_SiteWMS": "SLURM", "GLIDEIN_SiteWMS_JobId": "2606077", "GLIDEIN_SiteWMS_Queue": "Unknown"}
CONDOR = {"GLIDEIN_SiteWMS": "HTCondor", "GLIDEIN_SiteWMS_JobId": "12.0", "GLIDEIN_SiteWMS_Queue": "ce"}


def payload(cores: int, seconds: int, **more: object) -> dict[str, object]:
    """The slot of a payload that has run so long."""
    return {**CONDOR, "State": "Claimed", "Cpus": cores, "JobStart": NOW - seconds, **more}


def kill_waste(report: Any) -> float:
    """What ending the pilot of 8 cores would lose, which began two hours ago."""
    one = candidate_of(Pilot("r", "slot1_1", "n1", "a", "alice", 8, NOW - 7200, None, report), NOW, SETTINGS, History())
    assert one.standing == OBSERVED
    return one.kill_waste


def test_a_glidein_would_lose_what_its_payloads_have_done() -> None:
    """Its free slot counts for nothing."""
    [(job, report)] = reports_of(
        [{**CONDOR, "State": "Unclaimed", "Cpus": 2}, payload(4, 600), payload(2, 100)], NOW
    ).items()
    assert (job, report.used_cpu, kill_waste(report)) == ("ce#12.0", 6, 4 * 600 + 2 * 100)


def test_a_glidein_without_a_payload_would_lose_nothing() -> None:
    assert kill_waste(reports_of([{**SLURM, "State": "Unclaimed", "Cpus": 8}], NOW)["2606077"]) == 0


def test_a_slot_of_no_batch_job_is_nobodys() -> None:
    assert (
        reports_of([{"State": "Claimed", "Cpus": 8, "JobStart": NOW - 9}, payload(8, 9, GLIDEIN_SiteWMS_JobId=12)], NOW)
        == {}
    )


ODD = st.sampled_from([None, True, "x", -1, 0.5, 10**30, NOW - 60, NOW + 10**6, float("nan"), float("inf"), ""])
SLOTS = st.builds(payload, st.integers(1, 64), st.integers(0, 10_000))
CHANGED = st.builds(
    lambda slot, name, odd: {**slot, name: odd}, SLOTS, st.sampled_from(("State", "Cpus", "JobStart")), ODD
)


@given(st.lists(st.one_of(SLOTS, CHANGED), max_size=6))
def test_no_pilot_would_lose_more_than_its_cores_can_have_done(slots: list[dict[str, object]]) -> None:
    """Whatever is advertised in its name."""
    lost = kill_waste(reports_of([CONDOR, *slots], NOW)["ce#12.0"])
    judged("some work would be lost", lost > 0, at_least=0.5)
    judged("as much as can be", lost == 8 * 7200, at_least=0.05)
    assert 0 <= lost <= 8 * 7200
