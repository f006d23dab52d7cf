"""A glidein's report by its payloads' ads: the figures by hand, the pilot's own sums, and what is bounded."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.facts.waste import draining_waste, kill_waste
from drainwise.node.glidein import (
    GlideinPayload,
    GlideinSettings,
    glidein_report,
    payload_of,
    settings_in,
)
from drainwise.pilot.decide.lease import Lease
from drainwise.pilot.decide.payload import Payload
from drainwise.pilot.decide.workload import RunningPayload, Workload, report_of
from drainwise.pilotad.attributes import GLIDEIN_AD
from drainwise.pilotad.report import CONTRADICTORY, GLIDEIN, INCOMPLETE, standing

NOW = 1795249000
BEGUN = NOW - 1000
LIMIT = 3600


def test_the_figures_by_hand() -> None:
    """Two payloads on 8 cores: 2 since 100 s that may run 15 min, 4 since 20 s that may run 12 min; no stay."""
    payloads = (GlideinPayload(2, NOW - 100, NOW + 800), GlideinPayload(4, NOW - 20, NOW + 700))
    found = glidein_report(payloads, GlideinSettings(), 8, BEGUN, BEGUN, NOW)
    assert (found.used_cpu, found.last_job_start) == (6, NOW - 20)
    assert (found.first_exp_job_end, found.last_exp_job_end, found.last_max_job_end) == (
        NOW + 700,
        NOW + 800,
        NOW + 800,
    )
    assert kill_waste(found.add_uncom_time, 6, found.last_job_start, NOW) == 2 * 100 + 4 * 20
    assert draining_waste(8, 6, NOW + 700, found.add_final_exp_waste, NOW) == 2 * 700 + 6 * 100
    assert (found.priority_factor, found.can_postpone_last_job) == (0, True)
    assert standing(found, NOW, LIMIT, BEGUN, 8) == GLIDEIN


def test_the_last_end_is_when_it_leaves() -> None:
    """All cores idle for GLIDEIN_Max_Tail and half of the time between two looks; at the latest for a whole one."""
    settings = settings_in(b"GLIDEIN_Max_Tail=400\nUPDATE_INTERVAL = $RANDOM_INTEGER(270, 370, 1)\n")
    found = glidein_report((GlideinPayload(8, NOW, NOW + 600),), settings, 8, BEGUN, BEGUN, NOW)
    assert (found.first_exp_job_end, found.last_exp_job_end, found.last_max_job_end) == (
        NOW + 600,
        NOW + 600 + 560,
        NOW + 600 + 770,
    )
    assert found.add_final_exp_waste == 8 * 560
    assert standing(found, NOW, LIMIT, BEGUN, 8) == GLIDEIN


@pytest.mark.parametrize(
    ("config", "settings"),
    [
        (b"", GlideinSettings()),
        (b"GLIDEIN_ToRetire = 1795249000\nUPDATE_INTERVAL = 5", GlideinSettings()),
        (b"GLIDEIN_Max_Tail = 0", GlideinSettings(0, (270, 370))),
        (b"GLIDEIN_ToDie = 1795249000", GlideinSettings(400, (270, 370), None, 1795249000)),
        (b"GLIDEIN_ToDie = 0\nGLIDEIN_ToRetire = 0\n", GlideinSettings(400, (270, 370))),
        (b"glidein_todie=5\nGLIDEIN_TODIE=6 \n GLIDEIN_ToRetire = 7\n", GlideinSettings(400, (270, 370), 7, 6)),
        (b"GLIDEIN_Max_Tail = -1\nUPDATE_INTERVAL = 40", GlideinSettings(400, (40, 40))),
        (b"GLIDEIN_Max_Tail = 31622400\nUPDATE_INTERVAL=0", GlideinSettings(31622400, (270, 370))),
        (b"GLIDEIN_Max_Tail = 31622401\nUPDATE_INTERVAL=x", GlideinSettings(400, (270, 370))),
        (b"GLIDEIN_Max_Tail=1\nUPDATE_INTERVAL = $RANDOM_INTEGER(20,30)", GlideinSettings(1, (20, 30))),
        (b"GLIDEIN_Max_Tail=1\nUPDATE_INTERVAL = $random_integer(20, 30, 5)", GlideinSettings(1, (20, 30))),
        (b"GLIDEIN_Max_Tail=1\nUPDATE_INTERVAL = $RANDOM_INTEGER(30,20)", GlideinSettings(1, (270, 370))),
        (b"GLIDEIN_Max_Tail=1\nUPDATE_INTERVAL = $RANDOM_INTEGER(30)", GlideinSettings(1, (270, 370))),
        (b"GLIDEIN_Max_Tail=1\nUPDATE_INTERVAL = $RANDOM_CHOICE(20,30)", GlideinSettings(1, (270, 370))),
    ],
)
def test_its_settings_are_the_last_ones_and_what_makes_no_sense_is_as_usual(
    config: bytes, settings: GlideinSettings
) -> None:
    """Another HTCondor, without its two, does not stay."""
    assert settings_in(config) == settings


def test_without_payloads_what_is_left_of_its_stay_counts() -> None:
    """It idles since its last payload ended, as the directory of its payloads shows."""
    found = glidein_report((), GlideinSettings(400, (270, 370)), 8, BEGUN, NOW - 300, NOW)
    assert (found.used_cpu, found.add_uncom_time, found.add_final_exp_waste) == (0, 0, 0)
    assert found.first_exp_job_end == found.last_exp_job_end == NOW + 260
    assert standing(found, NOW, LIMIT, BEGUN, 8) == GLIDEIN


def test_a_glidein_that_retires_is_draining() -> None:
    """And nothing runs beyond its own end."""
    settings = settings_in(b"glidein_todie = %d\nGLIDEIN_TORETIRE = %d\n" % (NOW + 500, NOW - 1))
    assert (settings.stay, settings.looks) == (400, (270, 370))
    found = glidein_report(
        (GlideinPayload(8, NOW, NOW + 600), GlideinPayload(1, NOW, None)), settings, 9, BEGUN, 0, NOW
    )
    assert found.can_postpone_last_job is False
    assert found.first_exp_job_end == found.last_exp_job_end == found.last_max_job_end == NOW + 500


def test_an_end_that_nobody_stated_is_not_known() -> None:
    """What a kill would lose is, and that a glidein said so."""
    found = glidein_report((GlideinPayload(2, NOW - 60, None),), GlideinSettings(), 8, BEGUN, BEGUN, NOW)
    assert found.source == GLIDEIN_AD
    assert (found.used_cpu, found.add_uncom_time, found.last_exp_job_end) == (2, 0, None)
    assert standing(found, NOW, LIMIT, BEGUN, 8) == INCOMPLETE


@pytest.mark.parametrize(
    ("job", "end"),
    [
        (b"JobCurrentStartDate = 1795248000\nMaxWallTimeMins = 15\n", 1795248900),
        (b"JobCurrentStartDate = 1795248000\nAllowedExecuteDuration = 600\nMaxWallTimeMins = 15\n", 1795248600),
        (b"maxwalltimemins = 10.5\n", 1795248500 + 600),
        (b"JobCurrentStartDate = 1795248000\nMaxWallTimeMins = ifThenElse(true, 1, 2)\n", None),
        (b"JobCurrentStartDate = 1795248000\nMaxWallTimeMins = 99999999999999\n", None),
        (b"", None),
    ],
)
def test_a_payload_by_its_ads(job: bytes, end: int | None) -> None:
    """The tightest limit that is a plain number; without a start the time at which the ads were written."""
    found = payload_of(b'Name = "slot1_1@x"\nCpus = 4\n', job, 1795248500)
    assert found is not None
    assert (found.cores, found.end) == (4, end)


@pytest.mark.parametrize("machine", [b"", b"Cpus = 0\n", b"Cpus = -1\n", b"Cpus = 1 + 1\n"])
def test_a_payload_without_cores_is_none(machine: bytes) -> None:
    """Nothing would be known of it."""
    assert payload_of(machine, b"MaxWallTimeMins = 1\n", NOW) is None


@given(st.binary(max_size=300), st.binary(max_size=300), st.integers(0, NOW))
def test_no_bytes_break_it(machine: bytes, job: bytes, written: int) -> None:
    """Whatever the ads are, a payload comes out or none."""
    payload_of(b"Cpus = 1\n" + machine, b"JobCurrentStartDate = " + job, written)
    settings = settings_in(b"GLIDEIN_Max_Tail = " + machine + b"\nUPDATE_INTERVAL = $RANDOM_INTEGER(" + job)
    assert settings.stay >= 0 and 0 <= settings.looks[0] <= settings.looks[1]


payloads = st.builds(
    lambda cores, ran, left: GlideinPayload(cores, NOW - ran, NOW + left),
    st.integers(1, 8),
    st.integers(0, 1000),
    st.integers(0, 10_000),
)


@given(st.lists(payloads, min_size=1, max_size=12), st.integers(1, 40))
def test_the_sums_are_the_reference_pilots(running: list[GlideinPayload], cores: int) -> None:
    """Without a stay it states what the reference pilot states with the same payloads."""
    workload = Workload(BEGUN)
    for number, each in enumerate(running):
        payload = Payload(f"p{number}", each.cores, ("true",), 1.0, 1.0)
        workload.add(RunningPayload(payload, each.started, each.end or 0, each.end or 0))
    wanted = report_of(workload, Lease(cores, BEGUN, None), can_postpone=True, priority_factor=0, now=NOW)
    found = glidein_report(running, GlideinSettings(), cores, BEGUN, BEGUN, NOW)
    for field in ("used_cpu", "last_job_start", "first_exp_job_end", "last_exp_job_end", "last_max_job_end"):
        assert getattr(found, field) == getattr(wanted, field)
    assert found.add_uncom_time == pytest.approx(wanted.add_uncom_time, abs=1e-3)
    assert found.add_final_exp_waste == pytest.approx(wanted.add_final_exp_waste, abs=1e-3)


anything = st.builds(GlideinPayload, st.integers(1, 2**62), st.integers(0, 2**62), st.none() | st.integers(0, 2**62))
settings_found = st.builds(
    GlideinSettings,
    st.integers(0, 10**7),
    st.tuples(st.integers(0, 300), st.integers(300, 10**7)),
    st.none() | st.integers(1, 4 * 10**9),
    st.none() | st.integers(1, 4 * 10**9),
)


@given(st.lists(anything, max_size=5), settings_found, st.integers(1, 64), st.integers(0, 2 * NOW))
def test_it_never_contradicts_itself(
    running: list[GlideinPayload], settings: GlideinSettings, cores: int, idle_since: int
) -> None:
    """Whatever the ads state: no contradiction by the node's own rules, and no more lost than the job can have done."""
    found = glidein_report(running, settings, cores, BEGUN, idle_since, NOW)
    assert standing(found, NOW, LIMIT, BEGUN, cores) != CONTRADICTORY
    assert (found.add_uncom_time or 0) <= cores * 1000 and (found.used_cpu or 0) <= cores


def test_payloads_with_more_cores_than_the_lease_count_as_a_part_of_it() -> None:
    """Two of 8 cores on a lease of 8: each core does one half of them."""
    payloads = (GlideinPayload(8, NOW - 100, NOW + 800), GlideinPayload(8, NOW - 20, NOW + 700))
    found = glidein_report(payloads, GlideinSettings(), 8, BEGUN, BEGUN, NOW)
    assert (found.used_cpu, found.add_uncom_time, found.add_final_exp_waste) == (8, 4 * 80, 4 * 100)
