"""Times on the command line: seconds as a number, or a duration with its unit."""

from __future__ import annotations

import argparse

from drainwise.siteconfig.units import parse_duration


def seconds(text: str) -> int:
    """Seconds of `90`, `90s`, `30m` or `1h30m`; for argparse. Raises ArgumentTypeError."""
    try:
        return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else parse_duration(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text[:80]!r}: expected seconds, or a duration such as 30m or 2h") from None
