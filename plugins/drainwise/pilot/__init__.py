"""The reference pilot, and a library by which any pilot reports what it would waste and learns what the site orders.

from drainwise.pilot import PilotReporter
reporter = PilotReporter.from_environment()
reporter.started("payload-1", cores=4, expected=3600, maximum=7200)
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from drainwise.pilot.reporter import PilotReporter

__all__ = ["PilotReporter"]


def __getattr__(name: str) -> object:
    """Import the reporter when it is asked for: who needs only the decisions does not pay for its input and output."""
    if name == "PilotReporter":
        from drainwise.pilot.reporter import PilotReporter  # noqa: PLC0415

        return PilotReporter
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
