"""Check features directories against every rule of the specification: a verdict per key, naming rule and value."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from drainwise.facts.errors import FeatureError
from drainwise.features.check_key import ERROR, INFO, OK, WARNING, FoundKeys, KeyVerdict, check_key, shown_value
from drainwise.features.facts import converted
from drainwise.features.keys import BY_NAME, JOB, KEYS, MACHINE, keys_of
from drainwise.features.read import DirectoryReader
from drainwise.features.reader import FeatureReader

if TYPE_CHECKING:
    from collections.abc import Iterator

    from drainwise.features.check_key import FoundKeys

MOST_UNKNOWN = 20
"""Files that are no keys and are named one by one; the rest is counted."""


def check(machine: FeatureReader | None, job: FeatureReader | None, now: int) -> list[KeyVerdict]:
    """Check a machine's directory, a job's, or both together.

    Parameters: readers from `open_features`; `now` in UNIX seconds.
    Returns: the verdicts in the table's order, those about a directory as a whole first; a key that breaks no rule has
    one verdict, `ok`. Rules between keys need what they compare: without the job's directory none of them is judged.
    """
    seen = FoundKeys(now)
    verdicts: list[KeyVerdict] = []
    for directory, reader in ((MACHINE, machine), (JOB, job)):
        if reader is None:
            continue
        verdicts.extend(_location(directory, reader))
        problem = reader.problem()
        if problem is not None:
            verdicts.append(KeyVerdict(directory, "", ERROR, "reachable", problem, reader.location))
            continue
        seen.directories.add(directory)
        if isinstance(reader, DirectoryReader):
            verdicts.extend(_local(directory, reader))
        for key in keys_of(directory):
            verdicts.extend(check_key(key, reader, seen))
    together = relations(seen)
    spoken = {verdict.key for verdict in together if verdict.level != INFO}
    verdicts = [verdict for verdict in verdicts if verdict.level != OK or verdict.key not in spoken]
    order = {"": -1, **{key.name: place for place, key in enumerate(KEYS)}}
    return sorted(verdicts + together, key=lambda verdict: (verdict.directory != MACHINE, order.get(verdict.key, 999)))


def _location(directory: str, reader: FeatureReader) -> Iterator[KeyVerdict]:
    location = reader.location

    def about(level: str, rule: str, detail: str) -> KeyVerdict:
        return KeyVerdict(directory, "", level, rule, detail, shown_value(location.encode("utf-8", "replace")))

    if location != "/" and location.endswith("/"):
        yield about(WARNING, "no-trailing-slash", "the variable's value should not end with a slash")
    if isinstance(reader, DirectoryReader):
        yield about(INFO, "dirac", "some of DIRAC 8's readers work over http(s) only")
    else:
        yield about(INFO, "panda-local", "the PanDA pilot reads local directories only")


def _local(directory: str, reader: DirectoryReader) -> Iterator[KeyVerdict]:
    """Check what only a file system tells: who may read the directory, and what lies there that is no key."""
    mode = os.stat(reader.location).st_mode
    if stat.S_IMODE(mode) & 0o005 != 0o005:
        detail = f"mode {stat.S_IMODE(mode):04o}: the provider's services cannot read it"
        yield KeyVerdict(directory, "", WARNING, "world-readable", detail, reader.location)
    try:
        names = reader.names()
    except FeatureError as error:
        yield KeyVerdict(directory, "", ERROR, "listable", str(error), reader.location)
        return
    unknown = [name for name in names if name not in BY_NAME or BY_NAME[name].directory != directory]
    for name in unknown[:MOST_UNKNOWN]:
        printable = shown_value(name.encode("utf-8", "surrogateescape"))
        if name in BY_NAME:
            detail = f"a key of the {BY_NAME[name].directory} directory; no client looks for it here"
            yield KeyVerdict(directory, printable, WARNING, "right-directory", detail)
        else:
            yield KeyVerdict(directory, printable, INFO, "unknown-key", "not a key of the specification")
    if len(unknown) > MOST_UNKNOWN:
        yield KeyVerdict(
            directory, "", INFO, "unknown-key", f"{len(unknown) - MOST_UNKNOWN} more files that are no keys"
        )


PANDA_LEAVES_SECS = 600
_SHARE_TOLERANCE = 0.01


def relations(seen: FoundKeys) -> list[KeyVerdict]:
    """Judge the keys together; only what breaks a rule, or is worth knowing, has a verdict here."""
    rules = (_cores, _scores, _twins, _job_start, _both_or_neither, _shutdown_order, _notice)
    return [verdict for rule in rules for verdict in rule(seen)]


def _verdict(seen: FoundKeys, key: str, level: str, rule: str, detail: str) -> KeyVerdict:
    return KeyVerdict(BY_NAME[key].directory, key, level, rule, detail, seen.texts.get(key))


def _cores(seen: FoundKeys) -> Iterator[KeyVerdict]:
    integers = seen.integers
    total, allocated = integers.get("total_cpu"), integers.get("allocated_cpu")
    if total is not None and allocated is not None and allocated > total:
        yield _verdict(seen, "allocated_cpu", ERROR, "allocated<=total", f"more than total_cpu, which is {total}")
    physical, logical = integers.get("phys_cores"), integers.get("log_cores")
    if physical is not None and logical and logical < physical:
        detail = f"fewer than phys_cores, which is {physical}; 0 says that hyper-threading is off"
        yield _verdict(seen, "log_cores", WARNING, "logical>=physical", detail)


def _scores(seen: FoundKeys) -> Iterator[KeyVerdict]:
    numbers = seen.numbers
    host, measured, share = numbers.get("hs06"), numbers.get("hs23"), numbers.get("hs06_job")
    if measured is not None and host is None:
        yield _verdict(seen, "hs23", WARNING, "hs23=hs06", "HEPScore23 is written to hs06 as well: clients read that")
    elif measured is not None and measured != host:
        yield _verdict(seen, "hs23", INFO, "hs23=hs06", f"hs06 holds another value, {seen.texts['hs06']}")
    if host is None or share is None:
        return
    if share > host:
        detail = f"more than the whole host's hs06, which is {seen.texts['hs06']}"
        yield _verdict(seen, "hs06_job", ERROR, "share<=host", detail)
    total, allocated = numbers.get("total_cpu"), numbers.get("allocated_cpu")
    if total and allocated and abs(share - host * allocated / total) > _SHARE_TOLERANCE * host:
        detail = f"{host * allocated / total:.6g} by cores; the provider may compute it otherwise"
        yield _verdict(seen, "hs06_job", INFO, "share-by-cores", detail)


def _twins(seen: FoundKeys) -> Iterator[KeyVerdict]:
    """Compare each draft key with its 2016 twin; one unit of difference is rounding, if it is downwards."""
    for key in KEYS:
        found, twin = seen.integers.get(key.name), seen.integers.get(key.twin or "")
        if key.twin is None or found is None:
            continue
        if twin is None:
            yield _verdict(seen, key.name, INFO, "twin-missing", f"clients of today read {key.twin}, not this")
            continue
        expected = converted(key, twin, seen.texts.get("cpufactor_lrms") if key.normalised else None)
        if expected is None:
            yield _verdict(seen, key.name, WARNING, "cpufactor", "without a sound cpufactor_lrms nobody can use it")
        elif found == expected + 1 and (key.normalised or key.divisor != 1):
            detail = f"rounded up from {key.twin} = {twin}: a limit must not be promised too high"
            yield _verdict(seen, key.name, WARNING, "twin-rounding", detail)
        elif found != expected:
            detail = f"{key.twin} = {twin} makes it {expected}: two answers to one question"
            yield _verdict(seen, key.name, ERROR, "twins-agree", detail)


def _job_start(seen: FoundKeys) -> Iterator[KeyVerdict]:
    start, limit = seen.integers.get("jobstart_secs"), seen.integers.get("wall_limit_secs")
    if start is None:
        return
    if start > seen.now:
        detail = f"{start - seen.now} s in the future: the job would have run a negative time"
        yield _verdict(seen, "jobstart_secs", ERROR, "start-past", detail)
    elif limit is not None and seen.now - start > limit:
        detail = f"the job has run {seen.now - start} s, longer than its wall limit: a stale directory?"
        yield _verdict(seen, "wall_limit_secs", WARNING, "within-limit", detail)


def _both_or_neither(seen: FoundKeys) -> Iterator[KeyVerdict]:
    if not {MACHINE, JOB} <= seen.directories:
        return
    for key, other in (("shutdowntime", "shutdowntime_job"), ("shutdowntime_job", "shutdowntime")):
        if key not in seen.present and other in seen.present:
            detail = f"{other} is there: DIRAC raises unless both are"
            if key == "shutdowntime":
                detail += ", and the PanDA pilot acts on the machine's file only"
            yield _verdict(seen, key, ERROR, "both-or-neither", detail)


def _shutdown_order(seen: FoundKeys) -> Iterator[KeyVerdict]:
    machine, job = seen.integers.get("shutdowntime"), seen.integers.get("shutdowntime_job")
    if machine is not None and job is not None and machine > job:
        detail = f"later than shutdowntime_job, {job}: the PanDA pilot acts on this one and would stay too long"
        yield _verdict(seen, "shutdowntime", WARNING, "mirrors-job", detail)
    if machine is not None and 0 < machine - seen.now < PANDA_LEAVES_SECS:
        detail = f"{machine - seen.now} s ahead: the PanDA pilot stops itself {PANDA_LEAVES_SECS} s before"
        yield _verdict(seen, "shutdowntime", INFO, "panda-leaves", detail)


def _notice(seen: FoundKeys) -> Iterator[KeyVerdict]:
    """Judge how much notice a local file gave, by the time at which it was written."""
    for key, grace_key in (("shutdowntime", "grace_secs"), ("shutdowntime_job", "grace_secs_job")):
        planned, grace = seen.integers.get(key), seen.integers.get(grace_key)
        written = seen.written_at.get(key)
        if planned is not None and grace is not None and written is not None and planned - written < grace - 1:
            detail = f"set {planned - written:.0f} s ahead, less than {grace_key} = {grace}"
            yield _verdict(seen, key, WARNING, "notice", detail)
