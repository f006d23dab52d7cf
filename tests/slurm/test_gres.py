"""Generic resources as Slurm writes them of jobs and nodes; the texts are those of real ones."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.slurm.jobs.gres import gres_in, gres_of_run, gres_per_node


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("(null)", {}),
        ("", {}),
        ("N/A", {}),
        ("gpu:0,fpga:0", {}),
        ("gpu:a100:2,gpu:t4:1,fpga:3", {"gpu": 3, "gpu:a100": 2, "gpu:t4": 1, "fpga": 3}),
        ("gpu:a100:2(IDX:0,3-5),gpu:t4:0(IDX:N/A),fpga:1", {"gpu": 2, "gpu:a100": 2, "fpga": 1}),
        ("gpu:a100:4(S:0-1)", {"gpu": 4, "gpu:a100": 4}),
        ("gpu:a100:1(IDX:0),fpga(CNT:2)", {"gpu": 1, "gpu:a100": 1, "fpga": 2}),
        ("gres:gpu:1", {"gpu": 1}),
        ("gres/gpu:a100:1,gres/fpga:1", {"gpu": 1, "gpu:a100": 1, "fpga": 1}),
        ("cpu=2,gres/gpu=1", {"gpu": 1}),
        ("cpu=8", {}),
        ("gres/gpu", {"gpu": 1}),
        ("gpu:tesla", {"gpu": 1, "gpu:tesla": 1}),
        ("bandwidth:lustre:no_consume:4G", {}),
        ("shard:2K", {"shard": 2048}),
        ("license/matlab:2", {}),
    ],
)
def test_what_slurm_writes(text: str, found: dict[str, int]) -> None:
    assert dict(gres_in(text)) == found


@pytest.mark.parametrize(
    ("resources", "found"),
    [
        ("cpu=3,mem=6G,node=1,billing=3", {}),
        ("cpu=3,gres/gpu=2,gres/gpu:a100=2", {"gpu": 2, "gpu:a100": 2}),
        ("cpu=3,gres/gpu:a100=2,gres/gpu:t4=1", {"gpu": 3, "gpu:a100": 2, "gpu:t4": 1}),
        ("cpu=3,gres/gpu=3,gres/gpu:a100=2", {"gpu": 3, "gpu:a100": 2}),
    ],
)
def test_what_a_run_was_given(resources: str, found: dict[str, int]) -> None:
    """The type stands beside the sum there, and is not added to it."""
    assert dict(gres_of_run(resources)) == found


@pytest.mark.parametrize(
    ("said", "ranks", "nodes", "found"),
    [
        (("gres/gpu:2", "", "", ""), 1, 1, {"gpu": 2}),
        (("N/A", "gres/gpu:3", "N/A", "N/A"), 1, 2, {"gpu": 2}),
        (("N/A", "N/A", "cpu=2,gres/gpu=1", "N/A"), 5, 2, {"gpu": 3}),
        (("gres:gpu:4", "gres:gpu:8", "", ""), 1, 2, {"gpu": 4}),
        (("", "", "", "gres/gpu:1"), 1, 1, {"gpu": 1}),
        (("", "gres/gpu:3", "", ""), 0, 0, {"gpu": 3}),
    ],
)
def test_what_a_job_asks_of_a_node(said: tuple[str, ...], ranks: int, nodes: int, found: dict[str, int]) -> None:
    assert dict(gres_per_node(said, ranks, nodes)) == found


PIECES = st.sampled_from([*"gpu:,()=/0129KMGT", "gres/", "gres:", "gpu", "a100", "(IDX:0-1)", "no_consume", "\n", "²"])


@given(st.lists(PIECES, max_size=30).map("".join) | st.text(max_size=40))
def test_whatever_stands_there_gives_amounts(text: str) -> None:
    """Never an error, an amount of 0 or less, or one without bound; who has a type is counted without it as well."""
    for found in (dict(gres_in(text)), dict(gres_of_run(text))):
        assert all(0 < count < 64 * 10**12 << 50 for count in found.values())
        assert all(found[name.partition(":")[0]] >= count for name, count in found.items() if ":" in name)
    gres_per_node((text, text, text, text), 3, 2)
