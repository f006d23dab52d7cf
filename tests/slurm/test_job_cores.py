"""The cores of a job on one of its nodes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drainwise.slurm.job_cores import cores_on, cores_per_node


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 4096), st.integers(1, 9)), min_size=1, max_size=6), st.data())
def test_each_node_has_the_cores_at_its_place(groups: list[tuple[int, int]], data: st.DataObject) -> None:
    """Whatever Slurm has put together as cores(xnodes)."""
    text = ",".join(f"{cores}(x{times})" if times > 1 else str(cores) for cores, times in groups)
    each = [cores for cores, times in groups for _ in range(times)]
    assert cores_per_node(text) == each
    place = data.draw(st.integers(0, len(each) - 1))
    node_list = f"n[1-{len(each)}]"
    assert cores_on(f"n{place + 1}", node_list, text) == (each[place] or None)


@pytest.mark.parametrize(
    ("node", "node_list", "cpus", "cores"),
    [
        ("n2", "n[1-3]", "4(x2),2", 4),
        ("n3", "n[1-3]", "4(x2),2", 2),
        ("gpu-07", "n[1-3],gpu-[06-07]", "8(x3),64,32", 32),
        ("n1", "n1", "16", 16),
        ("one.host.with-dots_", "one.host.with-dots_", "16", 16),
        ("n4", "n[1-3]", "4(x2),2", None),
        ("n1", "n[1-3]", "4(x2)", None),
        ("n1", "n[1-3]", "4(x4)", None),
        ("n1", "n1,n1", "4(x2)", None),
        ("n1", "n[1-3", "4(x3)", None),
        ("n1", "n1", "0", None),
        ("n1", "n1", "", None),
        ("n1", "", "4", None),
    ],
)
def test_in_doubt_the_cores_are_not_known(node: str, node_list: str, cpus: str, cores: int | None) -> None:
    """A node that is not in the list, or lists of different lengths: nothing is guessed."""
    assert cores_on(node, node_list, cpus) == cores


@pytest.mark.parametrize(
    "text", ["", "x", "4(2)", "4(x)", "4(x2", "4(x2)3", "4x2", "-4", "4,", "4(x99999999)", "4 ", "٤"]
)
def test_what_is_no_list_of_cores_is_refused(text: str) -> None:
    """HOSTILE 36: signs, other digits, numbers without end."""
    with pytest.raises(ValueError, match=r"not|too many"):
        cores_per_node(text)
