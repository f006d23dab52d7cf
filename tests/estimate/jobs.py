"""Finished payloads for the tests, made up and by chance."""

from __future__ import annotations

import json
from collections import Counter

from hypothesis import strategies as st

from drainwise_tasks.estimate.records.formats import JSON_LINES, read_as
from drainwise_tasks.estimate.records.record import Finished, lines_in

T0 = 1_795_249_000.0
"""When the jobs of the tests start, UNIX s."""


def job(seconds: float = 3600, task: str = "t", good: bool = True, cores: int = 1, **facts: float | bool) -> Finished:
    """A job of that length; what else is known of it by the names of `Finished`."""
    return Finished(task, T0, T0 + seconds, good, cores, **facts)  # type: ignore[arg-type] # the names are the test's


def record(**changed: object) -> dict[str, object]:
    """A sound record as a JSON object, with some keys changed; None leaves one out."""
    whole: dict[str, object] = {"task": "t", "start": T0, "end": T0 + 100, "cores": 1, "events": 10, **changed}
    return {key: value for key, value in whole.items() if value is not None}


def read(text: bytes) -> tuple[list[Finished], Counter[str]]:
    """The sound records of some lines, and what was skipped."""
    import io

    skips: Counter[str] = Counter()
    return list(read_as(JSON_LINES, lines_in(io.BytesIO(text), skips), skips)), skips


def as_lines(*records: dict[str, object]) -> bytes:
    """Records as lines of JSON."""
    return b"".join(json.dumps(one).encode() + b"\n" for one in records)


amounts = st.one_of(st.none(), st.floats(0, 1e12))


@st.composite
def jobs(draw: st.DrawFn, task: str = "t") -> Finished:
    """Any sound job of a task."""
    times = (T0, T0 + draw(st.floats(0, 1e6)))
    events, files = draw(st.one_of(st.none(), st.floats(0.5, 1e6))), draw(st.one_of(st.none(), st.integers(0, 100)))
    power = draw(st.one_of(st.none(), st.floats(1, 50)))
    rest = [draw(amounts) for _ in range(11)]
    whole = (
        task,
        *times,
        draw(st.booleans()),
        draw(st.integers(1, 64)),
        events,
        files,
        power,
        *rest,
        False,
        False,
        False,
    )
    return Finished._make(whole)
