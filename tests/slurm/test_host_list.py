"""Slurm's lists of hosts: expanded as Slurm does, or refused, always in a bounded time."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.slurm.node.host_list import MOST_HOSTS, hosts

RECORDED = Path(__file__).parent / "recorded"


def recorded(release: str) -> list[tuple[str, list[str]]]:
    """What `scontrol show hostnames` of a release printed for lists that it understood."""
    rows = (line.partition("\t") for line in (RECORDED / f"hostnames-{release}.tsv").read_text().splitlines())
    return [(text, names.split()) for text, _, names in rows if names]


@pytest.mark.parametrize("release", ["22.05", "24.11"])
def test_as_slurm_itself_expands_them(release: str) -> None:
    """The same hosts in the same order: padded, mixed and reversed ranges, up to four brackets, text behind them."""
    lists = recorded(release)
    assert len(lists) > 25
    assert {text: hosts(text) for text, _ in lists} == dict(lists)


letters = st.text("abcxyzABC._", min_size=1, max_size=4).map(lambda text: f"{text}-")
spans = st.tuples(st.integers(0, 2000), st.integers(0, 12), st.integers(1, 5))


@given(st.lists(st.tuples(letters, st.lists(spans, min_size=1, max_size=3), letters | st.just("")), max_size=4))
def test_a_list_of_ranges_is_each_range_in_turn(parts: list[tuple[str, list[tuple[int, int, int]], str]]) -> None:
    """Every number stands once, at its place, with its padding."""
    text, expected = [], []
    for before, ranges, behind in parts:
        shown = ",".join(f"{low:0{width}}-{low + more:0{width}}" for low, more, width in ranges)
        text.append(f"{before}[{shown}]{behind}")
        expected += [
            f"{before}{low + step:0{width}}{behind}" for low, more, width in ranges for step in range(more + 1)
        ]
    assert hosts(",".join(["login", *text])) == ["login", *expected]


@pytest.mark.parametrize(
    "text",
    [
        *("", ",", "a,", "a,,b", "n[", "n]", "n[]", "n[1", "n[1-", "n[-1]", "n[1-2-3]", "n[[1]]", "n[1]]", "n[2-1]"),
        *("n[a-b]", "n[1,]", "n[+1]", "n[1_0]", "n[١]", "n[ 1]", "n 1", "n;id", "n$(id)", "n\n2", "../n", "n/1", "é"),
        *(f"n[0-{MOST_HOSTS}]", "n[1-999999999]", "n[1-9999999999]", "n[1-1000][1-1000]", "[1]" * 20, "n[" * 9999),
        *(",".join(["n[1-60000]"] * 2), "n," * 70000 + "n"),
    ],
)
def test_what_is_not_surely_understood_is_refused(text: str) -> None:
    """HOSTILE 20, 22, 44: at once, also where it would be millions of hosts."""
    with pytest.raises(ValueError, match=r"host"):
        hosts(text)


@given(st.text("n[]-,019x", max_size=40) | st.text(max_size=40))
def test_any_text_is_a_list_or_refused(text: str) -> None:
    """Nothing else is raised; what comes out could be names of hosts."""
    try:
        names = hosts(text)
    except ValueError:
        return
    assert names
    assert all(name.isascii() and name.isprintable() and "/" not in name for name in names)


def test_the_largest_job() -> None:
    """As many nodes as Slurm can have."""
    names = hosts(f"node[00001-{MOST_HOSTS}]")
    assert (len(names), names[0], names[-1]) == (MOST_HOSTS, "node00001", f"node{MOST_HOSTS}")
