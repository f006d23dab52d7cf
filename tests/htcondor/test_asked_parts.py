"""The list of what runs are asked to return: strict in what it takes, and one entry for a run."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.facts.errors import ActionRefused
from drainwise.htcondor.node.parts import asked_of
from drainwise.htcondor.pool.knobs import with_part
from drainwise.pilotad.partial_return import PartialReturn

RUN = "ce01.example.org#12.0#1795249000@1795249100"
OTHER = "schedd@ce01.example.org#7.3#1795240000@1795240009"
BY = 1795260000


def test_a_wish_takes_the_place_of_an_earlier_one_and_leaves_those_of_other_runs() -> None:
    """What has ended is left out."""
    first = with_part("", RUN, PartialReturn(5, BY, 4), [RUN])
    assert first == f"{RUN}=5:{BY}:4"
    both = with_part(first, OTHER, PartialReturn(1), [RUN, OTHER])
    assert both == f"{first} {OTHER}=1:0:1"
    assert with_part(both, RUN, PartialReturn(0), [RUN, OTHER]) == f"{OTHER}=1:0:1 {RUN}=0:0:1"
    assert with_part(both, RUN, PartialReturn(0), [RUN]) == f"{RUN}=0:0:1"


@pytest.mark.parametrize("junk", ["x", "a b=1:2", f"{RUN}x y=5:0:1", f"{RUN}=5:0", "$(NUM_CPUS)=5:0:1"])
def test_what_is_no_wish_is_left_out(junk: str) -> None:
    """It could not be written by us."""
    assert with_part(junk, OTHER, PartialReturn(1), [RUN, OTHER, *junk.split()]) == f"{OTHER}=1:0:1"


@pytest.mark.parametrize(
    ("run", "wish"),
    [
        (f"{RUN} x", PartialReturn(1)),
        (f'{RUN}"', PartialReturn(1)),
        ("$(NUM_CPUS)", PartialReturn(1)),
        (f"{RUN}\n", PartialReturn(1)),
        (RUN, PartialReturn(-1)),
        (RUN, PartialReturn(1, 5)),
        (RUN, PartialReturn(1, None, 0)),
    ],
)
def test_nothing_else_enters_a_configuration(run: str, wish: PartialReturn) -> None:
    """HOSTILE 31: a blank, a quote, a macro or a newline would be more than a wish."""
    with pytest.raises(ActionRefused):
        with_part("", run, wish, [run])


@given(
    st.lists(
        st.tuples(
            st.sampled_from([RUN, OTHER]),
            st.builds(PartialReturn, st.integers(0, 999), st.none() | st.integers(BY, 2 * BY), st.integers(1, 64)),
        ),
        min_size=1,
        max_size=6,
    )
)
def test_what_is_written_last_is_read_for_each_run(wishes: list[tuple[str, PartialReturn]]) -> None:
    """By the node as by the agent."""
    value = ""
    for run, wish in wishes:
        value = with_part(value, run, wish, [RUN, OTHER])
        assert asked_of(run, value) == wish
    assert {run: asked_of(run, value) for run, _ in wishes} == dict(wishes)
