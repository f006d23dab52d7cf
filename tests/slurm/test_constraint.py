"""Features that a job asks for: which nodes would do."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.slurm.pool.node_classes import is_met


@pytest.mark.parametrize(
    ("constraint", "features", "met"),
    [
        ("", "", True),
        ("fast", "fast rack1", True),
        ("fast", "rack1", False),
        ("fast&rack1", "fast", False),
        ("fast&rack1", "fast rack1", True),
        ("fast,rack1", "fast", False),
        ("fast|rack2", "rack2", True),
        ("fast|rack2", "rack1", False),
        ("[rack1|rack2]", "rack2", True),
        ("[rack1|rack2]", "fast", False),
        ("fast|rack2&rack1", "fast", False),
        ("fast|(rack2&rack1)", "fast", True),
        ("fast&[rack1|rack2]", "fast rack2", True),
        ("fast*1", "rack1", False),
        ("[(rack1&fast)*1|rack2*1]", "rack1", False),
        ("[rack1", "", True),
        ("rack1&", "", True),
        ("&", "", True),
        ("a:b", "", True),
        ("a*0", "", True),
        ("((", "", True),
        ("(" * 99 + "a" + ")" * 99, "", True),
        ("a" * 5000, "", True),
    ],
)
def test_a_node_would_do_or_not(constraint: str, features: str, met: bool) -> None:
    """From left to right; what is not understood is taken as met."""
    assert is_met(constraint, set(features.split())) is met


def test_a_count_less_than_the_nodes_asks_nothing_of_one() -> None:
    """`rack1*2&rack2*2` of four nodes: each of them may be either; of two nodes all must have `fast*2`."""
    assert is_met("[rack1*2&rack2*2]", set(), 4)
    assert not is_met("fast*2", set(), 2)
    assert is_met("fast*2", {"fast"}, 2)


NAMES = st.sampled_from("abc")
FEATURES = st.frozensets(NAMES)


@given(st.frozensets(NAMES, min_size=1), FEATURES)
def test_a_plain_list_wants_all_and_a_choice_any(names: frozenset[str], features: frozenset[str]) -> None:
    assert is_met("&".join(names), features) == (names <= features)
    assert is_met("|".join(names), features) == bool(names & features)
    assert is_met(f"[{'|'.join(names)}]", features) == bool(names & features)


@given(st.text(alphabet="abc&|,()[]*12: \n", max_size=20) | st.text(max_size=20), FEATURES, NAMES, st.integers(1, 3))
def test_more_features_never_do_less(constraint: str, features: frozenset[str], more: str, nodes: int) -> None:
    """Whatever the user wrote, and never an error."""
    assert is_met(constraint, features | {more}, nodes) >= is_met(constraint, features, nodes)
