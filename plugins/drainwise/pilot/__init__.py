"""The reference pilot, and the library that gives any pilot a voice: what it would waste, and what the site asks.

from drainwise.pilot import PilotVoice
voice = PilotVoice.from_environment()
voice.started("payload-1", cores=4, expected=3600, maximum=7200)
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from drainwise.pilot.voice import PilotVoice

__all__ = ["PilotVoice"]


def __getattr__(name: str) -> object:
    """Import the voice when it is asked for: who needs only the decisions does not pay for its input and output."""
    if name == "PilotVoice":
        from drainwise.pilot.voice import PilotVoice  # noqa: PLC0415

        return PilotVoice
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
