"""Read the places of a pool with what jobs and START ask about, and sort them into classes.

Those of one class run the same jobs, so that one of them can stand for all: all attributes that any waiting job or any
START asks about are equal. Where an attribute has many values (a name, free scratch space), those that no expression
tells apart count as equal.
"""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import classad2

from drainwise.htcondor.ads.values import BACKFILL, MACHINE_RESOURCES, Ad, moment, slot_amounts, text
from drainwise.htcondor.demand.matching import Literals, without_kept_room
from drainwise.htcondor.node import SECOND_SLOT
from drainwise.pool.job_kinds import Place

MOST_CLASSES = 200
FEW = 40
"""Values of one attribute that are all told apart."""

EXPRESSION = "/Expr("
"""The beginning of an expression among the values of an ad."""


@dataclass(frozen=True)
class Classes:
    """The class of each place, a place that stands for each class, and the attributes that are not told apart."""

    of: Sequence[str]
    examples: Mapping[str, int]
    ignored: frozenset[str]


def classes_of(
    rows: Sequence[Mapping[str, object]],
    names: Collection[str],
    literals: Literals,
    searched: Collection[str] = (),
    exact: Collection[str] = (),
) -> Classes:
    """Return the classes of places by the values of their attributes (by name in lower case).

    names: the attributes that are asked about; literals: what the asking expressions name; searched: the attributes
    whose texts are looked into; exact: those of which all values are told apart. With more than MOST_CLASSES classes,
    the attributes with most values are ignored.
    """
    columns = {name: [_plain(row.get(name)) for row in rows] for name in sorted(names)}
    counts = {name: len(set(column)) for name, column in columns.items()}
    columns = {name: column for name, column in columns.items() if counts[name] > 1}
    for name in list(columns):
        if counts[name] > FEW and name not in exact:
            columns[name] = [_coarse(value, literals, exact=name in searched) for value in columns[name]]
            counts[name] = len(set(columns[name]))
    ignored: set[str] = set()
    while True:
        kept = [column for name, column in columns.items() if name not in ignored]
        signatures = list(zip(*kept)) if kept else [()] * len(rows)
        different = set(signatures)
        if len(different) <= MOST_CLASSES:
            break
        ignored.add(max((name for name in columns if name not in ignored), key=lambda name: counts[name]))
    labels = {one: hashlib.sha256(repr(one).encode("utf-8", "replace")).hexdigest()[:8] for one in different}
    of = [labels[one] for one in signatures]
    examples: dict[str, int] = {}
    for place, label in enumerate(of):
        examples.setdefault(label, place)
    return Classes(of, examples, frozenset(ignored))


def _plain(value: object) -> object:
    """Make a value that can be compared: ClassAds tell true from 1, which Python does not."""
    if isinstance(value, str):
        return value
    return repr(value) if isinstance(value, (list, dict)) else (type(value).__name__, value)


def _coarse(value: object, literals: Literals, exact: bool) -> object:
    if isinstance(value, str):
        named = exact or value.startswith(EXPRESSION) or value.casefold() in literals.texts
        return value if named else ("other", "")
    if isinstance(value, tuple) and type(value[1]) in {int, float}:
        return bisect_left(literals.numbers, value[1]), bisect_right(literals.numbers, value[1])
    return value


PLACES = (
    f"DynamicSlot =!= true && Offline =!= true && Draining =!= true && {SECOND_SLOT} =!= true && {BACKFILL} =!= true"
)
"""The slots where jobs start and cores come back; a node that is being drained takes no jobs.

Of two slots over the same cores the first one stands for both.
"""

PECULIAR = f'Start =!= true || {MACHINE_RESOURCES} =!= "Cpus Memory Disk Swap"'
"""Of these, the ones that do not take every job, or have what not every node has."""

WITH_GPUS = f"{PLACES} && isString(DetectedGPUs)"
"""Of these, the ones that name their GPUs."""

AMOUNTS = ("Cpus", "Memory", "Disk")
_TOTAL = "TotalSlot"
_PLACE_ATTRIBUTES = (
    *("Name", "Machine", "State", "PartitionableSlot", "LastHeardFrom", "Start", "Requirements"),
    *(*AMOUNTS, *(f"{_TOTAL}{name}" for name in AMOUNTS)),
)
_TAKES_NONE = (False, "/Expr((false) && (true))/")
"""START of a slot that takes no jobs: alone, and with what the drop-in adds."""

_TAKES_JOBS = ("Unclaimed", "Matched", "Claimed", "Preempting", "Backfill")


@dataclass(frozen=True)
class PlaceAd:
    """A place, of no class yet: its ClassAd, all values by name in lower case, when it was `heard` of (UNIX s)."""

    ad: Any
    row: dict[str, object]
    place: Place
    heard: int | None


