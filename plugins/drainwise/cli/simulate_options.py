"""The options of `drainwise simulate`, each checked where it is read, and the scenario that they make."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable

from drainwise.cli.durations import seconds
from drainwise.pilot.settings import WHILE_DRAINING
from drainwise.simulate.policies import CLAIRVOYANT, POLICIES
from drainwise.simulate.scenario import BELIEFS, Scenario, site_settings

_MOST_CORES = 1_000_000


def add_site_options(parser: argparse.ArgumentParser) -> None:
    """The site and its pilots."""
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
        type=_span,
        default=usual.lease,
        metavar="S",
        help="how long a pilot may stay; jobs that ask for more are left out (4d)",
    )
    group.add_argument("--stuck", type=share, default=0.0, metavar="SHARE", help="pilots whose payloads hang (0)")
    group.add_argument(
        "--liars", type=share, default=0.0, metavar="SHARE", help="pilots that claim to lose everything when ended (0)"
    )
    group.add_argument("--silent", type=share, default=0.0, metavar="SHARE", help="pilots that report nothing (0)")


def add_demand_options(parser: argparse.ArgumentParser) -> None:
    """What is wanted back, when, and what is known then."""
    usual, group = Scenario(), parser.add_argument_group("what is taken back")
    group.add_argument(
        "--reclaim",
        type=_some_share,
        default=usual.reclaimed,
        metavar="SHARE",
        help="of the pilots' cores, at once (%(default)s)",
    )
    group.add_argument(
        "--moments",
        type=whole(1, 10_000),
        default=usual.moments,
        metavar="N",
        help="how often in each replication, each time from the untouched site (%(default)s)",
    )
    group.add_argument(
        "--horizon", type=_span, default=7200, metavar="S", help="within which the cores must be back (2h)"
    )
    group.add_argument("--grace", type=_span, default=86400, metavar="S", help="longest time to drain (1d)")
    group.add_argument(
        "--estimates",
        choices=BELIEFS,
        default=usual.beliefs,
        help="of run times: what jobs asked for, what their like took, or the truth (%(default)s)",
    )
    group.add_argument(
        "--error",
        type=number(0, 10),
        default=0.0,
        metavar="SIGMA",
        help="of a log-normal factor that makes them worse (0)",
    )
    group.add_argument(
        "--comers",
        default="",
        metavar="GROUP",
        help="no moments: this group of the log (user, where there is one group alone) is owed --reclaim of the cores "
        "and its own jobs ask for them",
    )
    group.add_argument(
        "--period", type=_span, default=usual.period, metavar="S", help="with --comers: how often the agent looks (1m)"
    )
    group.add_argument(
        "--while-draining",
        choices=WHILE_DRAINING,
        default=usual.while_draining,
        help="what pilots start when they were asked to leave: see the reference pilot (%(default)s)",
    )
    group.add_argument(
        "--longest", type=_span, metavar="S", help="leave out jobs that ran longer (none): payloads are short then"
    )


def scenario_of(args: argparse.Namespace) -> Scenario:
    """The scenario that was asked for. Raises UsageError for what does not go together."""
    return Scenario(
        cores=args.cores,
        mix=args.mix,
        lease=float(args.lease),
        reclaimed=args.reclaim,
        moments=args.moments,
        beliefs=args.estimates,
        error=args.error,
        stuck=args.stuck,
        liars=args.liars,
        silent=args.silent,
        while_draining=args.while_draining,
        comers=args.comers,
        period=float(args.period),
        site=site_settings(args.horizon, args.grace),
        seed=args.seed,
    )


def policies(text: str) -> tuple[str, ...]:
    """Names after commas, each once; the clairvoyant optimum, that all are held against, is always there."""
    names = list(dict.fromkeys(name.strip() for name in text.split(",")))
    for name in names:
        if name not in POLICIES:
            raise argparse.ArgumentTypeError(f"{name[:80]!r}: expected some of {', '.join(POLICIES)}")
    return tuple(names if CLAIRVOYANT in names else [*names, CLAIRVOYANT])


def whole(least: int, most: int) -> Callable[[str], int]:
    """For argparse: a whole number from `least` to `most`."""

    def read(text: str) -> int:
        if text.isascii() and text.isdigit() and len(text) < 12 and least <= int(text) <= most:
            return int(text)
        raise argparse.ArgumentTypeError(f"{text[:80]!r}: expected a whole number from {least} to {most}")

    return read


def number(least: float, most: float) -> Callable[[str], float]:
    """For argparse: a number from `least` to `most`."""

    def read(text: str) -> float:
        value = _float(text)
        if not least <= value <= most:  # a NaN is not
            raise argparse.ArgumentTypeError(f"{text[:80]!r}: expected a number from {least:g} to {most:g}")
        return value

    return read


def share(text: str) -> float:
    """For argparse: a share from 0 to 1."""
    return number(0, 1)(text)


def _some_share(text: str) -> float:
    value = share(text)
    if not value:
        raise argparse.ArgumentTypeError(f"{text[:80]!r}: expected a share above 0, at most 1")
    return value


def _span(text: str) -> int:
    found = seconds(text)
    if found < 1:
        raise argparse.ArgumentTypeError(f"{text[:80]!r}: expected a second or more, such as 30m or 2h")
    return found


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


def _float(text: str) -> float:
    try:
        return math.nan if "_" in text else float(text)
    except ValueError:
        return math.nan
