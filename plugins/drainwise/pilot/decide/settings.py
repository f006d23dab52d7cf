"""The settings of a pilot: its waits and margins in seconds, and its behaviour while it drains."""

from __future__ import annotations

from dataclasses import dataclass, fields

from drainwise.facts.errors import UsageError

HOLES = "holes"
"""While ordered to leave, start only what surely ends before the payloads that run: it postpones no departure."""
DEADLINE = "deadline"
"""While ordered to leave, start whatever surely ends before the deadline."""
NOTHING = "nothing"
"""While draining for whatever reason, start nothing."""
WHILE_DRAINING = (HOLES, DEADLINE, NOTHING)


@dataclass(frozen=True)
class PilotSettings:
    """All times in seconds. Raises UsageError for a negative one, and for an unknown `while_draining`.

    margin: before the end of the lease or a deadline by which everything has stopped.
    kill_wait: between asking a payload to end (TERM) and ending it (KILL); no longer than `margin` to be of use.
    term_grace: what is left after SIGTERM without a deadline.
    heartbeat: the longest time between two reports (the paper asks for one an hour at least).
    poll: how often the site's orders are looked at; 0 would never let the pilot sleep and is refused.
    while_draining: one of `HOLES`, `DEADLINE`, `NOTHING`.
    idle_limit: how long a pilot without payloads waits for new ones.
    rest: how long the other values rest after CAN_POSTPONE_LAST_JOB went back from False to True (draft row 3.8).
    priority_factor: what this pilot is worth to its user among the user's other pilots, the higher the better.
    """

    margin: float = 10.0
    kill_wait: float = 5.0
    term_grace: float = 25.0
    heartbeat: float = 1800.0
    poll: float = 5.0
    while_draining: str = HOLES
    idle_limit: float = 60.0
    rest: float = 600.0
    priority_factor: int = 0

    def __post_init__(self) -> None:
        if self.while_draining not in WHILE_DRAINING:
            raise UsageError(f"while_draining = {self.while_draining!a}: expected one of {', '.join(WHILE_DRAINING)}")
        for field in fields(self):
            value = getattr(self, field.name)
            if field.type == "float" and not 0 <= value < float("inf"):
                raise UsageError(f"{field.name} = {value}: expected seconds, 0 or more")
        for name in ("heartbeat", "poll"):
            if not getattr(self, name):
                raise UsageError(f"{name} = 0: expected seconds above 0")
