"""A list of nodes means what an administrator who writes hostlists expects, and nothing else is taken for one."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.cli.drain import known_nodes, nodes_of
from drainwise.facts.errors import DrainwiseError, UsageError


@pytest.mark.parametrize(
    ("texts", "nodes"),
    [
        (["n1"], ["n1"]),
        (["n1,n2", "n1"], ["n1", "n2"]),
        (["n[1-3]"], ["n1", "n2", "n3"]),
        (["rack7-[08-11,15].site"], ["rack7-08", "rack7-09", "rack7-10", "rack7-11", "rack7-15"]),
        (["r[1-2]n[1-2]"], ["r1n1", "r1n2", "r2n1", "r2n2"]),
        ([""], []),
    ],
)
def test_names_and_ranges_are_expanded_in_their_order(texts: list[str], nodes: list[str]) -> None:
    found = nodes_of(texts)
    assert [one.removesuffix(".site") for one in found] == nodes


def test_a_file_has_such_texts_a_line_each(tmp_path: Path) -> None:
    rack = tmp_path / "rack7"
    rack.write_text("# the old rack\nn[1-2]\n\nn7 n9  # the last ones\n")
    assert nodes_of([f"@{rack}", "x"]) == ("n1", "n2", "n7", "n9", "x")


@pytest.mark.parametrize("text", ["n[3-1]", "n[", "n[1", "[]", "n[a-b]", "n[1-999999999]", "n[1-2]]", "a b", "@/none"])
def test_what_is_no_list_is_refused(text: str) -> None:
    with pytest.raises(DrainwiseError):
        nodes_of([text])


@given(st.text(alphabet="n01-9[],@ \n.x", max_size=20))
def test_any_text_is_a_list_or_refused(text: str) -> None:
    try:
        found = nodes_of([text.replace("@", "")])
    except UsageError:
        return
    assert all(name and not set(name) & set("[], \n") for name in found)


@given(st.integers(0, 99), st.integers(0, 40))
def test_a_range_counts_with_the_width_of_its_first_number(first: int, more: int) -> None:
    found = nodes_of([f"n[{first:03d}-{first + more}]"])
    assert found == tuple(f"n{number:03d}" for number in range(first, first + more + 1))


def test_a_node_is_called_with_or_without_its_domain() -> None:
    known = ["n1.a", "n2.a", "n3.a", "n3.b"]
    assert known_nodes(["n1", "n2.a"], known) == ("n1.a", "n2.a")
    with pytest.raises(UsageError, match=r"is called 'n3'; there is n3\.a, n3\.b"):
        known_nodes(["n3"], known)
    with pytest.raises(UsageError, match="is called 'x'; there is none that is like it"):
        known_nodes(["x"], known)
