"""Read the cluster's live configuration out of what `scontrol show config` prints."""

from __future__ import annotations

import re

SHOW_CONFIG = ("scontrol", "show", "config")
UNSET_VALUES = frozenset({"", "(null)", "N/A", "none", "NONE"})

_SETTING = re.compile(r"^([A-Za-z0-9_]+)(\[\d+\])?[ \t]*=[ \t]*(.*?)[ \t]*$", re.MULTILINE)


def live_values(config: str) -> dict[str, tuple[str, ...]]:
    """Return the values of each key that is set, by the key in lower case; some keys stand there several times."""
    found: dict[str, tuple[str, ...]] = {}
    for key, _, value in _SETTING.findall(config):
        if value not in UNSET_VALUES:
            found[key.lower()] = (*found.get(key.lower(), ()), value)
    return found


def settings_in(config: str) -> dict[str, str]:
    """Return the value of each key that is set, by the key in lower case; several with blanks between."""
    return {key: " ".join(values) for key, values in live_values(config).items()}
