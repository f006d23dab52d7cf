"""What a site bills for all that a job holds, by weights as Slurm's TRESBillingWeights has them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from drainwise.pool.amounts import Amounts
from drainwise.pool.billing import CORES, LEAST, SITE, Billing, parse_billing
from drainwise.pool.facts import Piece, Pilot

GPUS = Amounts(8, memory=65_536, gpus=4, others=(("gpu:a100", 4),))


def job(holds: Amounts | None = None, *pieces: Amounts) -> Pilot:
    parts = tuple(Piece(f"n{number}", f"n{number}", one) for number, one in enumerate(pieces))
    return Pilot("1@1", "1", "n0", "a", "alice", 8, 1, holds=holds, pieces=parts)


@pytest.mark.parametrize(
    ("written", "holds", "each"),
    [
        (CORES, GPUS, 1.0),
        ("CPU=1", GPUS, 1.0),
        ("CPU=1,GRES/gpu=16", GPUS, 1 + 16 * 4 / 8),
        ("cpu=0.5, mem=0.25G, gres/gpu:a100=2", GPUS, 0.5 + 0.25 * 64 / 8 + 2 * 4 / 8),
        ("CPU=1,Mem=1", Amounts(8, memory=80), 1 + 80 / 8),
        ("CPU=2,GRES/gpu=16,GRES/fpga=3", Amounts(8, others=(("fpga", 1),)), 2 + 3 / 8),
        ("CPU=2,GRES/gpu=16", None, 2.0),
        ("GRES/gpu=16", Amounts(8), LEAST),
    ],
)
def test_each_core_is_billed_with_its_part_of_all_that_the_job_holds(
    written: str, holds: Amounts | None, each: float
) -> None:
    """Cores alone where nothing else is known; no job is free."""
    assert parse_billing(written).each_core(job(holds)) == pytest.approx(each)


def test_a_job_of_several_nodes_is_billed_for_all_of_them() -> None:
    half = Amounts(4, gpus=1)
    assert parse_billing("CPU=1,GRES/gpu=8").each_core(job(None, half, half)) == 1 + 8 * 2 / 8


@pytest.mark.parametrize(
    "written",
    ["", "CPU", "CPU=-1", "CPU=1G", "CPU=1,CPU=2", "GRES/=1", "Energy=1", "CPU=0", "CPU=1,", "CPU=1e9", "Mem=1P"],
)
def test_what_is_no_weight_is_refused(written: str) -> None:
    with pytest.raises(ValueError):
        parse_billing(written)


def test_cores_alone_is_what_a_site_has_that_says_nothing() -> None:
    assert parse_billing(CORES) == Billing()
    assert [parse_billing(one).unit for one in (CORES, "CPU=1", "CPU=2", SITE)] == [
        *("core-h", "core-h", "billing-h", "billing-h")
    ]


def test_what_the_batch_system_bills_is_taken_as_it_is() -> None:
    """Its cores where it does not tell."""
    run, site = job(Amounts(8, gpus=4)), parse_billing(SITE)
    assert site.each_core(run) == 1.0
    assert site.each_core(replace(run, billed=72.0)) == 9.0
    assert site.each_core(replace(run, billed=0.0)) == LEAST
