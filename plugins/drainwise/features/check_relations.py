"""The rules between keys: what must agree, what may not exceed what, and what a named client makes of it together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drainwise.features.keys import BY_NAME, JOB, KEYS, MACHINE
from drainwise.features.values import converted
from drainwise.features.verdict import ERROR, INFO, WARNING, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from drainwise.features.check_key import Snapshot

PANDA_LEAVES_SECS = 600
_SHARE_TOLERANCE = 0.01


def relations(snapshot: Snapshot) -> list[Verdict]:
    """Judge the keys together; only what breaks a rule, or is worth knowing, has a verdict here."""
    rules = (_cores, _scores, _twins, _job_start, _both_or_neither, _shutdown_order, _notice)
    return [verdict for rule in rules for verdict in rule(snapshot)]


def _verdict(snapshot: Snapshot, key: str, level: str, rule: str, detail: str) -> Verdict:
    return Verdict(BY_NAME[key].directory, key, level, rule, detail, snapshot.texts.get(key))


def _cores(snapshot: Snapshot) -> Iterator[Verdict]:
    integers = snapshot.integers
    total, allocated = integers.get("total_cpu"), integers.get("allocated_cpu")
    if total is not None and allocated is not None and allocated > total:
        yield _verdict(snapshot, "allocated_cpu", ERROR, "allocated<=total", f"more than total_cpu, which is {total}")
    physical, logical = integers.get("phys_cores"), integers.get("log_cores")
    if physical is not None and logical and logical < physical:
        detail = f"fewer than phys_cores, which is {physical}; 0 says that hyper-threading is off"
        yield _verdict(snapshot, "log_cores", WARNING, "logical>=physical", detail)


def _scores(snapshot: Snapshot) -> Iterator[Verdict]:
    numbers = snapshot.numbers
    host, measured, share = numbers.get("hs06"), numbers.get("hs23"), numbers.get("hs06_job")
    if measured is not None and host is None:
        yield _verdict(
            snapshot, "hs23", WARNING, "hs23=hs06", "HEPScore23 is written to hs06 as well: clients read that"
        )
    elif measured is not None and measured != host:
        yield _verdict(snapshot, "hs23", INFO, "hs23=hs06", f"hs06 holds another value, {snapshot.texts['hs06']}")
    if host is None or share is None:
        return
    if share > host:
        detail = f"more than the whole host's hs06, which is {snapshot.texts['hs06']}"
        yield _verdict(snapshot, "hs06_job", ERROR, "share<=host", detail)
    total, allocated = numbers.get("total_cpu"), numbers.get("allocated_cpu")
    if total and allocated and abs(share - host * allocated / total) > _SHARE_TOLERANCE * host:
        detail = f"{host * allocated / total:.6g} by cores; the provider may compute it otherwise"
        yield _verdict(snapshot, "hs06_job", INFO, "share-by-cores", detail)


def _twins(snapshot: Snapshot) -> Iterator[Verdict]:
    """A draft key says the same as its 2016 twin; one unit of difference is rounding, if it is downwards."""
    for key in KEYS:
        found, twin = snapshot.integers.get(key.name), snapshot.integers.get(key.twin or "")
        if key.twin is None or found is None:
            continue
        if twin is None:
            yield _verdict(snapshot, key.name, INFO, "twin-missing", f"clients of today read {key.twin}, not this")
            continue
        expected = converted(key, twin, snapshot.texts.get("cpufactor_lrms") if key.normalised else None)
        if expected is None:
            yield _verdict(snapshot, key.name, WARNING, "cpufactor", "without a sound cpufactor_lrms nobody can use it")
        elif found == expected + 1 and (key.normalised or key.divisor != 1):
            detail = f"rounded up from {key.twin} = {twin}: a limit must not be promised too high"
            yield _verdict(snapshot, key.name, WARNING, "twin-rounding", detail)
        elif found != expected:
            detail = f"{key.twin} = {twin} makes it {expected}: two answers to one question"
            yield _verdict(snapshot, key.name, ERROR, "twins-agree", detail)


def _job_start(snapshot: Snapshot) -> Iterator[Verdict]:
    start, limit = snapshot.integers.get("jobstart_secs"), snapshot.integers.get("wall_limit_secs")
    if start is None:
        return
    if start > snapshot.now:
        detail = f"{start - snapshot.now} s in the future: the job would have run a negative time"
        yield _verdict(snapshot, "jobstart_secs", ERROR, "start-past", detail)
    elif limit is not None and snapshot.now - start > limit:
        detail = f"the job has run {snapshot.now - start} s, longer than its wall limit: a stale directory?"
        yield _verdict(snapshot, "wall_limit_secs", WARNING, "within-limit", detail)


def _both_or_neither(snapshot: Snapshot) -> Iterator[Verdict]:
    if not {MACHINE, JOB} <= snapshot.directories:
        return
    for key, other in (("shutdowntime", "shutdowntime_job"), ("shutdowntime_job", "shutdowntime")):
        if key not in snapshot.present and other in snapshot.present:
            detail = f"{other} is there: DIRAC raises unless both are"
            if key == "shutdowntime":
                detail += ", and the PanDA pilot acts on the machine's file only"
            yield _verdict(snapshot, key, ERROR, "both-or-neither", detail)


def _shutdown_order(snapshot: Snapshot) -> Iterator[Verdict]:
    machine, job = snapshot.integers.get("shutdowntime"), snapshot.integers.get("shutdowntime_job")
    if machine is not None and job is not None and machine > job:
        detail = f"later than shutdowntime_job, {job}: the PanDA pilot acts on this one and would stay too long"
        yield _verdict(snapshot, "shutdowntime", WARNING, "mirrors-job", detail)
    if machine is not None and 0 < machine - snapshot.now < PANDA_LEAVES_SECS:
        detail = f"{machine - snapshot.now} s ahead: the PanDA pilot stops itself {PANDA_LEAVES_SECS} s before"
        yield _verdict(snapshot, "shutdowntime", INFO, "panda-leaves", detail)


def _notice(snapshot: Snapshot) -> Iterator[Verdict]:
    """A local file tells when it was written, and so how much notice it gave."""
    for key, grace_key in (("shutdowntime", "grace_secs"), ("shutdowntime_job", "grace_secs_job")):
        planned, grace = snapshot.integers.get(key), snapshot.integers.get(grace_key)
        written = snapshot.written_at.get(key)
        if planned is not None and grace is not None and written is not None and planned - written < grace - 1:
            detail = f"set {planned - written:.0f} s ahead, less than {grace_key} = {grace}"
            yield _verdict(snapshot, key, WARNING, "notice", detail)
