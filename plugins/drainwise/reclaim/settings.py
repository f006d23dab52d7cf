"""What the site decided about reclaiming; every bound of an act stands here."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """The site's bounds for one cycle. Times are in seconds.

    policy: its name. horizon: policy `paper` drains those that can be gone within it; cores that come back within it
    count as on their way. grace: from the order to the deadline, never longer than max_grace. notice: the same for a
    pilot that is to be killed rather than drained. heartbeat_limit: an older report has lost its protection.
    max_pilots: asked in one cycle. max_cores_per_user: taken from one user in one cycle.
    min_age: a pilot younger than that is left alone; it has hardly begun, and HTCondor 23.9 was seen to keep a job that
    was preempted within a second of its start waiting for its whole job lease.
    """

    policy: str
    horizon: int
    grace: int
    max_grace: int
    heartbeat_limit: int
    max_pilots: int
    max_cores_per_user: int
    notice: int = 0
    min_age: int = 60
