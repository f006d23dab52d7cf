"""What access points tell of the pilots of a pool, beside each snapshot: who sent those that are not yet known, and
when those that checkpoint by themselves (`checkpoint_exit_code`) last did so.

Users set some of these attributes, to expressions as well, and HTCondor follows all names in an expression that it
hands out: one that doubles itself forty times keeps it busy for ever. So the slots do not tell (STARTD_JOB_ATTRS was
seen to stop the schedd), and a schedd hands out only what it finds to be short texts and numbers, by their `unparse`,
which evaluates nothing. Where it does not answer in time the snapshot is there without. Whose identity was told once
is not asked for again.

The access point sets the attributes of the credential that it was shown, and ignores a user who sets them (HTCondor's
SYSTEM_SECURE_JOB_ATTRS); an HTCondor-CE renames those of its token to `orig_…` when it routes a job (its
01-ce-router-defaults.conf), and its job router sets RoutedFromJobId. A job that came through no CE may have set the
latter two itself.
"""

from __future__ import annotations

import resource
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from drainwise.common.bounded_call import BoundedCall
from drainwise.facts.client_rules import ATTRIBUTE
from drainwise.facts.errors import PoolError
from drainwise.htcondor.ads.query import COLLECTOR, each_access_point, htcondor2, literals, query
from drainwise.htcondor.ads.values import DAEMON_ADDRESS, Ad, named, number, shown, text, whole
from drainwise.pool.facts import Pilot, Snapshot
from drainwise.pool.identity import IdentityRules, PilotIdentity, identity_of

_GROUPS = ("x509UserProxyFirstFQAN", "orig_AuthTokenGroups", "AuthTokenGroups")
_ISSUERS = ("orig_AuthTokenIssuer", "AuthTokenIssuer")
"""Of these the first counts that a job has: what the CE kept of a token before the access point's own."""
OF_CREDENTIALS = ("x509UserProxyVOName", "x509UserProxyFirstFQAN", "AuthTokenGroups", "AuthTokenIssuer")
"""What the access point sets, and nobody else may."""
OF_SUBMITTERS = ("orig_AuthTokenGroups", "orig_AuthTokenIssuer", "RoutedFromJobId")
"""What a CE sets, and a submitter may."""
_PLAIN = 'regexp("^((\\"[^\\"]{0,300}\\"|[0-9]{1,18}|);){%d}$", strcat(%s))'
"""Whether attributes are short texts and numbers, or not there: of an expression only its writing is looked at. One
pattern for all, since a schedd compiles it for each job; no backslash, which HTCondor reads differently on its way.
"""
_BEGUN = "JobStatus >= 2 && JobStatus != 5 && JobCurrentStartDate >= {}"

CHECKPOINTS = ("JobCurrentStartDate", "TransferOutFinished", "CommittedTime", "CheckpointNumber", "NumJobStarts")
"""Of a job that checkpoints. The shadow sends the time of a transfer at once, the others with its next update."""

_LARGEST = 10**18


def constraint(attributes: Sequence[str], since: int) -> str:
    """Return the constraint for running jobs that have begun since then (UNIX s) and whose attributes are plain."""
    written = ", ".join(f'unparse({name}), ";"' for name in attributes)
    return f"{_BEGUN.format(since)} && {_PLAIN % (len(attributes), written)}"


