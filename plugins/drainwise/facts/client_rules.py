"""Find out which kind of client a pilot is, by the rows of the site file's `[clients]`: on nodes and in the agent.

A row is `user=atlas* or account=group_panda.* job.x509UserProxyVOName=atlas`: conditions between `or`, of which those
that stand together must all hold. A condition is a key, `=` and patterns between commas (see `name_patterns`).
"""

from __future__ import annotations

from drainwise.facts.clients import GLIDEINWMS, PAPER, PROFILES
from drainwise.facts.name_patterns import any_matches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from drainwise.facts.clients import ClientProfile

    Condition = tuple[str, str]
    """A key and its patterns."""
    PilotFacts = Mapping[str, tuple[str, ...]]
    """By key, the texts of which one must match: a user has a name with its domain and one without."""

USER, ACCOUNT = "user", "account"
SLURM_KEYS = ("name", "comment", "partition", "qos", "feature", "licence")
"""What only a job of Slurm has."""
ATTRIBUTE = "job."
"""Begins a key that is an attribute of HTCondor's job ad."""
ANY_ATTRIBUTE = "job.ATTRIBUTE"
"""Stands for all of them."""
_OR = "or"
_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")


def alternatives(row: str) -> tuple[tuple[Condition, ...], ...]:
    """Return the conditions of a row, those that must hold together together. Raises ValueError for what is no row."""
    found: list[list[Condition]] = [[]]
    for word in row.split():
        if word == _OR:
            found.append([])
            continue
        key, equals, patterns = word.partition("=")
        if not equals or not patterns.strip(",") or not _is_key(key):
            raise ValueError(word)
        found[-1].append((key, patterns))
    if not all(found):
        raise ValueError(row)
    return tuple(map(tuple, found))


def _is_key(key: str) -> bool:
    if not key.startswith(ATTRIBUTE):
        return key in {USER, ACCOUNT, *SLURM_KEYS}
    name = key[len(ATTRIBUTE) :]
    return 0 < len(name) <= 64 and _LETTERS.issuperset(name) and not name[0].isdigit()


class ClientRules:
    """The rows by the profiles' names, and the profile of pilots that none fits. Raises ValueError for no row."""

    __slots__ = ("_known", "_rows", "default")

    def __init__(self, rows: Mapping[str, str] | None = None, default: str = PAPER.name) -> None:
        self._rows = [(PROFILES[name], alternatives(rows[name])) for name in PROFILES if rows and name in rows]
        self.default = PROFILES[default]
        self._known: dict[tuple[tuple[str, ...], ...], ClientProfile] = {}

    def __bool__(self) -> bool:
        return bool(self._rows) or self.default != PAPER

    def keys(self) -> tuple[str, ...]:
        """Return the keys that the rows ask for, each once."""
        return tuple(dict.fromkeys(key for _, row in self._rows for conditions in row for key, _ in conditions))

    def attributes(self) -> tuple[str, ...]:
        """Return the attributes of HTCondor's job ad that the rows ask for."""
        return tuple(key[len(ATTRIBUTE) :] for key in self.keys() if key.startswith(ATTRIBUTE))

    def names(self, profile: ClientProfile) -> bool:
        """Return whether a row says which pilots are of this kind."""
        return any(profile is one for one, _ in self._rows)

    def profile_of(self, facts: PilotFacts, told: str | None = None) -> ClientProfile:
        """Return the profile of the first row that fits; a fact that is not there fits none.

        told: for who does not know the attributes of jobs, which profile the node has found; "": none. They then hold
        in the rows of that profile alone.
        """
        asked = (*(facts.get(key, ()) for key in self.keys()), () if told is None else (told,))
        found = self._known.get(asked)
        if found is None:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            found = self._known[asked] = self._found(facts, told)
        return found

    def _found(self, facts: PilotFacts, told: str | None) -> ClientProfile:
        for profile, row in self._rows:
            if any(all(_holds(one, facts, told, profile.name) for one in conditions) for conditions in row):
                return profile
        return self.default


def _holds(condition: Condition, facts: PilotFacts, told: str | None, profile: str) -> bool:
    key, patterns = condition
    if told is not None and key.startswith(ATTRIBUTE):
        return told == profile
    return any_matches(patterns, facts.get(key, ()))


def of_glidein(profile: ClientProfile, rules: ClientRules | None) -> ClientProfile:
    """Return the profile of a pilot in which an inner HTCondor runs: a glidein, where no row says what it is."""
    if profile is PAPER and not (rules and rules.names(PAPER)):
        return GLIDEINWMS
    return profile


_MOST_KNOWN = 4096
"""Answers that are kept: most pilots of a site are like others."""


def user_texts(names: Iterable[str | None]) -> tuple[str, ...]:
    """Return each name of a user, and what stands before its domain."""
    known = [name for name in names if name]
    return tuple(dict.fromkeys(text for name in known for text in (name, name.partition("@")[0]) if text))
