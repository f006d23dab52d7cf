"""One job of a trace: what it needed, how long it really ran, and for how long it had asked."""

from __future__ import annotations

from typing import NamedTuple


class Job(NamedTuple):
    """A payload to be. number: unique within the trace. submit: when it came, s since the beginning of the trace.

    run: how long it runs, requested: how long it says that it may run, in s and above 0. user, group: who sent it.
    """

    number: int
    submit: float
    run: float
    cores: int
    requested: float
    user: str
    group: str
