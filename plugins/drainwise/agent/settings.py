"""The settings of an agent; apart, since they are known long before what decides has been imported."""

from __future__ import annotations

from dataclasses import dataclass

from drainwise.pool.facts import Pool
from drainwise.reclaim.settings import ReclaimSettings
from drainwise.requests.request import RequestFiles


@dataclass(frozen=True)
class AgentSettings:
    """What the site file and the command line say, read anew on HUP. Times are in seconds.

    acting: whether orders are given at all. kill_switch: the path of the file that keeps the agent from acting.
    requests: where an administrator's requests lie.
    """

    pool: Pool
    settings: ReclaimSettings
    acting: bool
    period: float
    kill_switch: str
    requests: RequestFiles