def checkpoints_in(ad: Ad) -> tuple[int, int | None] | None:
    """Return when a job was last saved in this run and when it should be next, UNIX s; None where it was not.

    CommittedTime and CheckpointNumber count earlier runs, too: of them only the mean time between two is taken, and
    what is committed in the first run. Each is wall clock time, suspended or not, so that CommittedSuspensionTime moves
    no moment.
    """
    start, sent, committed, number, starts = (whole(ad, name) for name in CHECKPOINTS)
    if not start or number is None:
        return None
    first = start + committed if committed and starts is not None and starts <= 1 else start
    saved = max(first, sent or 0)
    return (saved, saved + committed // (number + 1) if committed else None) if saved > start else None


CHECKPOINTED = f'unparse(CheckpointNumber) != "" && {constraint(CHECKPOINTS, 0)}'
"""The constraint for running jobs that checkpoint. Most make none, and cost the access point but one look."""


def identity_in(ad: Ad, rules: IdentityRules) -> PilotIdentity | None:
    """Return who sent a job; None where nothing tells. An attribute that is no text or number is none."""
    group = first_text(ad, _GROUPS).partition(",")[0]  # of a token's groups the first
    of_group = group.split("/")[1] if group.startswith("/") else ""
    vo, ce_job = first_text(ad, ("x509UserProxyVOName",)) or of_group, first_text(ad, ("RoutedFromJobId",))
    return identity_of({"vo": vo, "ce_job": ce_job}, (rules.issuer, first_text(ad, _ISSUERS)))


def first_text(ad: Ad, names: Sequence[str]) -> str:
    """Return the first of these attributes that an ad has as a text or number; "" for none."""
    for name in names:
        value = ad.get(name)
        if type(value) is str and value:
            return value
        if type(value) is int and 0 <= value <= _LARGEST:
            return str(value)
    return ""


_LATE = 1800
"""Seconds within which a run is known to the collector and to its access point, by nearly the same start."""
_WAIT = 3.0
"""Seconds that a snapshot waits for them at most when all else is there."""
_OF_ACCESS_POINTS = 0.4  # of the time of a snapshot, for one access point
_AT_ONCE = 16
_MEMORY = 2 << 30
"""Bytes that an answer may take in the process that asks."""
_RUNNING = "TotalRunningJobs"

NOT_TOLD = "what the site's scope asks of its job is not known yet: its access point has not told it"
"""The reason of a pilot that cannot be ordered for that."""

_Jobs = dict[str, "PilotIdentity | None"]
_Saved = tuple[int, "int | None"]
_Traits = tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True)
class JobsTold:
    """What access points told: who sent each job, by GlobalJobId, and the names of who answered and who did not.

    traits: of each job the attributes that the site's scope asks for, as far as it has them as plain values. saved: see
    `checkpoints_in`.
    """

    jobs: _Jobs = field(default_factory=dict)
    traits: Mapping[str, _Traits] = field(default_factory=dict)
    answered: frozenset[str] = frozenset()
    silent: Mapping[str, str] = field(default_factory=dict)
    saved: Mapping[str, _Saved] = field(default_factory=dict)


class Identities:
    """The identities of a pool's jobs, as far as they were told, `known` by GlobalJobId.

    rules: the site's. attributes: those of jobs that its scope asks for.
    """

    def __init__(self, rules: IdentityRules, attributes: Sequence[str] = ()) -> None:
        self._rules, self._attributes = rules, tuple(attributes)
        self._traits: dict[str, _Traits] = {}
        self._saved: dict[str, _Saved] = {}
        self.known: _Jobs = {}
        self._since: dict[str, int] = {}
        """By access point the start, in UNIX s, of the jobs that are asked for next."""
        self._asked_at = 0

    def ask(self, seconds: float) -> BoundedCall[JobsTold]:
        """Begin to ask for the jobs that are not known."""
        self._asked_at = int(time.time())
        return BoundedCall(
            seconds, partial(_ask, self._rules, self._attributes, dict(self._since), seconds), "the access points"
        )

    def completed(self, snapshot: Snapshot, asked: BoundedCall[JobsTold]) -> Snapshot:
        """Return the snapshot with who sent each pilot, as far as that is told now or was; else with a notice."""
        if not snapshot.pilots:
            return snapshot
        try:
            told = next(asked.values(_WAIT))
            fault = f"{named(told.silent)}: {next(iter(told.silent.values()))}" if told.silent else ""
        except PoolError as error:
            told, fault = JobsTold(), shown(str(error))
        self._learn(told, snapshot)
        notices = (f"who sent the pilots is not known of all: {fault}",) if fault else ()
        pilots = tuple(map(self._identified, snapshot.pilots))
        return replace(snapshot, pilots=pilots, notices=(*snapshot.notices, *notices))

    def _learn(self, told: JobsTold, snapshot: Snapshot) -> None:
        """Remember what was told of the jobs of the snapshot's pilots, and from when on to ask each access point."""
        known, begun = {**self.known, **told.jobs}, self._asked_at - _LATE
        traits = {**self._traits, **told.traits}
        unknown: dict[str, int] = defaultdict(lambda: self._asked_at)
        self.known = {}
        for pilot in snapshot.pilots:
            job, access_point = job_of(pilot.run), pilot.run.partition("#")[0]
            if job in known:
                self.known[job] = known[job]
            elif access_point in told.answered and pilot.started < begun:
                self.known[job] = None  # it has no such job, or not any more
            else:
                unknown[access_point] = min(unknown[access_point], pilot.started)
        saved = {**self._saved, **told.saved}
        self._saved = {job: saved[job] for pilot in snapshot.pilots if (job := job_of(pilot.run)) in saved}
        self._traits = {job: traits[job] for job in self.known if job in traits}
        self._since.update((name, unknown[name] - _LATE) for name in told.answered)

    def _identified(self, pilot: Pilot) -> Pilot:
        job = job_of(pilot.run)
        identity = self.known.get(job)
        saved, following = self._saved.get(job, (0, None))
        if saved > pilot.started:
            pilot = replace(pilot, saved=saved, next_save=following)
        if not self._attributes:
            return pilot if identity is pilot.identity else replace(pilot, identity=identity)
        cannot = pilot.cannot if job in self.known else pilot.cannot or NOT_TOLD
        return replace(pilot, identity=identity, traits=self._traits.get(job, ()), cannot=cannot)


