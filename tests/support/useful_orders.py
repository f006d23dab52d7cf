"""Two plays of useful orders, the same on each batch system: alice has four pilots of 8 cores, bob comes."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Stage:
    """A pool on which the plays are given.

    submit: a user's job of so many cores. running: a user's running jobs. command: runs drainwise with these words.
    """

    submit: Callable[..., object]
    running: Callable[[str], Collection[object]]
    command: Callable[..., str]
    wait_for: Callable[[Callable[[], bool], float, str], object]
    deadline_error: type[Exception]

    def cycles(self, seconds: float, stop: Callable[[Any], object]) -> list[Any]:
        """Run single cycles that act, as cron starts them, until `stop` is true of one; return what each decided."""
        done: list[Any] = []

        def cycle() -> bool:
            done.append(json.loads(self.command("reclaim", "--once", "--act", "--json")))
            return bool(stop(done[-1]))

        try:
            self.wait_for(cycle, seconds, "the end of the cycles")
        except self.deadline_error as error:
            raise self.deadline_error(f"{error}\n{_told(done, 'summary', 'acts', 'cores')}") from None
        return done


def asked(cycle: Any) -> int:
    """Return how many orders a cycle gave."""
    return sum(act["outcome"] == "done" for act in cycle["acts"])


def give_a_large_pilot_for_a_small_job(stage: Stage) -> None:
    """bob wants 4 cores and uses none of his share: a pilot of 8 goes, and his next job takes the rest."""
    stage.submit("bob", 4)
    done = stage.cycles(60, lambda _: stage.running("bob"))
    [first] = [one for one in done if asked(one)]
    assert first["summary"].startswith("1 pilot gives back 8 cores: room for 1 of 1 waiting job")
    stage.submit("bob", 4)
    later = stage.cycles(60, lambda _: len(stage.running("bob")) == 2)
    assert sum(map(asked, later)) == 0
    assert len(stage.running("alice")) == 3


def pause_the_demand_of_a_job_that_cannot_start(
    stage: Stage, account: str, cores: int, clear: Callable[[], object] = lambda: None
) -> None:
    """bob's job of 8 cores waits and cannot start: two pilots go for it, then none; his next, of `cores`, is served.

    account: whose demand is paused. clear: is called before the next job comes.
    """
    done = stage.cycles(120, lambda cycle: cycle.get("paused_demand"))
    assert sum(map(asked, done)) == 2, _told(done, "taken", "summary", "acts", "cores")
    [paused] = done[-1]["paused_demand"]
    assert (paused["account"], paused["cores"], paused["failed"]) == (account, 8.0, 2)
    quiet = iter(range(4))
    after = stage.cycles(60, lambda _: next(quiet) == 3)
    assert [asked(cycle) for cycle in after] == [0, 0, 0, 0]
    assert after[-1]["summary"] == "only demand that is paused waits: nothing to give back"
    for command in ("plan", "status"):
        assert f"{account} waits for 8 cores that do not count from" in stage.command(command)
    clear()
    before = len(stage.running("bob"))
    stage.submit("bob", cores)
    served = stage.cycles(60, lambda _: len(stage.running("bob")) > before)
    assert sum(map(asked, served)) == 1


def use_room_that_comes_back_in_pieces(stage: Stage, end: Callable[[Any], object], *options: str) -> None:
    """bob's job of 8 cores waits for the room of two pilots of 4. One of them leaves well before the other.

    end: ends the pilot of an order. options: of bob's job. Pilots of alice's wait, too; none starts in the first piece.
    """
    stage.submit("bob", 8, *options)
    [first] = [one for one in stage.cycles(60, asked) if asked(one)]
    orders = [order for user in first["users"] for order in user["orders"]]
    [node] = {order["node"] for order in orders}
    assert len(orders) == 2
    end(orders[0])
    end_of_room = max(order["deadline"] for order in orders)
    later = stage.cycles(150, lambda _: stage.running("bob"))
    assert set(stage.running("bob")) == {node}
    assert not any(map(asked, later)), _told(later, "taken", "summary", "acts", "cores")
    assert later[-1]["taken"] - end_of_room < 40, "it started in this room and not in another one"


def _told(cycles: list[Any], *names: str) -> list[tuple[object, ...]]:
    return [tuple(one[name] for name in names) for one in cycles]
