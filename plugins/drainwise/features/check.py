"""Check features directories against every rule of the specification: a verdict per key, naming rule and value."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from drainwise.errors import FeatureError
from drainwise.features.check_key import Snapshot, check_key
from drainwise.features.check_relations import relations
from drainwise.features.keys import BY_NAME, JOB, KEYS, MACHINE, keys_of
from drainwise.features.read import DirectoryReader, FeatureReader
from drainwise.features.verdict import ERROR, INFO, OK, WARNING, Verdict, shown_value

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_UNKNOWN = 20
"""Files that are no keys and are named one by one; the rest is counted."""


def check(machine: FeatureReader | None, job: FeatureReader | None, now: int) -> list[Verdict]:
    """Check a machine's directory, a job's, or both together.

    Parameters: readers from `open_features`; `now` in UNIX seconds.
    Returns: the verdicts in the table's order, those about a directory as a whole first; a key that breaks no rule has
    one verdict, `ok`. Rules between keys need what they compare: without the job's directory none of them is judged.
    """
    snapshot = Snapshot(now)
    verdicts: list[Verdict] = []
    for directory, reader in ((MACHINE, machine), (JOB, job)):
        if reader is None:
            continue
        verdicts.extend(_location(directory, reader))
        problem = reader.problem()
        if problem is not None:
            verdicts.append(Verdict(directory, "", ERROR, "reachable", problem, reader.location))
            continue
        snapshot.directories.add(directory)
        if isinstance(reader, DirectoryReader):
            verdicts.extend(_local(directory, reader))
        for key in keys_of(directory):
            verdicts.extend(check_key(key, reader, snapshot))
    together = relations(snapshot)
    spoken = {verdict.key for verdict in together if verdict.level != INFO}
    verdicts = [verdict for verdict in verdicts if verdict.level != OK or verdict.key not in spoken]
    order = {"": -1, **{key.name: place for place, key in enumerate(KEYS)}}
    return sorted(verdicts + together, key=lambda verdict: (verdict.directory != MACHINE, order.get(verdict.key, 999)))


def _location(directory: str, reader: FeatureReader) -> Iterator[Verdict]:
    location = reader.location

    def about(level: str, rule: str, detail: str) -> Verdict:
        return Verdict(directory, "", level, rule, detail, shown_value(location.encode("utf-8", "replace")))

    if location != "/" and location.endswith("/"):
        yield about(WARNING, "no-trailing-slash", "the variable's value should not end with a slash")
    if isinstance(reader, DirectoryReader):
        yield about(INFO, "dirac", "some of DIRAC 8's readers work over http(s) only")
    else:
        yield about(INFO, "panda-local", "the PanDA pilot reads local directories only")


def _local(directory: str, reader: DirectoryReader) -> Iterator[Verdict]:
    """What only a file system tells: who may read the directory, and what lies there that is no key."""
    mode = os.stat(reader.location).st_mode
    if stat.S_IMODE(mode) & 0o005 != 0o005:
        detail = f"mode {stat.S_IMODE(mode):04o}: the provider's services cannot read it"
        yield Verdict(directory, "", WARNING, "world-readable", detail, reader.location)
    try:
        names = reader.names()
    except FeatureError as error:
        yield Verdict(directory, "", ERROR, "listable", str(error), reader.location)
        return
    unknown = [name for name in names if name not in BY_NAME or BY_NAME[name].directory != directory]
    for name in unknown[:MOST_UNKNOWN]:
        printable = shown_value(name.encode("utf-8", "surrogateescape"))
        if name in BY_NAME:
            detail = f"a key of the {BY_NAME[name].directory} directory; no client looks for it here"
            yield Verdict(directory, printable, WARNING, "right-directory", detail)
        else:
            yield Verdict(directory, printable, INFO, "unknown-key", "not a key of the specification")
    if len(unknown) > MOST_UNKNOWN:
        yield Verdict(directory, "", INFO, "unknown-key", f"{len(unknown) - MOST_UNKNOWN} more files that are no keys")
