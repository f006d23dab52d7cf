"""Small made-up traces, and how a site is played with them."""

from __future__ import annotations

from hypothesis import strategies as st

from drainwise_simulate.scenario import Checkpoints, Scenario, site_settings
from drainwise_simulate.trace import TraceJob

WIDTHS = (1, 1, 1, 2, 4, 8)


def job(number: int, submit: float, run: float, cores: int = 1, requested: float = 0.0, user: str = "u") -> TraceJob:
    """A job that asks for what it needs when nothing else is said."""
    return TraceJob(number, submit, run, cores, requested or max(run, 1.0), user, "g")


@st.composite
def traces(draw: st.DrawFn, most: int = 60) -> list[TraceJob]:
    """Some jobs of a few users in whole seconds, by their arrival; some end at once, some at their limit."""
    rows = draw(
        st.lists(
            st.tuples(
                st.integers(0, 20_000),
                st.integers(0, 9_000),
                st.sampled_from(WIDTHS),
                st.integers(0, 20_000),
                st.sampled_from("abc"),
            ),
            min_size=1,
            max_size=most,
        )
    )
    return [
        job(number, submit, run, cores, max(1, run + beyond), user)
        for number, (submit, run, cores, beyond, user) in enumerate(sorted(rows))
    ]


scenarios = st.builds(
    Scenario,
    cores=st.sampled_from((8, 24, 64)),
    mix=st.sampled_from((((8, 1.0),), ((1, 0.2), (8, 0.8)), ((8, 0.5), (16, 0.5)))),
    lease=st.just(40_000.0),
    reclaimed=st.sampled_from((0.05, 0.25, 0.5, 1.0)),
    moments=st.just(2),
    quiet=st.just(0.1),
    estimates=st.sampled_from(("requests", "scouts", "exact")),
    error=st.sampled_from((0.0, 1.0)),
    stuck=st.sampled_from((0.0, 0.3)),
    liars=st.sampled_from((0.0, 0.3)),
    silent=st.sampled_from((0.0, 0.3)),
    shrinking=st.sampled_from((0.0, 0.5, 1.0)),
    chunk=st.sampled_from((1, 4)),
    checkpoints=st.none()
    | st.builds(
        Checkpoints, st.integers(300, 5000), st.integers(0, 120), st.sampled_from((0.5, 1.0)), on_demand=st.booleans()
    ),
    site=st.builds(site_settings, horizon=st.sampled_from((600, 7200))),
    seed=st.integers(0, 1000),
)
"""Sites on which every job of `traces` can run."""
