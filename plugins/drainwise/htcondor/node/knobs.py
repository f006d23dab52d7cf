"""Interpret the options of the startd cron: its node's configuration.

The drop-in hands it over on the cron's command line, each value as HTCondor has it after all files were read.

A startd takes orders only when ENABLE_RUNTIME_CONFIG was true at its start. No attribute of HTCondor's says so, but
each slot shows when its startd started (DaemonStartTime). So the cron publishes since when the configuration has been
there, `PilotOrdersSince`: a startd that started earlier takes no orders until it is restarted. The time is kept in the
cron's state file, since a drop-in that is rendered again is a new file.
"""

from __future__ import annotations

import posix

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

NEVER = 0
"""Instead of a time: no startd takes orders with this configuration, or the hooks that tell pilots are not in force."""

ALWAYS = 1
"""Instead of a time: the configuration was there before anybody kept a time, so perhaps each startd takes orders."""

START_SECONDS = 60
"""The first run of a cron that was configured when its startd started comes within this many seconds."""

USUAL_VACATE = 600
"""HTCondor's own MachineMaxVacateTime (s): what jobs have that started before anybody set another."""


def options(arguments: Iterable[str]) -> dict[str, str]:
    """Return `--name value` pairs by name; a value may have several words, or none."""
    found: dict[str, str] = {}
    name = ""
    for word in arguments:
        if word[:2] == "--":
            name = word[2:]
            found[name] = ""
        elif name:
            found[name] = f"{found[name]} {word}".lstrip()
    return found


def seconds(text: str) -> int | None:
    """Read a number of seconds or a product of some (`10 * 60`); None for another expression."""
    result = 1
    for factor in text.split("*"):
        digits = factor.strip()
        if not digits.isdigit() or not digits.isascii() or len(digits) > 9:
            return None
        result *= int(digits)
    return result


def orders_possible(knobs: dict[str, str]) -> bool | None:
    """Decide whether the configuration lets a startd take orders and pass them on; None when the drop-in does not say.

    An older drop-in does not.
    """
    if "runtime" not in knobs or "hooks" not in knobs:
        return None
    return knobs["runtime"].lower() in {"true", "t", "yes", "1"} and knobs["hooks"] == knobs.get("keyword")


def orders_since(known: int | None, older: bool, possible: bool, placed: int | None, now: int) -> int:
    """Return since when (UNIX s) a startd that starts with this configuration takes orders; NEVER, ALWAYS.

    known: what the round before found, None when there was none. older: whether an older version ran here. possible:
    see `orders_possible`. placed: when the drop-in was put in its place (UNIX s), None when it lies elsewhere.
    """
    if not possible:
        return NEVER
    if known:
        return known
    if known is None and older:
        return ALWAYS
    return min(placed, now) if known is None and placed is not None else now - START_SECONDS


def placed_at(directories: str, name: str) -> int | None:
    """Return when this file came to its place in one of HTCondor's directories or was changed last (UNIX s).

    None when it is in none of them, or cannot be seen there.
    """
    for directory in directories.replace(",", " ").split():
        try:
            return int(posix.stat(f"{directory}/{name}").st_ctime)
        except OSError:
            continue
    return None
