"""Ask startds directly while a collector that has started anew does not know them yet.

Which there are is known by the last whole answer, also to an agent that has started since: it is kept in a file.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import closing, suppress
from functools import partial

from drainwise.common.bounded_call import each_within
from drainwise.common.local_file import read_small, replace_file
from drainwise.facts.errors import FeatureError, PoolError
from drainwise.htcondor.ads.values import Ad, Others, text
from drainwise.htcondor.pool.complete_answer import collector_start
from drainwise.htcondor.pool.startds import Startds

MOST_ASKED = 256
"""Startds that are asked for one snapshot."""
_ALL_SECONDS, _EACH_SECONDS = 12.0, 4.0
_YOUNG = 3600  # s; an older collector knows all there is
_KEPT = 300  # s; an answer is as good as an update of the usual interval
_LARGEST = 64 << 20  # bytes of the file
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC

Answer = tuple[list[Ad], list[Ad]]
"""What a startd says: the ads that concern all its slots, then those of its slots."""


class KnownStartds:
    """The startds of the last whole answer with their addresses, by node; file: where they are kept, "" for nowhere."""

    def __init__(self, file: str = "") -> None:
        self._file = file
        self._addresses: dict[str, str] | None = None
        self._answers: dict[str, tuple[int, Answer]] = {}
        self.silent: frozenset[str] = frozenset()
        """Those that were asked for the last snapshot and did not answer."""

    @property
    def nodes(self) -> frozenset[str]:
        """Return the nodes of the last whole answer."""
        return frozenset(self._known())

    def learn(self, startds: Iterable[Ad]) -> None:
        """Take in the machine ads of a whole answer."""
        seen = {node: text(ad, "MyAddress") or "" for ad in startds if (node := text(ad, "Machine")) is not None}
        self._answers, self.silent = {}, frozenset()
        if seen == self._known():
            return
        self._addresses = seen
        directory, name = os.path.split(self._file)
        with suppress(OSError):  # it is not there, or another user's: then only this process knows them
            place = os.open(directory, _DIRECTORY)
            try:
                replace_file(name, json.dumps(seen).encode("ascii"), place)
            finally:
                os.close(place)

    def is_young(self, others: Others, now: int) -> bool:
        """Decide whether the collector may lack known startds at `now` (UNIX s), since it has just started."""
        start = collector_start(others.collectors)
        return start is not None and now - start <= _YOUNG and bool(self._known())

    def missing(self, others: Others, slots: Collection[Ad]) -> dict[str, str]:
        """Return the address of each known startd that the collector lacks, or some of whose slots it lacks."""
        startds = Startds(others.startds)
        lacking = startds.dynamic_slots() - {text(ad, "Name") or "" for ad in slots}
        half = {name.partition("@")[2] for name in lacking}
        return {
            node: address
            for node, address in self._known().items()
            if address and (node not in startds.machines or node in half)
        }

    def ask(self, missing: Mapping[str, str], question: Callable[[str], Answer], now: int) -> dict[str, Answer]:
        """Return what the missing startds say, as far as they say it in time; by node.

        question: asks the startd at an address, as `collector.startd_answer`; now: UNIX s.
        """
        self._answers = {node: one for node, one in self._answers.items() if node in missing and now - one[0] <= _KEPT}
        due = [node for node in missing if node not in self._answers]
        due = sorted(due, key=lambda node: (node in self.silent, node))[:MOST_ASKED]
        end, silent = time.monotonic() + _ALL_SECONDS, set(self.silent) & missing.keys()
        calls = (partial(question, missing[node]) for node in due)
        with closing(each_within(_EACH_SECONDS, calls, "a startd")) as answers:
            for place, answer in answers:
                if isinstance(answer, PoolError):
                    silent.add(due[place])
                else:
                    silent.discard(due[place])
                    self._answers[due[place]] = now, (_heard(answer[0], now), _heard(answer[1], now))
                if time.monotonic() > end:
                    break
        self.silent = frozenset(silent)
        return {node: answer for node, (_, answer) in self._answers.items()}

    def _known(self) -> dict[str, str]:
        if self._addresses is None:
            self._addresses = _read(self._file) if self._file else {}
        return self._addresses


def _heard(ads: Iterable[Ad], now: int) -> list[Ad]:
    return [{**ad, "LastHeardFrom": now} for ad in ads]


def _read(path: str) -> dict[str, str]:
    try:
        found = read_small(path, _LARGEST)
        known = json.loads(found[0]) if found is not None else {}
    except (FeatureError, ValueError, RecursionError):
        return {}
    if not isinstance(known, dict):
        return {}
    return {node: address for node, address in known.items() if isinstance(address, str)}


def completed(others: Others, slots: Iterable[Ad], answers: Mapping[str, Answer]) -> tuple[list[Ad], list[Ad]]:
    """Return the machine ads and the slots of the collector, with those of nodes that answered in place of its own."""

    def elsewhere(ads: Iterable[Ad]) -> list[Ad]:
        return [ad for ad in ads if text(ad, "Machine") not in answers]

    told = answers.values()
    machines = elsewhere(others.startds) + [ad for one, _ in told for ad in one]
    return machines, elsewhere(slots) + [ad for _, one in told for ad in one]
