"""Who sent a pilot through a computing element (CE), as far as its batch system tells; the rules of the site for it.

These are texts of others: of the submitter, but for what the CE or the access point sets by the credential that it was
shown. They are bounded and printable, and they are shown. No decision rests on them.

A rule is one or several patterns with ` | ` between them, such as `vo={vo} job={ce_job} | {vo}/{}`. A pattern is the
whole text, with fields in it: `{vo}` is at least one character up to what follows it in the pattern, `{}` anything up
to there. So a text is gone through once for each pattern. A regular expression could take for ever on some texts, and
users choose the texts.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from drainwise.common.printable import ascii_line

_FIELD = re.compile(r"\{([a-z_]*)\}")
_MOST_PATTERNS = 8


@dataclass(frozen=True)
class PilotIdentity:
    """One pilot's: "" where nothing is known. vo: its virtual organisation. ce_job: the job's id at the CE."""

    vo: str = ""
    ce_job: str = ""

    def fits(self, wanted: PilotIdentity) -> bool:
        """Decide whether it is the wanted one in all that `wanted` names."""
        return all(getattr(wanted, name) in {"", getattr(self, name)} for name in LONGEST)

    def in_words(self) -> str:
        """Return one line of all that is known."""
        known = (("VO", self.vo), ("CE job", self.ce_job))
        return ", ".join(f"{words} {text}" for words, text in known if text)


ANYBODY = PilotIdentity()
"""Of whom nothing is known or wanted."""

LONGEST = {"vo": 64, "ce_job": 128}
"""The most characters of each; what is longer is cut."""
LOOKED_AT = 1024
"""Characters of a submitter's text that are looked at."""
FORMER = frozenset(("fqan", "subject", "issuer", "factory", "entry"))
"""What rules and snapshots of earlier versions name besides: it is read over, and nothing keeps it."""


def identity_of(values: Mapping[str, object], *texts: tuple[Rule | None, str]) -> PilotIdentity | None:
    """Return the identity that `values` tell by the names of its fields, bounded; None when nothing is told.

    What is no text, or not printable, is left out of it. texts: each with a rule that may find in it what the values
    do not tell; the first counts.
    """
    told = (values, *(rule.values(text) for rule, text in texts if rule is not None))
    known = {}
    for name in LONGEST:
        found = next((one for some in told if isinstance(one := some.get(name), str) and one), "")
        known[name] = _bounded(name, found[:LOOKED_AT])
    return PilotIdentity(**known) if any(known.values()) else None


@functools.lru_cache(maxsize=8192)  # thousands of pilots have the same few
def _bounded(name: str, text: str) -> str:
    return ascii_line(text, LONGEST[name])


def as_values(identity: PilotIdentity | None) -> dict[str, str] | None:
    """Return what is known as plain values by name; None when nothing is."""
    return None if identity is None else {name: text for name in LONGEST if (text := getattr(identity, name))}


@dataclass(frozen=True)
class _Pattern:
    """Texts and fields in turn: `texts[0] {names[0]} texts[1] …`; the first and the last text may be empty."""

    texts: tuple[str, ...]
    names: tuple[str, ...]

    def values(self, text: str) -> dict[str, str]:
        """Return the fields of a text, none when it is another kind of text."""
        if not text.startswith(self.texts[0]):
            return {}
        found, place = {}, len(self.texts[0])
        for name, following in zip(self.names[:-1], self.texts[1:-1]):
            end = text.find(following, place + bool(name))
            if end < 0:
                return {}
            found[name] = text[place:end].strip()
            place = end + len(following)
        end = len(text) - len(self.texts[-1])
        if end < place + bool(self.names[-1]) or not text.endswith(self.texts[-1]):
            return {}
        found[self.names[-1]] = text[place:end].strip()
        return {name: value for name, value in found.items() if name and value}


@dataclass(frozen=True)
class Rule:
    """A rule as the site file has it, and its patterns."""

    written: str
    patterns: tuple[_Pattern, ...] = field(default=(), repr=False)

    def values(self, text: str) -> dict[str, str]:
        """Return the fields of an identity that a text names; the first pattern that names one counts."""
        found: dict[str, str] = {}
        for pattern in self.patterns:
            found = {**pattern.values(text[:LOOKED_AT]), **found}
        return {name: value for name, value in found.items() if name in LONGEST}


def rule_of(written: str) -> Rule:
    """Read a rule. Raises ValueError for what is none."""
    patterns = tuple(map(_pattern, written.split(" | ")))
    if len(patterns) > _MOST_PATTERNS:
        raise ValueError(written)
    return Rule(written, patterns)


def _pattern(written: str) -> _Pattern:
    parts = _FIELD.split(written)
    texts, names = tuple(parts[::2]), tuple(parts[1::2])
    named = [name for name in names if name]
    is_sound = named and set(named) <= LONGEST.keys() | FORMER and len(set(named)) == len(named)
    if not is_sound or not all(texts[1:-1]) or any(mark in text for text in texts for mark in "{}"):
        raise ValueError(written)
    return _Pattern(texts, names)


@dataclass(frozen=True)
class IdentityRules:
    """The site's rules by the texts that they are for: the issuer of a token, a job's comment and its name."""

    issuer: Rule | None = None
    comment: Rule | None = None
    job_name: Rule | None = None
