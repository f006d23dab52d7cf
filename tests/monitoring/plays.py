"""For each alert the case that it is for, played by an agent; and an agent for which none is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from drainwise.facts.errors import PoolUnreachable, RightsRefused
from drainwise.pilotad.observation import Observation
from drainwise.pool.amounts import amounts
from drainwise.pool.job_kinds import JobKind
from played_agent import BEGIN, Play, Series

HOUR = 60  # minutes
_HEADING = {"job": "drainwise", "instance": "a"}


@dataclass(frozen=True)
class Fires:
    """An alert that is not there at one minute, and fires at another with these labels and this summary."""

    alert: str
    quiet: int
    at: int
    severity: str
    summary: str
    labels: dict[str, str] = field(default_factory=lambda: dict(_HEADING))


@dataclass(frozen=True)
class Case:
    """A play, how it is prepared, and the alerts that fire in it; no other one does at these minutes.

    up: minutes for which Prometheus reaches the agent and those for which it does not, and then what is up beside it.
    """

    name: str
    minutes: int
    fires: tuple[Fires, ...]
    prepare: Callable[[Play], object]
    pilots: int = 4
    wanted: int = 0
    period: int = 5
    settings: dict[str, object] = field(default_factory=dict)
    never_up: bool = False
    down_after: int | None = None
    pair: bool = False

    def series(self, place: Path) -> Series:
        """What Prometheus scrapes."""
        if self.never_up:
            return {}
        play = Play(place, self.pilots, self.wanted, self.down_after or self.minutes, self.period, **self.settings)
        self.prepare(play)
        return play.run()


def with_(**labels: str) -> dict[str, str]:
    """The agent's labels and these."""
    return {**_HEADING, **labels}


def nothing(play: Play) -> None:
    """No preparation."""


def healthy(play: Play) -> None:
    """Now and then bob needs cores, and gets them."""
    for minute in (60, 400):
        play.at(minute, lambda: setattr(play.pool, "wanted", 16))


def silent(minute: int) -> Callable[[Play], object]:
    """The batch system answers no more from this minute on."""
    return lambda play: play.at(minute, lambda: play.pool.fail(PoolUnreachable("no answer"), "snapshot"))


def fails(method: str, minute: int = 0, wanted: int = 16) -> Callable[[Play], object]:
    """One cycle, in which bob waits, may not do this; a cycle later he has gone."""

    def prepare(play: Play) -> None:
        play.at(0, lambda: play.pool.fail(RightsRefused("not an administrator"), method))
        play.at(minute, lambda: setattr(play.pool, "wanted", wanted))
        play.at(minute + 5, lambda: setattr(play.pool, "wanted", 0))

    return prepare


def not_withdrawn(play: Play) -> None:
    """Pilots that do not end before their order is to be withdrawn, which is denied."""
    play.pool.ends = None
    fails("withdraw_order")(play)


def can_return(play: Play) -> None:
    """Pilots whose cores could come back in parts, and cannot be asked."""
    play.pool.change(can_return=7)
    play.pool.each = 1
    fails("ask_for_part", 30, wanted=4)(play)


def long_payloads(play: Play) -> None:
    """All pilots run payloads that end in two days, and each would lose hours by its end now."""
    play.pool.last_end = 2 * 86_400


def observed(play: Play) -> None:
    """The nodes tell that they see no payload in any pilot."""
    play.pool.change(seen=Observation("panda", BEGIN, 0, 0.0, 0, 5 * 3600), client="none")


def broken_promises(play: Play) -> None:
    """Each pilot says that it leaves soon, and is ended by the batch system with all that it ran."""
    play.pool.vacated, play.pool.ends = True, 1260


def refilled(play: Play) -> None:
    """Where a pilot goes alice's next one begins: bob gets nothing."""
    play.pool.begins, play.pool.ends = True, 60


def unplaced(play: Play) -> None:
    """bob's jobs ask for nine cores: no node has them."""
    play.pool.kinds = (JobKind("b:9c-1", "b", 2, amounts(9), frozenset()),)


def many(play: Play) -> None:
    """bob gets a little in each cycle, and waits for more."""
    play.pool.ends = 240