def job_of(run: str) -> str:
    """Return the GlobalJobId of a run; its access point stands before the first `#`."""
    return run.rpartition("@")[0]


def _ask(
    rules: IdentityRules, attributes: tuple[str, ...], since: Mapping[str, int], seconds: float
) -> Iterator[JobsTold]:
    """Ask the access points for their jobs that have begun since then (UNIX s), each in a process of its own."""
    _bound_memory()  # before the bindings are imported
    found = query(htcondor2.Collector(), COLLECTOR, htcondor2.AdType.Schedd, None, (*DAEMON_ADDRESS, _RUNNING))
    schedds = {name: ad for ad in found if (name := text(ad, "Name")) is not None and number(ad, _RUNNING) != 0}
    jobs: _Jobs = {}
    traits: dict[str, _Traits] = {}
    saved: dict[str, _Saved] = {}
    silent = {}

    def question(name: str, schedd: Any) -> JobsTold:
        return _jobs_of(schedd, rules, attributes, since.get(name, 0))

    with closing(each_access_point(schedds, question, seconds * _OF_ACCESS_POINTS, _AT_ONCE)) as answers:
        for name, answer in answers:
            if isinstance(answer, str):
                silent[name] = answer
            else:
                jobs.update(answer.jobs)
                traits.update(answer.traits)
                saved.update(answer.saved)
    yield JobsTold(jobs, traits, frozenset(schedds) - silent.keys(), silent, saved)


def _jobs_of(schedd: Any, rules: IdentityRules, attributes: tuple[str, ...], since: int) -> JobsTold:
    """Query one access point."""
    found: dict[str, dict[str, object]] = defaultdict(dict)
    # Of a job with anything else than short texts and numbers in a group, nothing of that group is told. The
    # access point still tells of it where the scope asks, as nobody but itself sets what is of credentials.
    own = (*OF_CREDENTIALS, *OF_SUBMITTERS)
    for group in (OF_CREDENTIALS, (*OF_SUBMITTERS, *attributes)) if attributes else (own,):
        for ad in schedd.query(constraint(group, since), ["GlobalJobId", *group]):
            values = literals(ad, ("GlobalJobId", *group))
            found[text(values, "GlobalJobId") or ""].update(values)
    names = ("GlobalJobId", *CHECKPOINTS)
    ads = [literals(ad, names) for ad in schedd.query(CHECKPOINTED, list(names))]
    traits = {
        job: tuple((ATTRIBUTE + name, (value,)) for name in attributes if (value := first_text(values, (name,))))
        for job, values in found.items()
    }
    saved = {text(ad, "GlobalJobId") or "": told for ad in ads if (told := checkpoints_in(ad)) is not None}
    return JobsTold({job: identity_in(values, rules) for job, values in found.items()}, traits, saved=saved)


def _bound_memory() -> None:
    """Have this process end, without a core, where the answer is too large."""
    with open("/proc/self/statm", encoding="ascii") as stream:
        used = int(stream.read().split()[0]) * resource.getpagesize()
    for limit, most in ((resource.RLIMIT_AS, used + _MEMORY), (resource.RLIMIT_CORE, 0)):
        hard = resource.getrlimit(limit)[1]
        resource.setrlimit(limit, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
