"""The site's rules for what names a pilot in a text: patterns that cannot take long, whatever the text is.

A rule is one or several patterns with ` | ` between them, such as `vo={vo} job={ce_job} | {vo}/{}`. A pattern is the
whole text, with fields in it: `{vo}` is at least one character up to what follows it in the pattern, `{}` anything up
to there. So a text is gone through once for each pattern. A regular expression could take for ever on some texts, and
users choose the texts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from drainwise.identity.identity import LONGEST, LOOKED_AT

_FIELD = re.compile(r"\{([a-z_]*)\}")
_MOST_PATTERNS = 8


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
        return found


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
    is_sound = named and set(named) <= set(LONGEST) and len(set(named)) == len(named)
    if not is_sound or not all(texts[1:-1]) or any(mark in text for text in texts for mark in "{}"):
        raise ValueError(written)
    return _Pattern(texts, names)


@dataclass(frozen=True)
class IdentityRules:
    """What a site wants to know: whether of subjects, too; and its rules for texts by what they are of."""

    with_subject: bool = True
    issuer: Rule | None = None
    comment: Rule | None = None
    job_name: Rule | None = None

    def applied(self, values: Mapping[str, object], *texts: tuple[Rule | None, str]) -> dict[str, object]:
        """Return `values`, completed by what rules find in texts, and without what the site does not want to know."""
        found: dict[str, object] = {}
        for rule, text in texts:
            found = {**({} if rule is None else rule.values(text)), **found}
        found.update({name: value for name, value in values.items() if value})
        if not self.with_subject:
            found.pop("subject", None)
        return found
