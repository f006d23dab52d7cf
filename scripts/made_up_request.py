"""A request for the made-up simulation, as tests of validations write it: 10 events of 0.2 s and 20 kB in 200 MB."""

from __future__ import annotations

import json
from collections.abc import Sequence

EVENT = 0.2
"""Seconds that an event takes at least: mostly waiting, so that a machine under load measures much the same."""


def made_up_request(program: Sequence[str], options: Sequence[str], **values: object) -> str:
    """The text of a request file: how the program is called, further options of it, and other values."""
    words = [*program, "--events", "{events}", "--cores", "{cores}", "--wall", str(EVENT), "--cpu", "0.01"]
    request = {
        "name": "made-up",
        "command": [*words, "--size", "20", *options],
        "events": 10,
        "time_per_event": EVENT,
        "size_per_event": 20,
        "memory": 200,
        "can_thread": True,
        "wall_limit": "10m",
        **values,
    }
    return json.dumps(request)
