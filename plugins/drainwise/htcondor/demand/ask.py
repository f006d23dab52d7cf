"""Ask a pool which jobs wait and where each of them could run.

To be imported and called in a process that ends after one question (`bounded_call.within`): the bindings may hang. Each
access point is asked in a process of its own, as one that hangs must not hold up the rest.
"""

from __future__ import annotations

import math
import re
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from typing import Any

from drainwise.facts.errors import PoolUnreachable
from drainwise.htcondor.ads.query import COLLECTOR, classad2, each_access_point, htcondor2, located, queried, query
from drainwise.htcondor.ads.values import (
    DAEMON_ADDRESS,
    LARGEST_POOL,
    MACHINE_RESOURCES,
    Ad,
    countables,
    job_needs,
    named,
    number,
    text,
)
from drainwise.htcondor.demand import matching, place_ads
from drainwise.htcondor.demand.demand import IdleJobs, SeenPlace, Told, largest_sum, limits_taken
from drainwise.pool.amounts import Amounts

_TAKEN = "ConcurrencyLimits"
_MOST_MATCHED = 200
"""Groups of jobs that are matched: those with the most cores."""

_NOT_READ = "requirements that were not looked at"
_MOST_NAMES = 200
_KIB = 1024


@dataclass(frozen=True)
class _Jobs:
    """The idle jobs, the largest groups first, the ClassAds of the first of them; who answered, and who did not."""

    jobs: list[IdleJobs] = field(default_factory=list)
    ads: list[Any | None] = field(default_factory=list)
    answered: set[str] = field(default_factory=set)
    silent: dict[str, str] = field(default_factory=dict)

    def references(self, name: str) -> frozenset[str]:
        """Return the names, in lower case, that an attribute of these ads refers to outside of its ad."""
        return frozenset().union(*(matching.references(ad, name) for ad in self.ads if ad is not None))


def ask_demand(seconds: float) -> Told:
    """Ask the configured pool; seconds: for each access point. Raises PoolUnreachable when the collector is silent."""
    collector = htcondor2.Collector()
    names, by_nodes = _asked_by_nodes(collector)
    waiting = _jobs(collector, names, by_nodes, seconds)
    by_jobs = waiting.references("Requirements")
    parts_of = frozenset().union(*(matching.asks_of_place(ad, names) for ad in waiting.ads if ad is not None))
    places, asked = _places(collector, names, _some(by_nodes.union(by_jobs, parts_of) - matching.FREE_NOW))
    if not matching.FREE_NOW.isdisjoint(by_jobs):
        with_gpus = queried(collector, COLLECTOR, htcondor2.AdType.Startd, place_ads.WITH_GPUS, ())
        place_ads.set_own_gpus(places, with_gpus, waiting.references("RequireGPUs"))
        asked |= matching.FREE_NOW
    classes = _classes(places, waiting, names, asked)
    examples = {
        name: place_ads.as_if_empty(places[place], names, classes.ignored) for name, place in classes.examples.items()
    }
    totals = {name: places[place].place.total for name, place in classes.examples.items()}
    unknown = matching.FREE_NOW.union(
        classes.ignored, *(matching.references(ad, "Start") - asked for ad in examples.values())
    )
    told = [
        _described(one if run_on is None else _fitting(one, run_on, totals), ad, by_nodes, names)
        for one, ad, run_on in zip(waiting.jobs, waiting.ads, matching.matched(waiting.ads, examples, unknown, names))
    ]
    told += [replace(one, ad="", asks=_NOT_READ) for one in waiting.jobs[len(told) :]]
    seen = [
        SeenPlace(replace(place.place, node_class=label), place.heard, place.row.get("state") == "Unclaimed")
        for place, label in zip(places, classes.of)
    ]
    left = _limits_left(collector, frozenset().union(*(one.limits for one in waiting.jobs)))
    return Told(seen, told, frozenset(waiting.answered), waiting.silent, tuple(_notices(classes, waiting.jobs)), left)


def _some(names: Collection[str]) -> frozenset[str]:
    return frozenset(sorted(names)[:_MOST_NAMES])


