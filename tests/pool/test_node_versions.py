"""Nodes counted by the version of drainwise that they run, whatever they say, and the line where it is not one."""

from __future__ import annotations

import pytest

from drainwise.pool.notices import counted, mixed_line


def test_each_node_counts_once_under_its_version() -> None:
    assert counted(["0.2.0", "0.1.0", "0.2.0", ""]) == (("", 1), ("0.1.0", 1), ("0.2.0", 2))
    assert counted([]) == ()


@pytest.mark.parametrize("forged", ["0.1.0\x1b[31m", "x" * 33, '0"} 1', "Ä"])
def test_what_can_be_no_version_is_unknown(forged: str) -> None:
    assert counted([forged, "0.1.0"]) == (("", 1), ("0.1.0", 1))


def test_many_versions_are_few_rows() -> None:
    """A forged version for each node would be a metric for each."""
    found = dict(counted(["0.1.0"] * 5 + [f"9.{number}" for number in range(100)]))
    assert len(found) <= 9 and found["0.1.0"] == 5 and sum(found.values()) == 105


def test_one_version_on_all_machines_is_not_worth_a_line() -> None:
    assert mixed_line((("0.2.0", 7),), "0.2.0") == ""
    assert mixed_line((), "0.2.0") == ""
    expected = "nodes by the version of drainwise: 1 of unknown, 2 of 0.1.0, 7 of 0.2.0; here it is 0.2.0"
    assert mixed_line((("", 1), ("0.1.0", 2), ("0.2.0", 7)), "0.2.0") == expected
    assert mixed_line((("0.1.0", 7),), "0.2.0") == "nodes by the version of drainwise: 7 of 0.1.0; here it is 0.2.0"
