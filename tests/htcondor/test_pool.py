"""HTCondor as a pool: when the collector is asked, and that nothing of a question is left behind."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pytest_mock import MockerFixture

from drainwise.facts.client_rules import ClientRules
from drainwise.facts.errors import OrderUnanswered, PoolError, PoolUnreachable, RunEnded, UsageError
from drainwise.htcondor.ads.query import htcondor2
from drainwise.htcondor.ads.values import Others
from drainwise.htcondor.pool import collector, order_channel
from drainwise.htcondor.pool import pool as module
from drainwise.htcondor.pool.knobs import OrderEntry
from drainwise.htcondor.pool.places import NO_MORE_LENT
from drainwise.htcondor.pool.pool import HTCondorPool
from drainwise.htcondor.pool.startds import KnownStartds
from drainwise.pilotad.partial_return import PartialReturn
from drainwise.pool.abilities import Closing
from drainwise.pool.facts import Ending, Pilot, Snapshot

NOW = 1795249000


@pytest.fixture
def questions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A collector that knows nothing: each question to it is a byte of this file."""
    file = tmp_path / "questions"

    def ask() -> Iterator[Others]:
        with file.open("ab") as stream:
            stream.write(b"?")
        yield Others()

    monkeypatch.setattr(collector, "pool_ads", ask)
    return file


def look(pool: HTCondorPool) -> None:
    with pytest.raises(PoolUnreachable, match="the collector knows no slots"):
        pool.snapshot(NOW)