def _asked_by_nodes(collector: Any) -> tuple[tuple[str, ...], frozenset[str]]:
    """Return what nodes have beside what every node has, and the names that their START refers to."""
    constraint = f"{place_ads.PLACES} && ({place_ads.PECULIAR})"
    found = queried(collector, COLLECTOR, htcondor2.AdType.Startd, constraint, ("Start", MACHINE_RESOURCES))
    ads = [place_ads.as_without_kept_room(ad) for ad in found]
    starts = {str(ad.lookup("Start")): ad for ad in ads if "Start" in ad}
    names = countables({str(ad[MACHINE_RESOURCES]) for ad in ads if MACHINE_RESOURCES in ad})
    return names, _some(frozenset().union(*(matching.references(ad, "Start") for ad in starts.values())))


def _jobs(collector: Any, names: Sequence[str], by_nodes: Collection[str], seconds: float) -> _Jobs:
    """Ask the access points that have idle jobs."""
    kinds = htcondor2.AdType
    submitters = query(collector, COLLECTOR, kinds.Submitter, "IdleJobs > 0", ("ScheddName", "IdleJobs"))
    wanted = {name for ad in submitters if (name := text(ad, "ScheddName")) is not None and number(ad, "IdleJobs")}
    found = _Jobs()
    if not wanted:
        return found
    ads = query(collector, COLLECTOR, kinds.Schedd, None, DAEMON_ADDRESS)
    schedds = {name: ad for ad in ads if (name := text(ad, "Name")) is not None and name in wanted}
    found.silent.update(dict.fromkeys(wanted - schedds.keys(), "the collector does not know their address"))
    for name, answer in ask_access_points(schedds, names, by_nodes, seconds):
        if isinstance(answer, str):
            found.silent[name] = answer
        else:
            found.answered.add(name)
            found.jobs.extend(answer)
    found.jobs.sort(key=lambda one: (-one.jobs * one.needs.cores, one.schedd, one.first))
    found.ads.extend(matching.parsed(one.ad) if one.ad else None for one in found.jobs[:_MOST_MATCHED])
    return found


def _places(
    collector: Any, names: Sequence[str], asked: frozenset[str]
) -> tuple[list[place_ads.PlaceAd], frozenset[str]]:
    """Return the places, and what they were asked for: `asked`, and what that refers to."""
    for last in (False, True):
        attributes = place_ads.place_attributes(names, asked)
        places = place_ads.read_places(
            queried(collector, COLLECTOR, htcondor2.AdType.Startd, place_ads.PLACES, attributes), names
        )
        more = frozenset() if last else place_ads.unresolved(places, attributes)
        if not more:
            break
        asked |= _some(more)
    return places, asked


def _classes(
    places: Sequence[place_ads.PlaceAd], waiting: _Jobs, names: Sequence[str], asked: frozenset[str]
) -> place_ads.Classes:
    """Sort the places into classes by all that is asked about, and by what they have in all."""
    texts = {matching.flattened(ad, "Requirements") for ad in waiting.ads if ad is not None}
    texts |= {start for place in places if isinstance(start := place.row.get("start"), str)}
    needs = {one.needs for one in waiting.jobs[:_MOST_MATCHED]}
    amounts = [f"{one.cores} {one.memory} {one.disk * _KIB} {one.gpus}" for one in needs]
    amounts += [str(amount) for one in needs for _, amount in one.others]
    ours = {"start", "partitionableslot", *(name.lower() for name in (*place_ads.AMOUNTS, *names))}
    rows = [place.row for place in places]
    exact = waiting.references("RequestCpus")
    literals, searched = matching.literals_in([*texts, *amounts]), frozenset(matching.searched_names(texts))
    return place_ads.classes_of(rows, ours | asked, literals, searched, exact)


