"""Decide which kind of node this is, where one site file speaks of several: by its names, CPU model and features.

A hook imports this only where its settings have kinds. For the patterns see `name_patterns`.
"""

from __future__ import annotations

import posix

from drainwise.facts.name_patterns import any_matches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    Kind = tuple[str, Mapping[str, str]]
    """Its name; its conditions and values by key."""

HOST, CPU_MODEL, FEATURE = "host", "cpu_model", "feature"

CPUINFO = "/proc/cpuinfo"
_BEGINNING = 4096
"""Bytes: the first CPU stands there; the kernel writes no more of the file than is read."""


def kind_of(kinds: Iterable[Kind], names: Iterable[str], features: Iterable[str]) -> Kind | None:
    """Return the first kind of which all conditions hold; None for none.

    names: of this host in the batch system, to which the kernel's is added; the part before the first point counts as
    well. features: what the batch system says of the node.
    """
    hosts: set[str] = set()
    for name in (*names, posix.uname().nodename):
        hosts |= {name, name.partition(".")[0]}
    words = {word.lower() for word in features}
    model: list[str] = []
    for kind in kinds:
        conditions = kind[1]
        if HOST in conditions and not any_matches(conditions[HOST], hosts):
            continue
        if FEATURE in conditions and words.isdisjoint(word.lower() for word in features_asked(conditions)):
            continue
        if CPU_MODEL in conditions:
            model = model or [cpu_model()]
            if not any_matches(conditions[CPU_MODEL], model):
                continue
        return kind
    return None


def features_asked(conditions: Mapping[str, str]) -> list[str]:
    """Return the features of which a kind asks for one, as the site writes them."""
    return [word for part in conditions.get(FEATURE, "").split(",") if (word := part.strip())]


def cpu_model(path: str = CPUINFO) -> str:
    """Return the model name of this host's first CPU, with single blanks; "" where the kernel names none."""
    try:
        with open(path, "rb", buffering=0) as file:
            text = file.read(_BEGINNING).decode("ascii", "replace")
    except OSError:
        return ""
    for line in text.splitlines():
        name, colon, value = line.partition(":")
        if colon and name.strip() in {"model name", "cpu model", "cpu"}:
            return " ".join(value.split())
    return ""