def test_what_was_asked_ahead_is_one_snapshot(questions: Path) -> None:
    pool = HTCondorPool()
    pool.ask_ahead()
    look(pool)
    assert questions.read_bytes() == b"?"
    look(pool)
    assert questions.read_bytes() == b"??", "the next one is asked for anew"
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def test_what_was_asked_long_ago_is_no_answer(questions: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """HOSTILE 54: a decision stands on what is, not on what was."""
    monkeypatch.setattr(module, "_AHEAD_SECONDS", 0.0)
    pool = HTCondorPool()
    pool.ask_ahead()
    os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
    assert questions.read_bytes() == b"?"
    look(pool)
    assert questions.read_bytes() == b"??"
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def test_a_pool_that_changes_while_an_order_is_looked_up_is_still_seen(mocker: MockerFixture) -> None:
    """Whatever the look-up fails with: what is shown counts."""

    def gone(_: object) -> dict[str, str]:
        raise RunEnded("the collector knows no slot slot1_1@n1 on n1 any more")

    shown = Snapshot(NOW, (), ())
    mocker.patch.object(collector, "pool_ads", autospec=True, return_value=iter((Others(),)))
    mocker.patch.object(module, "snapshot_of", autospec=True, return_value=shown)
    mocker.patch.object(module, "to_be_asked", autospec=True, return_value={"n1": "slot1_1@n1"})
    mocker.patch.object(order_channel, "knobs_of", autospec=True, side_effect=gone)
    assert HTCondorPool().snapshot(NOW) is shown


@pytest.mark.parametrize("collects", [True, False])
def test_the_garbage_collector_is_afterwards_as_it_was(questions: Path, collects: bool) -> None:
    before = gc.isenabled()
    (gc.enable if collects else gc.disable)()
    try:
        look(HTCondorPool())
        assert gc.isenabled() is collects
    finally:
        (gc.enable if before else gc.disable)()


def test_the_bindings_are_imported_where_something_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """So the configuration that is read is that of the moment; those that are too old, or missing, are one line."""
    program = "import sys, drainwise.htcondor.pool.pool; print(sorted({'htcondor2', 'classad2'} & {*sys.modules}))"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"
    monkeypatch.delattr("htcondor2.HTCondorException")
    with pytest.raises(UsageError, match="bindings here are too old"):
        htcondor2.Collector()
    monkeypatch.setitem(sys.modules, "htcondor2", None)
    with pytest.raises(UsageError, match=r"not installed for .*htcondor2.*pip install 'drainwise\[htcondor\]'"):
        htcondor2.Collector()


def test_a_collector_that_never_answers_holds_nobody(
    in_a_silent_pool: Callable[[str], subprocess.CompletedProcess[str]],
) -> None:
    """HOSTILE 54: the real bindings against a real socket that takes connections and says nothing."""
    ran = in_a_silent_pool(
        "from drainwise.htcondor.pool.pool import HTCondorPool; HTCondorPool(snapshot_seconds=0.3).snapshot(0)"
    )
    assert ran.stderr.splitlines()[-1].endswith("PoolUnreachable: the collector did not answer within 0.3 s")


class Answers:
    """A pool whose questions are answered here: by `said`, or not at all after so many steps of an order."""

    def __init__(self, mocker: MockerFixture) -> None:
        self.asked: list[tuple[float, str]] = []
        self.steps: int | None = None
        self.pool = HTCondorPool(order_seconds=20.0, snapshot_seconds=5.0)

        def within(seconds: float, call: Callable[[], object], what: str) -> object:
            self.asked.append((seconds, what))
            return call()

        def several(seconds: float, call: Callable[[], Iterator[None]], what: str) -> Iterator[None]:
            self.asked.append((seconds, what))
            for step, _ in enumerate(call()):
                if step == self.steps:
                    break
                yield
            if self.steps is not None:
                raise PoolUnreachable("silent")

        def each(seconds: float, calls: Iterable[Callable[[], object]], what: str) -> Iterator[tuple[int, object]]:
            self.asked.append((seconds, what))
            for place, call in reversed([*enumerate(calls)]):
                try:
                    yield place, call()
                except PoolError as fault:
                    yield place, fault

        mocker.patch.object(module, "within", autospec=True, side_effect=within)
        mocker.patch.object(module, "several_within", autospec=True, side_effect=several)
        mocker.patch.object(module, "each_within", autospec=True, side_effect=each)


@pytest.fixture
def answers(mocker: MockerFixture) -> Answers:
    return Answers(mocker)


PILOT = Pilot("job@17", "slot1_1@n1", "n1", "atlas", "alice", 8, 17)
WISH = PartialReturn(3)


@pytest.mark.parametrize(
    ("name", "arguments", "sent"),
    [
        ("give_order", (PILOT, NOW, "why"), (OrderEntry("job@17", NOW), "slot1_1@n1", "n1")),
        ("withdraw_order", (PILOT, "why"), ("job@17", "slot1_1@n1", "n1")),
        ("ask_for_part", (PILOT, WISH, "why"), ("job@17", WISH, "slot1_1@n1", "n1")),
    ],
)
def test_an_order_is_sent_and_one_without_an_answer_may_stand(
    answers: Answers, mocker: MockerFixture, name: str, arguments: tuple[object, ...], sent: tuple[object, ...]
) -> None:
    """What fails before anything was sent was no order."""
    channel = mocker.patch.object(order_channel, name, autospec=True, side_effect=lambda *_: iter((None, None)))
    order = getattr(answers.pool, name)
    order(*arguments)
    channel.assert_called_once_with(*sent)
    assert answers.asked == [(20.0, "node n1")]
    for steps, fault in ((0, PoolUnreachable), (1, OrderUnanswered)):
        answers.steps = steps
        with pytest.raises(PoolError, match="silent") as raised:
            order(*arguments)
        assert (type(raised.value), getattr(raised.value, "only", "")) == (fault, "n1")
    channel.side_effect = RunEnded("gone")
    with pytest.raises(RunEnded):
        order(*arguments)


def test_rooms_and_the_agent_are_told_within_their_time(answers: Answers, mocker: MockerFixture) -> None:
    kept = mocker.patch.object(order_channel, "keep_room", autospec=True)
    shown = mocker.patch.object(collector, "show_agent", autospec=True)
    room, notice = mocker.Mock(node="n1"), mocker.Mock()
    answers.pool.keep_room(room)
    answers.pool.show_agent(notice)
    kept.assert_called_once_with(room)
    shown.assert_called_once_with(notice)
    assert answers.asked == [(10.0, "node n1"), (5.0, "the collector")]


def test_what_nodes_decided_about_lending_is_told_once(answers: Answers) -> None:
    notice = f"cores of alice are {NO_MORE_LENT} on n1"
    for notices, told in (
        ((notice, "other"), [notice]),
        ((notice,), []),
        ((notice, f"{notice}, n2"), [f"{notice}, n2"]),
    ):
        assert answers.pool.follow_up(Snapshot(NOW, (), (), notices=notices)) == told


def test_how_runs_ended_is_asked_of_each_node_and_who_ended_them_of_access_points(
    answers: Answers, mocker: MockerFixture
) -> None:
    """One without an answer holds up no other; nobody is asked for nothing, or when the time is over."""
    assert answers.pool.endings([], NOW) == {} and answers.asked == []
    runs = {name: Ending(f"{name}#1#1@2", NOW, vacated=True) for name in ("a", "b", "c")}
    nodes = [mocker.Mock(machine=f"n{number}") for number in (1, 2, 3)]
    places = mocker.patch.object(module, "places_of", autospec=True, return_value=nodes)
    mocker.patch.object(collector, "slots_with_orders", autospec=True, return_value=["slots"])
    history: dict[str, Ending | PoolError] = {"n1": runs["a"], "n2": PoolUnreachable("silent"), "n3": runs["c"]}

    def of(place: Any) -> list[Ending]:
        found = history[place.machine]
        if isinstance(found, PoolError):
            raise found
        return [found]

    mocker.patch.object(collector, "startd_history", autospec=True, side_effect=of)
    mocker.patch.object(module, "endings_in", side_effect=lambda found, _: {one.run: one for one in found})
    asked = mocker.patch.object(module, "in_question", autospec=True, side_effect=lambda found, _: list(found))

    def who(one: Ending, _: object = None) -> Ending:
        return Ending(one.run, one.ended, one.vacated, by_others=True)

    def jobs(name: str, own: list[Ending]) -> list[Ending]:
        if name == "a":
            raise PoolUnreachable("silent")
        return own

    at_end = mocker.patch.object(collector, "jobs_at_their_end", autospec=True, side_effect=jobs)
    mocker.patch.object(module, "with_who_ended", autospec=True, side_effect=who)
    found = answers.pool.endings(["a#1#1@2", "c#1#1@2"], NOW)
    assert found == {runs["a"].run: runs["a"], runs["c"].run: who(runs["c"])}
    places.assert_called_once_with(["slots"], ["a#1#1@2", "c#1#1@2"])
    assert [call.args[0] for call in at_end.call_args_list] == ["a", "c"]
    assert list(asked.call_args.args[0]) == [runs["a"], runs["c"]] and asked.call_args.args[1] is nodes
    assert [what for _, what in answers.asked] == [
        "the collector",
        *(f"node n{number}" for number in (1, 2, 3)),
        "access point a",
        "access point c",
    ]
    assert all(0 < seconds <= 8 for seconds, _ in answers.asked)
    answers.asked.clear()
    mocker.patch.object(module, "HISTORY_SECONDS", -1.0)
    assert answers.pool.endings(["a#1#1@2"], NOW) == {}
    assert [what for _, what in answers.asked] == ["the collector"]


def test_the_cores_of_those_who_ended_need_every_nodes_answer(answers: Answers, mocker: MockerFixture) -> None:
    there = mocker.patch.object(collector, "ended_there", autospec=True, side_effect=lambda node, since: [node, since])
    mocker.patch.object(
        module, "ended_since", side_effect=lambda found, account, since: [(since, NOW, 4 if account == "atlas" else 0)]
    )
    assert answers.pool.cores_of_ended("atlas", ["n1", "n2"], NOW - 9, NOW) == 8
    assert [call.args for call in there.call_args_list] == [("n2", NOW - 9), ("n1", NOW - 9)]
    there.side_effect = PoolUnreachable("silent")
    with pytest.raises(PoolUnreachable, match="silent"):
        answers.pool.cores_of_ended("atlas", ["n1"], NOW - 9, NOW)


def test_nodes_are_closed_and_opened_and_what_was_done_is_told(answers: Answers, mocker: MockerFixture) -> None:
    """What fails is told to nobody where something else was done, and tried again."""
    drain = mocker.patch.object(order_channel, "drain", autospec=True, return_value=True)
    end = mocker.patch.object(order_channel, "end_drain", autospec=True, return_value=True)
    request = Closing("r1", frozenset({"n1", "n2"}), NOW, "new disks")
    answers.pool._drained = {"n3": "drainwise-r0: done", "n4": "by hand"}
    mocker.patch.object(KnownStartds, "nodes", frozenset({"n1", "n2", "n3"}))
    told = [f"n{node} is drained: it starts no job until r1 is cancelled" for node in (1, 2)]
    opened = "the drain of n3 is cancelled: it takes jobs again"
    assert answers.pool.close_nodes([request], Snapshot(NOW, (), ()), NOW) == [*told, opened]
    assert [call.args for call in drain.call_args_list] == [(node, "drainwise-r1: new disks") for node in ("n2", "n1")]
    end.assert_called_once_with("n3")
    end.return_value, drain.side_effect = False, [PoolUnreachable("silent"), True]
    assert answers.pool.close_nodes([request], Snapshot(NOW, (), ()), NOW) == told[:1]
    drain.side_effect = PoolUnreachable("silent")
    with pytest.raises(PoolUnreachable):
        answers.pool.close_nodes([request], Snapshot(NOW, (), ()), NOW)
    assert answers.pool.close_nodes([request], Snapshot(NOW, (), ()), NOW - 1) == []


def test_what_is_seen_is_the_answer_where_no_node_must_be_asked(mocker: MockerFixture) -> None:
    seen = Snapshot(NOW, (), ())
    mocker.patch.object(collector, "pool_ads", autospec=True, return_value=iter((Others(),)))
    made = mocker.patch.object(module, "snapshot_of", autospec=True, return_value=seen)
    mocker.patch.object(module, "to_be_asked", autospec=True, return_value={})
    assert HTCondorPool().snapshot(NOW) is seen
    assert isinstance(made.call_args.args[5], ClientRules)


def test_access_points_are_asked_as_long_as_there_is_time(answers: Answers) -> None:
    """By themselves, for a part of it, and for who ended a run only until its end."""
    ended = Ending("a#1#1@2", NOW, vacated=True)
    assert answers.pool._with_who_ended([ended], 0.0) == {ended.run: ended}
    assert answers.asked == []


def test_what_waits_is_asked_for_within_a_part_of_the_time(mocker: MockerFixture) -> None:
    asked = mocker.patch("drainwise.htcondor.demand.ask.ask_demand", autospec=True)
    assert list(module._ask_demand(10.0)) == [asked.return_value]
    asked.assert_called_once_with(3.0)