def place_attributes(names: Collection[str], also: Collection[str]) -> list[str]:
    """Return the attributes to ask for; names: the pool's countables; also: what expressions refer to."""
    known = {name.lower() for name in _PLACE_ATTRIBUTES}
    further = {one.lower() for one in (*names, *(f"{_TOTAL}{name}" for name in names), *also)} - known
    return [*_PLACE_ATTRIBUTES, *sorted(further)]


def read_places(ads: Iterable[Any], names: Sequence[str]) -> list[PlaceAd]:
    """Read the places that take jobs; `as_if_empty` sets the amounts of the ClassAd of one."""
    found = (_read(ad, names) for ad in ads)
    return [place for place in found if place is not None]


def as_without_kept_room(ad: Any) -> Any:
    """Return the ad of a node's slot with the START that it has while no room is kept there."""
    if "Start" in ad:
        start = str(ad.lookup("Start"))
        usual = without_kept_room(start)
        if usual != start:
            ad["Start"] = _expression(usual)
    return ad


@lru_cache(maxsize=4096)
def _expression(text: str) -> Any:
    return classad2.ExprTree(text)


def _read(ad: Any, names: Sequence[str]) -> PlaceAd | None:
    try:
        ad = as_without_kept_room(ad)
        row = {name.lower(): value for name, value in json.loads(ad.printJson(), strict=False).items()}
    except (classad2.ClassAdException, ValueError, RecursionError, UnicodeDecodeError):
        return None
    plain: Ad = {name: row.get(name.lower()) for name in (*_PLACE_ATTRIBUTES, *names)}
    totals: Ad = {f"{_TOTAL}{name}": row.get(f"{_TOTAL}{name}".lower()) for name in (*AMOUNTS, *names)}
    name, machine, state = text(plain, "Name"), text(plain, "Machine"), text(plain, "State")
    if name is None or machine is None or state not in _TAKES_JOBS or row.get("requirements") is False:
        return None
    if row.get("start") in _TAKES_NONE:
        return None
    total, divisible = slot_amounts(totals, names, _TOTAL), row.get("partitionableslot") is True
    if total.cores == 0:
        return None
    free = slot_amounts(plain, names) if state == "Unclaimed" else slot_amounts({}, ())
    for amount in (*AMOUNTS, *names):
        value = totals[f"{_TOTAL}{amount}"]
        if type(value) in {int, float}:
            row[amount.lower()] = value
    return PlaceAd(ad, row, Place(name, machine, "", free, total, divisible), moment(plain, "LastHeardFrom"))


def as_if_empty(place: PlaceAd, names: Sequence[str], ignored: Iterable[str] = ()) -> Any:
    """Return the ClassAd of a place, as if nothing ran there, and without what its class does not tell apart."""
    for amount in (*AMOUNTS, *names):
        value = place.row.get(amount.lower())
        if type(value) in {int, float}:
            place.ad[amount] = value
    for name in ignored:
        if name in place.ad:
            del place.ad[name]
    return place.ad


def set_own_gpus(places: Iterable[PlaceAd], ads: Iterable[Any], properties: Collection[str]) -> None:
    """Set AvailableGPUs of each place to all its GPUs, in use or not.

    A slot lists there what is free of them; DetectedGPUs and `GPUs_<id>` have them all (seen on 23.9.6 and 25.14.1).
    ads: the whole ads of the places with GPUs. properties: those that jobs ask about, in lower case; a GPU is listed
    with these alone, so that two nodes with equal ones are of one class.
    """
    lists: dict[str, tuple[Any, str]] = {}
    for ad in ads:
        gpus = []
        try:
            for one in str(ad["DetectedGPUs"]).split(","):
                gpu = classad2.ClassAd()
                for name, value in ad.get(f"GPUs_{one.strip().replace('-', '_')}", {}).items():
                    if name.lower() in properties:
                        gpu[name] = value
                gpus.append(gpu)
            listed = f"{{{', '.join(sorted(' '.join(str(gpu).split()) for gpu in gpus))}}}"
            lists[str(ad["Name"])] = _expression(listed), f"{EXPRESSION}{listed})/"
        except (classad2.ClassAdException, AttributeError, KeyError, TypeError, ValueError, RecursionError):
            continue
    for place in places:
        if place.place.name in lists:
            place.ad["AvailableGPUs"], place.row["availablegpus"] = lists[place.place.name]


def unresolved(places: Iterable[PlaceAd], asked: Collection[str]) -> frozenset[str]:
    """Return the names, in lower case, that expressions of places refer to and that were not asked for."""
    texts: dict[str, Any] = {}
    for place in places:
        for name, value in place.row.items():
            if isinstance(value, str) and value.startswith(EXPRESSION) and name not in {"start", "requirements"}:
                texts.setdefault(value, (place.ad, name))
    known = {name.lower() for name in asked}
    found: set[str] = set()
    for ad, name in list(texts.values())[:200]:
        try:
            found.update(one.lower().removeprefix("my.") for one in ad.externalRefs(ad.lookup(name)))
        except (classad2.ClassAdException, KeyError, TypeError):
            continue
    return frozenset(name for name in found - known if name.isidentifier() and name.isascii())
