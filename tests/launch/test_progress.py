"""The line that says how far a launch is: what is needed counts, and it fits the window."""

from __future__ import annotations

import pytest

from drainwise_launch.choice.engine import Engine
from drainwise_launch.choice.work import Work
from drainwise_launch.run.runner import Progress


def engine_of(count: int, targets: list[str] | None = None) -> Engine:
    engine = Engine()
    engine.add(Work(f"j{n}", ("true",), (f"j{n - 1}",) if n else ()) for n in range(count))
    engine.request(targets=targets)
    return engine


def test_only_what_is_needed_counts() -> None:
    """Three of ten jobs are wanted: none of the others is over because nobody asked for it."""
    engine = engine_of(10, ["j2"])
    assert " 0/3 over, 0 running" in Progress(engine).line(0.0)
    engine.was_done(engine.graph.find("j0"))
    assert " 1/3 over" in Progress(engine).line(0.0)
    engine.failed(engine.graph.find("j1"), "ended with 1")
    assert Progress(engine).line(0.0).startswith(f"[{'#' * 30}] 3/3 over")


@pytest.mark.parametrize("width", [0, 1, 10, 39, 40, 50, 79, 300])
def test_the_words_stand_before_the_bar_where_it_is_narrow(width: int) -> None:
    line = Progress(engine_of(10)).line(0.0, width)
    assert len(line) <= width
    words = "0/10 over, 0 running, ETA 0:00:00"
    assert line.endswith(words[:width]) and ("[" in line) == (width >= len(words) + 8)
