"""Ask the batch system that starts a job here what it knows of it, within a bounded time."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from drainwise.common.bounded_command import run_bounded
from drainwise.facts.errors import PoolUnreachable
from drainwise.prologs import flux, grid_engine, lsf, pbs
from drainwise.prologs.described import DescribedJob, Questions

SYSTEMS: dict[
    str,
    tuple[
        Callable[[Mapping[str, str], str], Questions],
        Callable[[Mapping[str, str], Mapping[str, str], str, int], DescribedJob],
    ],
] = {
    "lsf": (lsf.questions, lsf.described),
    "pbs": (pbs.questions, pbs.described),
    "sge": (grid_engine.questions, grid_engine.described),
    "flux": (flux.questions, flux.described),
}
"""By the name on the command line: the commands, and what their answers mean."""

COMMAND_SECS = 5.0
_LARGEST = 1 << 20


def described_by(system: str, environment: Mapping[str, str], now: int) -> DescribedJob:
    """Describe the job that starts here; now: UNIX s. A command that fails or takes too long has said nothing."""
    questions, described = SYSTEMS[system]
    host = os.uname().nodename
    answers = {name: _said(command, environment) for name, command in questions(environment, host).items()}
    return described(environment, answers, host, now)


def _said(command: list[str], environment: Mapping[str, str]) -> str:
    try:
        ran = run_bounded(command, environment, COMMAND_SECS, most=_LARGEST)
    except PoolUnreachable:
        return ""
    return ran.text if ran.code == 0 else ""
