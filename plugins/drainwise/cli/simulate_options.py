"""The options of `drainwise simulate`, each checked where it is read, and the scenario that they make."""

from __future__ import annotations

import argparse

from drainwise.cli.arguments import number, seconds, whole
from drainwise.facts.errors import UsageError
from drainwise.pilot.decide.settings import WHILE_DRAINING
from drainwise.simulate.policies.named import CLAIRVOYANT, require_known
from drainwise.simulate.scenario import ESTIMATES, Scenario, site_settings

_MOST_CORES = 1_000_000
_SPAN = seconds(1)
_AS_IN_SCENARIO = "shrinking chunk cores mix moments estimates error stuck liars silent while_draining arrivals seed"


def add_site_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the site and its pilots."""
    usual, group = Scenario(), parser.add_argument_group("the site")
    group.add_argument(
        "--cores", type=whole(1, _MOST_CORES), default=usual.cores, metavar="N", help="cores of the site (%(default)s)"
    )
    group.add_argument(
        "--mix",
        type=_mix,
        default=usual.mix,
        metavar="SIZE:SHARE,…",
        help="cores of a pilot, and the share of the site in such pilots: 8:0.5,64:0.5 (8:1)",
    )
    group.add_argument(
        "--lease",
        type=_SPAN,
        default=usual.lease,
        metavar="DURATION",
        help="how long a pilot may stay; jobs that ask for more are left out (4d)",
    )
    group.add_argument("--stuck", type=share, default=0.0, metavar="SHARE", help="pilots whose payloads hang (0)")
    group.add_argument(
        "--liars", type=share, default=0.0, metavar="SHARE", help="pilots that claim to lose everything when ended (0)"
    )
    group.add_argument("--silent", type=share, default=0.0, metavar="SHARE", help="pilots that report nothing (0)")
    group.add_argument(
        "--shrinking",
        type=share,
        default=0.0,
        metavar="SHARE",
        help="pilots that can give back a part of their cores (0)",
    )


def add_demand_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of what is wanted back, when, and what is known then."""
    usual, group = Scenario(), parser.add_argument_group("what is reclaimed")
    group.add_argument(
        "--reclaim",
        type=_some_share,
        default=usual.reclaimed,
        metavar="SHARE",
        help="of the pilots' cores, at once (%(default)s)",
    )
    group.add_argument(
        "--chunk",
        type=whole(1, 1024),
        default=usual.chunk,
        metavar="N",
        help="cores of a waiting job: what is given back is of use in such chunks (%(default)s)",
    )
    group.add_argument(
        "--moments",
        type=whole(1, 10_000),
        default=usual.moments,
        metavar="N",
        help="how often in each replication, each time from the untouched site (%(default)s)",
    )
    group.add_argument(
        "--horizon", type=_SPAN, default=7200, metavar="DURATION", help="within which the cores must be back (2h)"
    )
    group.add_argument("--grace", type=_SPAN, default=86400, metavar="DURATION", help="longest time to drain (1d)")
    group.add_argument(
        "--estimates",
        choices=ESTIMATES,
        default=usual.estimates,
        help="of run times: what jobs asked for, what their like took, or the truth (%(default)s)",
    )
    group.add_argument(
        "--error",
        type=number(0, 10),
        default=0.0,
        metavar="SIGMA",
        help="of a log-normal factor that makes them worse (0)",
    )
    _add_course_options(group, usual)


def _add_course_options(group: argparse._ArgumentGroup, usual: Scenario) -> None:
    """Add the options of when the agent and policies look, and of what pilots do meanwhile."""
    group.add_argument(
        "--arrivals",
        default="",
        metavar="GROUP",
        help="no moments: this group of the log (user, where there is one group alone) is owed --reclaim of the cores "
        "and its own jobs ask for them",
    )
    group.add_argument(
        "--period",
        type=_SPAN,
        default=usual.period,
        metavar="DURATION",
        help="how often the agent looks, with --arrivals (1m)",
    )
    group.add_argument(
        "--step",
        type=_SPAN,
        default=usual.step,
        metavar="DURATION",
        help="how often a policy that decides over time is asked (5m)",
    )
    group.add_argument(
        "--min-grace",
        type=_SPAN,
        default=usual.min_grace,
        metavar="DURATION",
        help="shortest time that site-default and site-least-waste let a pilot drain (5m)",
    )
    group.add_argument(
        "--while-draining",
        choices=WHILE_DRAINING,
        default=usual.while_draining,
        help="what pilots start when they were ordered to leave: see the reference pilot (%(default)s)",
    )
    group.add_argument(
        "--longest",
        type=_SPAN,
        metavar="DURATION",
        help="leave out jobs that ran longer (none): payloads are short then",
    )


def scenario_of(args: argparse.Namespace) -> Scenario:
    """Return the scenario by the options. Raises UsageError for what does not go together."""
    same = {name: getattr(args, name) for name in _AS_IN_SCENARIO.split()}
    site = site_settings(args.horizon, args.grace)
    return Scenario(
        **same,
        lease=float(args.lease),
        reclaimed=args.reclaim,
        period=float(args.period),
        step=float(args.step),
        min_grace=int(args.min_grace),
        site=site,
    )


def policies(text: str) -> tuple[str, ...]:
    """Parse names after commas, each once; the clairvoyant optimum, that all are held against, is always there."""
    names = list(dict.fromkeys(name.strip() for name in text.split(",")))
    for name in names:
        try:
            require_known(name)
        except UsageError as fault:
            raise argparse.ArgumentTypeError(str(fault)) from None
    return tuple(names if CLAIRVOYANT in names else [*names, CLAIRVOYANT])


def share(text: str) -> float:
    """Parse a share from 0 to 1 for argparse."""
    return number(0, 1)(text)


def _some_share(text: str) -> float:
    value = share(text)
    if not value:
        raise argparse.ArgumentTypeError(f"{text[:80]!r}: expected a share above 0, at most 1")
    return value


def _mix(text: str) -> tuple[tuple[int, float], ...]:
    found: dict[int, float] = {}
    for pair in text.split(","):
        size, _, part = pair.partition(":")
        try:
            cores, portion = whole(1, 1024)(size.strip()), number(0, 1)(part.strip())
        except argparse.ArgumentTypeError:
            portion = cores = 0
        if not portion or cores in found:
            raise argparse.ArgumentTypeError(
                f"{text[:80]!r}: expected a size from 1 to 1024 cores, each once, and its share: 8:0.5,64:0.5"
            )
        found[cores] = portion
    return tuple(found.items())