def _limits_left(collector: Any, names: Collection[str]) -> dict[str, float]:
    """Query what is left of concurrency limits; leave out those that are not known, so that their jobs count."""
    if not names:
        return {}
    try:
        slots = query(collector, COLLECTOR, htcondor2.AdType.Startd, f"{_TAKEN} =!= undefined", (_TAKEN,))
        negotiators = query(collector, COLLECTOR, htcondor2.AdType.Negotiator, None, DAEMON_ADDRESS)
        largest = _largest_sums(negotiators[0], names) if negotiators else {}
    except (PoolUnreachable, htcondor2.HTCondorException):
        return {}
    used = Counter[str]()
    for slot in slots:
        used.update(limits_taken(text(slot, _TAKEN)))
    return {name: max(0.0, most - used[name]) for name, most in largest.items() if math.isfinite(most)}


def _largest_sums(negotiator: Ad, names: Collection[str]) -> dict[str, float]:
    remote = htcondor2.RemoteParam(located(negotiator))
    set_there = {name.casefold(): name for name in remote}

    def knob(name: str) -> str | None:
        found = set_there.get(name.casefold())
        return None if found is None else str(remote[found])

    return {name: largest_sum(name, knob) for name in names}


def _notices(classes: place_ads.Classes, jobs: Sequence[IdleJobs]) -> Iterator[str]:
    if classes.ignored:
        yield f"the nodes differ in too many ways: no condition on {named(classes.ignored)} is looked at"
    if len(jobs) > _MOST_MATCHED:
        yield (
            f"where jobs could run is not looked at for {len(jobs) - _MOST_MATCHED} groups of waiting jobs beyond the"
            f" {_MOST_MATCHED} largest"
        )


def _fitting(one: IdleJobs, run_on: Mapping[str, Amounts | None], totals: Mapping[str, Amounts]) -> IdleJobs:
    """Return the jobs with the classes of places that have enough for them, were they empty.

    run_on: where they match, and what they ask there if it is a part of what is there (`matched`). Jobs that take all
    cores wherever they may run need the whole place; of others the largest ask counts, so that each such place does.
    """
    parts = {name: needs for name, needs in run_on.items() if needs is not None}
    if parts:
        whole = all(needs.cores == totals[name].cores for name, needs in parts.items())
        needs = reduce(Amounts.at_most if whole else (lambda a, b: a + b.minus(a)), parts.values())
        one = replace(one, needs=needs, whole=whole)
    return replace(one, classes=frozenset(name for name in run_on if totals[name].covers(one.needs)))


def _described(one: IdleJobs, ad: Any | None, by_nodes: Collection[str], names: Sequence[str]) -> IdleJobs:
    """Return the jobs with what they ask beside the amounts, and without the text of their ad.

    ad: that ad, None for one that cannot be read. by_nodes: the attributes of jobs that nodes ask about. names: the
    pool's countables.
    """
    if ad is None:
        return replace(one, ad="", asks=_NOT_READ, key=one.ad)
    asks = matching.unusual(matching.flattened(ad, "Requirements"), [name.lower() for name in names])
    for name, said in (("RequireGPUs", "require_gpus"), (_TAKEN, "concurrency_limits")):
        if more := matching.flattened(ad, name):  # what keeps such jobs from starting keeps no others
            asks = f"{asks} && {said} = {more}" if asks else f"{said} = {more}"
    key = asks + "".join(f"\n{name}={ad.lookup(name)}" for name in sorted(by_nodes) if name in ad)
    return replace(one, ad="", asks=asks, key=key)


MOST_GROUPS = 5000
"""Groups of like jobs that one access point may have; it has more when each job differs in what it asks for."""

_LONGEST = 65_536  # characters of an ad
_AT_ONCE = 32


def ask_access_points(
    schedds: Mapping[str, Ad], names: Collection[str], also: Collection[str], seconds: float
) -> Iterator[tuple[str, list[IdleJobs] | str]]:
    """Yield the name of each access point with its idle jobs, or with why it does not tell them.

    schedds: their ads, by name. names: the pool's countables; also: further attributes of jobs that nodes ask about.
    seconds: for each, and after twice as long no further one is asked.
    """
    attributes = sorted({*JOB_ATTRIBUTES, *(f"Request{name}" for name in names), *also})

    def question(name: str, schedd: Any) -> list[IdleJobs]:
        ads = schedd.query(IDLE, attributes, limit=MOST_GROUPS + 1, opts=htcondor2.QueryOpt.GroupBy)
        if len(ads) > MOST_GROUPS:
            raise PoolUnreachable(f"its jobs differ in more than {MOST_GROUPS} ways")
        now = time.time()
        found = (group_of(name, ad, names, now) for ad in ads)
        return [one for one in found if one is not None]

    end = time.monotonic() + 2 * seconds
    left = set(schedds)
    with closing(each_access_point(schedds, question, seconds, _AT_ONCE)) as answers:
        for name, answer in answers:
            left.discard(name)
            yield name, answer
            if time.monotonic() > end:
                break
    for name in sorted(left):
        yield name, "too many access points did not answer before it"


