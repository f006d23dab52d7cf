"""Ask access points for their idle jobs: each in a process of its own, as one that hangs must not hold up the rest."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from typing import Any

from drainwise.common.bounded_call import each_within
from drainwise.facts.errors import PoolError, PoolUnreachable
from drainwise.htcondor.ads.query import classad2, htcondor2
from drainwise.htcondor.ads.values import DAEMON_ADDRESS, Ad, shown
from drainwise.htcondor.demand.idle_jobs import COUNTED, IDLE, JOB_ATTRIBUTES, idle_jobs
from drainwise.htcondor.demand.told import IdleJobs

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
    asked = sorted(schedds)
    attributes = sorted({*JOB_ATTRIBUTES, *(f"Request{name}" for name in names), *also})
    end = time.monotonic() + 2 * seconds
    calls = [partial(_jobs_of, name, schedds[name], names, attributes) for name in asked]
    left = set(asked)
    with closing(each_within(seconds, calls, "it", _AT_ONCE)) as answers:
        for place, answer in answers:
            left.discard(asked[place])
            yield asked[place], shown(str(answer)) if isinstance(answer, PoolError) else answer
            if time.monotonic() > end:
                break
    for name in sorted(left):
        yield name, "too many access points did not answer before it"


def _jobs_of(schedd: str, address: Ad, names: Collection[str], attributes: Sequence[str]) -> list[IdleJobs]:
    """Query one access point. Raises PoolUnreachable."""
    try:
        location = classad2.ClassAd({name: address[name] for name in DAEMON_ADDRESS if name in address})
        ads = htcondor2.Schedd(location).query(
            IDLE, list(attributes), limit=MOST_GROUPS + 1, opts=htcondor2.QueryOpt.GroupBy
        )
    except (htcondor2.HTCondorException, KeyError, TypeError, ValueError) as fault:
        raise PoolUnreachable(f"it does not answer: {fault}") from None
    if len(ads) > MOST_GROUPS:
        raise PoolUnreachable(f"its jobs differ in more than {MOST_GROUPS} ways")
    now = time.time()
    found = (group_of(schedd, ad, names, now) for ad in ads)
    return [one for one in found if one is not None]


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
    return IdleJobs(**{**vars(one), "ad": text if len(text) <= _LONGEST else ""})


def value_in(ad: Any, name: str) -> object:
    """Return the value of an attribute, evaluated in its ad; None when it has none, or none that is plain."""
    try:
        value = ad.eval(name) if name in ad else None
    except (classad2.ClassAdException, KeyError, TypeError, ValueError, RecursionError):
        return None
    return value if isinstance(value, (str, float, bool)) or type(value) is int else None