_NO_AGENT = "No agent tells its metrics: nobody gives cores back."
_FAIL = "The agent's cycles fail: it waits longer and longer between them."
_ORDERS = "Orders have failed in the last hour: denied."
CASES = (
    Case("a healthy agent", 12 * HOUR, (), healthy, pilots=8),
    Case(
        "no agent at all",
        30,
        (Fires("DrainwiseAgentAbsent", 9, 11, "critical", _NO_AGENT, {}),),
        nothing,
        never_up=True,
    ),
    Case(
        "an agent that has ended",
        40,
        (
            Fires("DrainwiseAgentDown", 12, 17, "critical", "Prometheus cannot reach the agent on a."),
            Fires("DrainwiseAgentAbsent", 18, 25, "critical", _NO_AGENT, {}),
        ),
        nothing,
        down_after=5,
    ),
    Case("one that stands by beside one that acts", 40, (), nothing, pair=True),
    Case(
        "a batch system that does not answer any more",
        50,
        (
            Fires("DrainwiseBackingOff", 23, 32, "warning", _FAIL, with_(state="backing_off")),
            Fires("DrainwiseNoDecision", 24, 30, "critical", "The agent has come to no decision for 24m 0s."),
        ),
        silent(10),
    ),
    Case(
        "a batch system that has never answered",
        40,
        (
            Fires("DrainwiseNoDecision", 19, 25, "critical", "The agent has come to no decision for 24m 0s."),
            Fires("DrainwiseBackingOff", 14, 25, "warning", _FAIL, with_(state="backing_off")),
        ),
        silent(0),
    ),
    Case(
        "a kill switch that stays",
        26 * HOUR,
        (
            Fires(
                "DrainwisePausedByKillSwitch",
                23 * HOUR,
                25 * HOUR,
                "info",
                "The kill switch has been there for a day: no order is given.",
                with_(state="paused_by_kill_switch"),
            ),
        ),
        lambda play: play.switch.touch(),
        period=10,
    ),
    Case(
        "orders that are denied in the first cycle alone",
        2 * HOUR,
        (Fires("DrainwiseOrdersFail", 100, 10, "warning", _ORDERS, with_(outcome="denied")),),
        fails("give_order"),
    ),
    Case(
        "orders that are denied for the first time after hours",
        4 * HOUR,
        (Fires("DrainwiseOrdersFail", 119, 130, "warning", _ORDERS, with_(outcome="denied")),),
        fails("give_order", 2 * HOUR),
    ),
    Case(
        "an order that cannot be withdrawn",
        40,
        (
            Fires(
                "DrainwiseWithdrawalsFail",
                4,
                20,
                "warning",
                "Orders could not be withdrawn in the last hour: denied.",
                with_(outcome="denied"),
            ),
        ),
        not_withdrawn,
    ),
    Case(
        "pilots that cannot be asked for parts",
        40,
        (
            Fires(
                "DrainwisePartsFail",
                29,
                34,
                "warning",
                "Pilots could not be asked for cores in the last hour: denied.",
                with_(outcome="denied"),
            ),
        ),
        can_return,
    ),
    Case(
        "pilots that nobody ends at their deadline",
        50,
        (Fires("DrainwiseOrdersOverdue", 35, 45, "warning", "2 pilots run on after the deadline of their order."),),
        lambda play: setattr(play.pool, "ends", None),
        wanted=16,
    ),
    Case(
        "pilots that are too young to go",
        7 * HOUR,
        (
            Fires(
                "DrainwiseNeedUnmet",
                350,
                370,
                "warning",
                "16 cores are owed to those who wait, and no pilot is ordered for them.",
            ),
        ),
        nothing,
        wanted=16,
        settings={"min_age": 1_000_000},
    ),
    Case(
        "an agent that waits within a long horizon for pilots that cost less",
        7 * HOUR,
        (),
        long_payloads,
        pilots=20,
        wanted=16,
        settings={"policy": "open-need", "horizon": 86_400},
    ),
    Case(
        "a limit that lets less go than is owed",
        7 * HOUR,
        (
            Fires(
                "DrainwiseNeedUnmet",
                350,
                370,
                "warning",
                "208 cores are owed to those who wait, and no pilot is ordered for them.",
            ),
            Fires(
                "DrainwiseLimitReached",
                350,
                370,
                "info",
                "[reclaim] max_cores_per_cycle keeps 208 cores from those who wait.",
                with_(limit="max_cores_per_cycle"),
            ),
        ),
        many,
        pilots=100,
        wanted=800,
        settings={"max_cores": 8, "max_cores_per_user_hour": 1_000_000},
    ),
    Case(
        "cores that those who wait cannot use",
        3 * HOUR,
        (
            Fires(
                "DrainwiseDemandPaused",
                20,
                HOUR,
                "warning",
                "1 accounts did not use cores that came back for them.",
            ),
        ),
        refilled,
        wanted=16,
        period=1,
    ),
    Case(
        "jobs that fit no node",
        3 * HOUR,
        (
            Fires(
                "DrainwiseJobsUnplaced",
                62,
                66,
                "warning",
                "2 waiting jobs of b do not start where they should.",
                {**_HEADING, "account": "b"},
            ),
        ),
        unplaced,
        wanted=0,
    ),
    Case(
        "nodes without the node's part",
        2 * HOUR,
        (Fires("DrainwiseNodesSilent", 59, 65, "warning", "On 4 nodes with pilots the node's part does not work."),),
        lambda play: play.pool.change(client="none"),
    ),
    Case(
        "nodes that take no order",
        2 * HOUR,
        (Fires("DrainwiseNodesClosed", 59, 65, "warning", "Pilots on 4 nodes can be given no order."),),
        lambda play: play.pool.change(cannot="its node takes no orders"),
    ),
    Case(
        "nodes that were forgotten by an upgrade",
        26 * HOUR,
        (Fires("DrainwiseNodeVersionsDiffer", 23 * HOUR, 25 * HOUR, "info", "Nodes run 2 versions of drainwise."),),
        lambda play: setattr(play.pool, "versions", (("1.0", 1), ("1.1", 3))),
        period=10,
    ),
    Case(
        "reports of what cannot be",
        2 * HOUR,
        (
            Fires(
                "DrainwiseReportsContradictory",
                59,
                65,
                "info",
                "4 pilots report what cannot be.",
                with_(standing="contradictory"),
            ),
        ),
        lambda play: play.pool.change(contradictory=True),
    ),
    Case(
        "pilots without any payload",
        3 * HOUR,
        (Fires("DrainwisePilotsStuck", 119, 125, "info", "4 pilots run without any payload."),),
        observed,
    ),
    Case(
        "pilots that do not keep what they say",
        6 * HOUR,
        (
            Fires(
                "DrainwiseWasteAbovePromise",
                60,
                5 * HOUR,
                "info",
                "Ended pilots wasted 79.8 core-h in a day, far more than was promised.",
            ),
        ),
        broken_promises,
        wanted=32,
    ),
)