def group_of(schedd: str, ad: Any, names: Collection[str], now: float) -> IdleJobs | None:
    """Return the jobs of a group by its ad, which is spent by that; see `idle_jobs`."""
    one = idle_jobs(schedd, partial(value_in, ad), names, now)
    if one is None:
        return None
    for name in COUNTED:
        if name in ad:
            del ad[name]
    try:
        text = str(ad)
    except UnicodeDecodeError:
        text = ""
    return replace(one, ad=text if len(text) <= _LONGEST else "")


def value_in(ad: Any, name: str) -> object:
    """Return the value of an attribute, evaluated in its ad; None when it has none, or none that is plain."""
    try:
        value = ad.eval(name) if name in ad else None
    except (classad2.ClassAdException, KeyError, TypeError, ValueError, RecursionError):
        return None
    return value if isinstance(value, (str, float, bool)) or type(value) is int else None


# A schedd groups its jobs by the attributes that it is asked for, and by all that these refer to (QueryOpt.GroupBy):
# one ad for all jobs that are alike. Its autoclusters would count the running jobs and the held ones, too.

UNIVERSES = (5, 10, 13)
"""Vanilla (container and docker, too), java, vm: what starts in a slot by itself."""

IDLE = (
    f"JobStatus == 1 && ({' || '.join(f'JobUniverse == {number}' for number in UNIVERSES)})"
    ' && Managed =!= "External" && (JobCoolDownExpiration > time()) =!= true'
)
"""The jobs that a schedd would run now: not those that a job router has taken, whose routed copies count, and not those
that cool down."""

JOB_ATTRIBUTES = (
    *("JobStatus", "JobUniverse", "JobPrio", "Owner", "User", "AccountingGroup", "ConcurrencyLimits", "DeferralTime"),
    *("Requirements", "RequireGPUs", "RequestCpus", "RequestMemory", "RequestDisk"),
)
COUNTED = ("JobIds", "JobCount", "Id", "JobStatus", "JobPrio")
"""What tells one group from the others and says nothing of where it could run."""

_FIRST = re.compile(r"(\d{1,12})\.(\d{1,12})")
_SOON = 600  # s; a job that may start before then is waited for


def idle_jobs(schedd: str, value_of: Callable[[str], object], names: Collection[str], now: float) -> IdleJobs | None:
    """Return the jobs of one group; None for one of which nothing could start at `now` (UNIX s), or that is no group.

    value_of: the evaluated value of an attribute of the group, None where it has none. names: the pool's countables.
    """
    jobs, owner = value_of("JobCount"), value_of("Owner")
    if type(jobs) is not int or not 0 < jobs <= LARGEST_POOL or not isinstance(owner, str):
        return None
    start = value_of("DeferralTime")
    if (type(start) is int or type(start) is float) and start > now + _SOON:
        return None
    group, user, priority = value_of("AccountingGroup"), value_of("User"), value_of("JobPrio")
    submitter = group if isinstance(group, str) and group else owner
    if "@" not in submitter and isinstance(user, str):
        submitter += f"@{user.rpartition('@')[2]}"
    ids = value_of("JobIds")
    first = _FIRST.match(ids) if isinstance(ids, str) else None
    return IdleJobs(
        schedd=schedd,
        submitter=submitter,
        jobs=jobs,
        needs=job_needs(value_of, names),
        priority=priority if type(priority) is int else 0,
        first=(int(first[1]), int(first[2])) if first else (0, 0),
        limits=limits_taken(value_of("ConcurrencyLimits")),
    )
