"""Who sent a pilot through a computing element (CE), as far as its batch system tells.

These are texts of others: the submitter's, but for what the CE or the access point sets by the credential that it was
shown. They are bounded and printable, and they are shown. No decision rests on them.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass

from drainwise.common.printable import ascii_line, one_line


@dataclass(frozen=True)
class PilotIdentity:
    """One pilot's: "" where nothing is known.

    vo: its virtual organisation. fqan: the VO's group and role, of a proxy or a token. subject, issuer: of the
    credential; a subject may name a person. ce_job: the job's id at the CE. factory: what submitted it there, a
    glidein's or Harvester's; entry: that one's own name for it (entry, worker).
    """

    vo: str = ""
    fqan: str = ""
    subject: str = ""
    issuer: str = ""
    ce_job: str = ""
    factory: str = ""
    entry: str = ""

    def fits(self, wanted: PilotIdentity) -> bool:
        """Decide whether it is the wanted one in all that `wanted` names."""
        return all(getattr(wanted, name) in {"", getattr(self, name)} for name in LONGEST)

    def in_words(self) -> str:
        """Return one line of all that is known."""
        known = ((words, getattr(self, name)) for name, words in _WORDS.items())
        return ", ".join(f"{words} {text}" for words, text in known if text)


ANYBODY = PilotIdentity()
"""Of whom nothing is known or wanted."""

LONGEST = {"vo": 64, "fqan": 200, "subject": 256, "issuer": 200, "ce_job": 128, "factory": 100, "entry": 128}
"""The most characters of each; what is longer is cut."""
LOOKED_AT = 1024
"""Characters of a submitter's text that are looked at."""

_WORDS = {**dict(zip(LONGEST, LONGEST)), "vo": "VO", "fqan": "FQAN", "ce_job": "CE job"}


def identity_of(values: Mapping[str, object]) -> PilotIdentity | None:
    """Return the identity that `values` tell by the names of its fields, bounded; None when they tell nothing.

    What is no text, or not printable, is left out of it. A subject may have any letters, the rest is ASCII.
    """
    known = {
        name: _bounded(name, text[:LOOKED_AT])
        for name, text in values.items()
        if isinstance(text, str) and name in LONGEST
    }
    return PilotIdentity(**known) if any(known.values()) else None


@functools.lru_cache(maxsize=8192)  # thousands of pilots have the same few
def _bounded(name: str, text: str) -> str:
    line = one_line if name == "subject" else ascii_line
    return line(text, LONGEST[name])


def as_values(identity: PilotIdentity | None) -> dict[str, str] | None:
    """Return what is known as plain values by name; None when nothing is."""
    return None if identity is None else {name: text for name in LONGEST if (text := getattr(identity, name))}
