"""What an agent is told before it begins; apart, since it is known long before what decides has been imported."""

from __future__ import annotations

from dataclasses import dataclass

from drainwise.pool import Pool
from drainwise.reclaim.settings import Settings


@dataclass(frozen=True)
class Setup:
    """What the site file and the command line say, read anew on HUP. Times are in seconds.

    acting: whether pilots are asked at all. kill_switch: the path of the file that keeps the agent from acting.
    """

    pool: Pool
    settings: Settings
    acting: bool
    period: float
    longest_pause: float
    kill_switch: str
