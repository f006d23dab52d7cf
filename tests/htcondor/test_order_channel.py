"""What a node is told by a knob and a reconfig, and what is said of a refusal: a startd behind HTCondor's bindings."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, MutableMapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import classad2
import htcondor2
import pytest
from pytest_mock import MockerFixture

from drainwise.facts.errors import (
    ActionRefused,
    OrderUnanswered,
    PoolError,
    PoolUnreachable,
    RightsRefused,
    RunEnded,
)
from drainwise.htcondor.node import ORDERS, RETURN_ASKED, SECOND_SLOT, WITHDRAWN_SHOWN, WITHDRAWN_SHOWN_BEFORE
from drainwise.htcondor.node.order_list import ENDLESS, WITHDRAWN, deadline_of
from drainwise.htcondor.pool import collector, order_channel
from drainwise.htcondor.pool.knobs import KNOB, RETURN_KNOB, OrderEntry
from drainwise.htcondor.pool.order_channel import (
    ask_for_part,
    drain,
    end_drain,
    give_order,
    keep_room,
    knobs_of,
    withdraw_order,
)
from drainwise.pilotad.partial_return import PartialReturn
from drainwise.pool.abilities import KeptRoom
from drainwise.pool.amounts import Amounts

JOB, START = "access#1.0#1795249000", 1795249001
RUN, OTHER = f"{JOB}@{START}", "access#7.0#1795249000@1795249001"
DEADLINE = int(time.time()) + 3600
ORDER = OrderEntry(RUN, DEADLINE)
SLOT, NODE = "slot1_1@n1", "n1"
DROP_IN = "MaxJobRetirementTime = PilotReclaimDeadline ?: 86400"


class Startd:
    """One startd and what the collector shows of it, as far as orders go; with each reconfig what it was told counts.

    faults: of a write and of a reconfig, in words. dies: with which of these. others: what another agent writes right
    after each of our writes. after_reads: what happens after each of our reads of a knob that is set.
    lets_go_on: whether its job allows a retirement without end.
    """

    def __init__(self, name: str = NODE) -> None:
        self.slot: dict[str, Any] = {
            "Name": f"slot1_1@{name}",
            "Machine": name,
            "MyAddress": f"<{name}>",
            "Cpus": 8,
            "GlobalJobId": JOB,
            "JobStart": START,
            "State": "Claimed",
            "Activity": "Busy",
            "MachineMaxVacateTime": 30,
            "PilotVacateTime": 10,
            "RetirementTimeRemaining": 86_400,
            WITHDRAWN_SHOWN: False,
        }
        self.retirement = DROP_IN
        self.knobs = {"ENABLE_RUNTIME_CONFIG": "true", "SETTABLE_ATTRS_ADMINISTRATOR": f"{KNOB}, PILOT_RECLAIM_ROOM"}
        self.away, self.lets_go_on, self.allowed, self.dies = False, True, True, ""
        self.faults: dict[str, str] = {}
        self.others: Iterator[str] = iter(())
        self.after_reads: Iterator[Callable[[], None]] = iter(())
        self.reconfigs = 0

    def ad(self, *, is_asked_itself: bool) -> Any:
        """Its slot as an ad; the collector shows it also while the startd does not answer."""
        if is_asked_itself:
            self.answer()
        ad = classad2.ClassAd(self.slot)
        name, _, expression = self.retirement.partition(" = ")
        if expression:
            ad[name] = classad2.ExprTree(expression)
        return ad

    def answer(self, what: str = "") -> None:
        """Raise what it fails with."""
        self.away |= bool(what) and what == self.dies
        if self.away or what in self.faults:
            raise htcondor2.HTCondorException(self.faults.get(what, "timed out"))

    def reconfig(self) -> None:
        """Show the list of orders, and let its run retire or go on by it."""
        self.answer("reconfig")
        self.reconfigs += 1
        self.slot[ORDERS] = self.knobs.get(KNOB, "")
        deadline = deadline_of(RUN, self.slot[ORDERS])
        if deadline:
            self.slot |= {"Activity": "Retiring", "RetirementTimeRemaining": deadline - int(time.time())}
        elif deadline == WITHDRAWN and self.lets_go_on:
            self.slot["RetirementTimeRemaining"] = ENDLESS


class Knobs(MutableMapping[str, str]):
    """The configuration of a startd as `RemoteParam` has it."""

    def __init__(self, startd: Startd) -> None:
        self._startd = startd

    def __getitem__(self, name: str) -> str:
        self._startd.answer()
        value = self._startd.knobs[name]
        next(self._startd.after_reads, lambda: None)()
        return value

    def __setitem__(self, name: str, value: str) -> None:
        self._startd.answer("write")
        self._startd.knobs[name] = value
        self._startd.knobs[name] = next(self._startd.others, value)

    def __delitem__(self, name: str) -> None:
        raise NotImplementedError

    def __iter__(self) -> Iterator[str]:
        return iter(self._startd.knobs)

    def __len__(self) -> int:
        return len(self._startd.knobs)


Pool = Callable[..., None]


@pytest.fixture
def pool(mocker: MockerFixture) -> Pool:
    """HTCondor's bindings, by their signatures, over these startds; nothing is waited for."""
    mocker.patch.object(time, "sleep", autospec=True)
    mocker.patch.object(order_channel, "SHOWN_SECONDS", 0.01)

    def of(*startds: Startd) -> None:
        by_address = {one.slot["MyAddress"]: one for one in startds}

        def connect(collector: Any, pool: Any = None) -> None:
            collector.asked = startds if pool is None else (by_address[pool["MyAddress"]],)
            collector.is_startd = pool is not None

        def answer(collector: Any, kind: object, constraint: str | None, names: list[str]) -> list[Any]:
            assert kind is htcondor2.AdType.Startd
            ads = [one.ad(is_asked_itself=collector.is_startd) for one in collector.asked]
            return [
                classad2.ClassAd({name: ad.lookup(name) for name in names if name in ad})
                for ad in ads
                if constraint is None or classad2.ExprTree(constraint).eval(ad) is True
            ]

        mocker.patch.object(htcondor2.Collector, "__init__", autospec=True, side_effect=connect, return_value=None)
        mocker.patch.object(htcondor2.Collector, "query", autospec=True, side_effect=answer)
        mocker.patch(
            "htcondor2.RemoteParam",
            autospec=True,
            side_effect=lambda location: Knobs(by_address[location["MyAddress"]]),
        )

        def command(ad: Any, dc: object) -> None:
            assert dc is htcondor2.DaemonCommands.Reconfig
            by_address[ad["MyAddress"]].reconfig()

        def ping(location: str, authz: str) -> Any:
            startd = by_address[location]
            startd.answer()
            if authz == "ADMINISTRATOR" and not startd.allowed:
                raise htcondor2.HTCondorException("denied")
            return classad2.ClassAd({"MyRemoteUserName": "drainwise@pool"})

        def told(startd: Any, location: Any) -> None:
            startd.to = by_address[location["MyAddress"]]

        def drain_jobs(startd: Any, drain_type: object, on_completion: object, **more: str) -> str:
            assert (drain_type, on_completion) == (htcondor2.DrainType.Graceful, htcondor2.CompletionType.Nothing)
            startd.to.answer("drain")
            startd.to.slot |= {"Draining": True, "DrainReason": more["reason"]}
            return "1"

        def cancel(startd: Any, **_: object) -> None:
            startd.to.answer("cancel")
            startd.to.slot |= {"Draining": False}

        mocker.patch.object(htcondor2.Startd, "__init__", autospec=True, side_effect=told, return_value=None)
        mocker.patch.object(htcondor2.Startd, "drainJobs", autospec=True, side_effect=drain_jobs)
        mocker.patch.object(htcondor2.Startd, "cancelDrainJobs", autospec=True, side_effect=cancel)
        mocker.patch("htcondor2.send_command", autospec=True, side_effect=command)
        mocker.patch("htcondor2.ping", autospec=True, side_effect=ping)

    return of


def test_an_order_is_sent_once_the_caller_knows_and_shown_when_it_ends(pool: Pool) -> None:
    """Who is not answered after the first step cannot know what became of it: before it nothing is sent."""
    startd = Startd()
    startd.knobs[KNOB] = f"{OTHER}={DEADLINE - 60}"
    pool(startd)
    given = give_order(ORDER, SLOT, NODE)
    next(given)
    assert (startd.knobs[KNOB], startd.reconfigs) == (f"{OTHER}={DEADLINE - 60}", 0)
    assert list(given) == []
    assert (startd.slot[ORDERS], startd.reconfigs) == (f"{OTHER}={DEADLINE - 60} {RUN}={DEADLINE}", 1)


def test_an_order_is_given_as_whom_its_node_takes_orders_of(pool: Pool, mocker: MockerFixture) -> None:
    """From the question on root shows tokens that the startd takes: it comes before anything is read there."""
    startd, steps = Startd(), mocker.Mock()
    steps.attach_mock(mocker.spy(collector, "rights_at"), "rights_at")
    steps.attach_mock(mocker.spy(order_channel, "_value_of"), "_value_of")
    pool(startd)
    list(give_order(ORDER, SLOT, NODE))
    assert steps.mock_calls[0] == mocker.call.rights_at(f"<{NODE}>") and startd.knobs[KNOB] == str(ORDER)


def test_an_order_that_stands_is_not_sent_again(pool: Pool) -> None:
    startd = Startd()
    startd.knobs[KNOB] = str(ORDER)
    pool(startd)
    assert (list(give_order(ORDER, SLOT, NODE)), startd.reconfigs) == ([None], 0)


def with_facts(**facts: object) -> Startd:
    """A startd of which something else is true; what is no fact of its own is one of its slot."""
    startd = Startd()
    for name, value in facts.items():
        if hasattr(startd, name):
            setattr(startd, name, value)
        else:
            startd.slot[name] = value
    return startd


@pytest.mark.parametrize(
    ("facts", "fault", "said"),
    [
        pytest.param({"JobStart": START + 9}, RunEnded, "does not run on n1 any more", id="next run"),
        pytest.param({"Name": "slot1_2@n1"}, RunEnded, "knows no slot slot1_1@n1 on n1", id="slot gone"),
        pytest.param({"away": True}, PoolUnreachable, "timed out", id="away"),
        pytest.param({"retirement": "MaxJobRetirementTime = 0"}, ActionRefused, "at once", id="at once"),
        pytest.param({"retirement": ""}, ActionRefused, "install the drop-in", id="no drop-in"),
        pytest.param({"faults": {"write": "no"}, "allowed": False}, RightsRefused, "ALLOW_ADMIN", id="no rights"),
        pytest.param({"faults": {"write": "no"}}, RightsRefused, "next reboot will do", id="not enabled"),
        pytest.param({"dies": "write"}, PoolUnreachable, "does not answer", id="dies"),
        pytest.param({"faults": {"reconfig": "no"}}, OrderUnanswered, "and not the reconfig", id="no reconfig"),
    ],
)
def test_an_order_that_cannot_be_given_says_why(
    pool: Pool, facts: dict[str, object], fault: type[PoolError], said: str
) -> None:
    pool(startd := with_facts(**facts))
    with pytest.raises(PoolError, match=said) as raised:
        list(give_order(ORDER, SLOT, NODE))
    assert type(raised.value) is fault
    assert startd.reconfigs == 0 and (KNOB not in startd.knobs or fault is OrderUnanswered)


@pytest.mark.parametrize(("name", "value"), [("ENABLE_RUNTIME_CONFIG", "false"), ("SETTABLE_ATTRS_ADMINISTRATOR", "X")])
def test_a_refusal_names_the_knob_that_a_node_lacks(pool: Pool, name: str, value: str) -> None:
    startd = with_facts(faults={"write": "no"})
    startd.knobs[name] = value
    pool(startd)
    with pytest.raises(RightsRefused, match=name) as raised:
        list(give_order(ORDER, SLOT, NODE))
    assert raised.value.only == NODE


def test_a_vacate_needs_no_retirement(pool: Pool) -> None:
    """A deadline of now is met by every node."""
    startd = with_facts(retirement="MaxJobRetirementTime = 0")
    pool(startd)
    list(give_order(OrderEntry(RUN, int(time.time())), SLOT, NODE))
    assert startd.reconfigs == 1


@pytest.mark.parametrize(("overwritten", "is_kept"), [(4, True), (5, False)])
def test_an_order_that_another_agent_overwrites_is_written_anew(pool: Pool, overwritten: int, is_kept: bool) -> None:
    """It had read the list before we wrote it; five times is no chance any more."""
    startd = Startd()
    startd.others = iter([f"{OTHER}={DEADLINE}"] * overwritten)
    pool(startd)
    given = give_order(ORDER, SLOT, NODE)
    if is_kept:
        list(given)
        assert deadline_of(RUN, startd.knobs[KNOB]) == deadline_of(OTHER, startd.knobs[KNOB]) == DEADLINE
    else:
        with pytest.raises(OrderUnanswered, match="another agent"):
            list(given)


def test_an_order_that_another_agent_overwrites_a_moment_later_is_written_anew(pool: Pool) -> None:
    """It stood when it was read back: so it is read once more, after the longest that the other one takes."""
    startd, others = Startd(), iter([{KNOB: f"{OTHER}={DEADLINE}"}])
    pool(startd)

    def settle(seconds: float) -> None:
        assert seconds > order_channel._FRESH_SECONDS
        startd.knobs.update(next(others, {}))

    cast("Any", time.sleep).side_effect = settle
    list(give_order(ORDER, SLOT, NODE))
    assert deadline_of(RUN, startd.knobs[KNOB]) == deadline_of(OTHER, startd.knobs[KNOB]) == DEADLINE


def test_a_list_that_was_read_before_the_process_stood_still_is_read_again(pool: Pool, mocker: MockerFixture) -> None:
    """Another agent has written in the meantime: its order stays."""
    startd, clock = Startd(), [1000.0]
    startd.knobs[KNOB] = f"{OTHER}={DEADLINE}"
    pool(startd)
    mocker.patch.object(time, "monotonic", autospec=True, side_effect=lambda: clock[0])

    def stand_still() -> None:
        clock[0] += 1
        startd.knobs[KNOB] = f"{OTHER}={DEADLINE - 9}"

    startd.after_reads = iter([stand_still])
    list(give_order(ORDER, SLOT, NODE))
    assert startd.slot[ORDERS] == f"{OTHER}={DEADLINE - 9} {RUN}={DEADLINE}"


def ordered(**facts: object) -> Startd:
    """A startd whose run has the order."""
    startd = with_facts(**facts)
    startd.knobs[KNOB] = str(ORDER)
    return startd


@pytest.mark.parametrize(
    "facts",
    [
        pytest.param({}, id="retires without end"),
        pytest.param({"lets_go_on": False, "Activity": "Busy"}, id="works"),
        pytest.param({"lets_go_on": False, "Activity": "Retiring", "Draining": True}, id="drained by others"),
        pytest.param({WITHDRAWN_SHOWN: None, WITHDRAWN_SHOWN_BEFORE: False}, id="rendered by an earlier version"),
    ],
)
def test_a_withdrawn_order_stays_in_the_list_as_one(pool: Pool, facts: dict[str, object]) -> None:
    """So its run goes on, and nobody takes what the slot shows for forged."""
    startd = ordered(**{"Activity": "Retiring", **facts})
    pool(startd)
    assert list(withdraw_order(RUN, SLOT, NODE)) == [None]
    assert (startd.slot[ORDERS], startd.reconfigs) == (f"{RUN}={WITHDRAWN}", 1)


def test_a_withdrawal_ends_when_the_collector_shows_it(pool: Pool, mocker: MockerFixture) -> None:
    """As an order does: the next snapshot had better know."""
    startd = ordered(Activity="Retiring")
    pool(startd)
    shown = mocker.spy(order_channel, "await_collector")
    list(give_order(ORDER, SLOT, NODE))
    list(withdraw_order(RUN, SLOT, NODE))
    assert [one.args[4](f"{RUN}={WITHDRAWN}") for one in shown.call_args_list] == [False, True]


def test_a_job_that_allows_no_longer_retirement_has_its_order_again(pool: Pool) -> None:
    startd = ordered(Activity="Retiring", lets_go_on=False, RetirementTimeRemaining=3600)
    pool(startd)
    with pytest.raises(ActionRefused, match="the order stands"):
        list(withdraw_order(RUN, SLOT, NODE))
    assert (startd.slot[ORDERS], startd.reconfigs) == (str(ORDER), 2)


@pytest.mark.parametrize(
    ("facts", "fault", "said"),
    [
        pytest.param({"JobStart": START + 9}, RunEnded, "does not run on n1 any more", id="next run"),
        pytest.param({"State": "Preempting"}, ActionRefused, "too late", id="ends"),
        pytest.param({WITHDRAWN_SHOWN: None}, ActionRefused, "render it again", id="older drop-in"),
        pytest.param({"PilotVacateTime": 3590}, ActionRefused, "too late", id="claim's own time to end"),
        pytest.param({"MachineMaxVacateTime": 3590}, ActionRefused, "too late", id="machine's time to end"),
    ],
)
def test_an_order_that_cannot_be_withdrawn_stands(
    pool: Pool, facts: dict[str, object], fault: type[PoolError], said: str
) -> None:
    pool(startd := ordered(**facts))
    with pytest.raises(fault, match=said):
        list(withdraw_order(RUN, SLOT, NODE))
    assert (startd.knobs[KNOB], startd.reconfigs) == (str(ORDER), 0)


def test_a_run_without_an_order_has_none_to_withdraw(pool: Pool) -> None:
    """The same holds for one whose order was withdrawn before."""
    startd = Startd()
    pool(startd)
    for value in (f"{OTHER}={DEADLINE}", f"{RUN}={WITHDRAWN}"):
        startd.knobs[KNOB] = value
        assert (list(withdraw_order(RUN, SLOT, NODE)), startd.knobs[KNOB], startd.reconfigs) == ([], value, 0)


def test_a_slot_that_has_gone_meanwhile_hides_no_other_nodes_orders(pool: Pool) -> None:
    """A run that was just ordered may end before its startd is asked; a run in several slots has no slot's name."""
    startds = [Startd(f"n{number}") for number in (1, 2, 3)]
    for startd in startds:
        startd.knobs[KNOB] = f"{RUN}={DEADLINE}"
    startds[1].away = True
    pool(*startds)
    asked = {"n1": "slot1_1@n1 and 1 more", "n2": "slot1_1@n2", "n3": "slot1_1@n3"}
    assert knobs_of(asked) == {"n3": f"{RUN}={DEADLINE}"}


ROOM = KeptRoom("slot1@n1", NODE, 2, DEADLINE, Amounts(8, 1000), Amounts(16, 2000))


def test_a_room_is_written_once_and_counts_from_the_next_reconfig_on(pool: Pool, mocker: MockerFixture) -> None:
    startd, rights = Startd(), mocker.spy(collector, "rights_at")
    startd.slot["Name"] = ROOM.place
    pool(startd)
    room = replace(ROOM, until=int(time.time()) + 50)  # kept in any case until then, whenever it is written
    keep_room(room)
    rights.assert_called_once_with(f"<{NODE}>")  # from there on root shows tokens that the startd takes
    written = startd.knobs["PILOT_RECLAIM_ROOM"]
    assert "slot1@n1=" in written and written.endswith(f":{room.until}:8:1000:0:16:2000:0")
    startd.faults["write"] = "it is there already"
    keep_room(room)
    assert startd.reconfigs == 0


@pytest.mark.parametrize(
    ("facts", "fault"),
    [
        ({"faults": {"write": "no"}}, ActionRefused),
        ({"away": True}, PoolUnreachable),
        ({"dies": "write"}, PoolUnreachable),
        ({"Name": "slot1@other"}, RunEnded),
    ],
    ids=["refused", "away", "dies", "gone"],
)
def test_a_room_that_a_node_does_not_keep_is_told(pool: Pool, facts: dict[str, object], fault: type[PoolError]) -> None:
    pool(with_facts(**{"Name": ROOM.place, **facts}))
    with pytest.raises(PoolError) as raised:
        keep_room(ROOM)
    assert type(raised.value) is fault


def test_a_refusal_is_named_with_bindings_that_have_no_ping(
    pool: Pool, mocker: MockerFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of 24.0: what cannot be named would count as an order that nobody answered. Their first version has it."""

    class HTCondorIOError(Exception):
        pass

    class SecMan:
        def ping(self, ad: dict[str, str], what: str) -> dict[str, str]:
            assert ad == {"MyAddress": "<n1>"}
            if what == "ADMINISTRATOR":
                raise HTCondorIOError("denied")
            return {"MyRemoteUserName": "condor@password"}

    mocker.patch.dict(
        sys.modules,
        {
            "htcondor": SimpleNamespace(SecMan=SecMan, HTCondorIOError=HTCondorIOError),
            "classad": SimpleNamespace(ClassAd=dict),
        },
    )
    pool(with_facts(faults={"write": "no"}))
    monkeypatch.delattr(htcondor2, "ping")
    with pytest.raises(RightsRefused, match="ALLOW_ADMINISTRATOR"):
        list(give_order(ORDER, SLOT, NODE))


WISH = PartialReturn(5, None, 4)


@pytest.mark.parametrize(
    ("second", "wish", "fault"),
    [
        pytest.param(True, WISH, None, id="asked"),
        pytest.param(True, PartialReturn(8), "expected 0 to 7", id="all cores"),
        pytest.param(None, WISH, "was not restarted", id="without a second slot"),
    ],
)
def test_only_what_a_node_can_lend_is_asked_for(
    pool: Pool, second: bool | None, wish: PartialReturn, fault: str | None
) -> None:
    """A startd reads its slot types at its start alone."""
    startd = with_facts(**{SECOND_SLOT: second})
    pool(startd)
    given = ask_for_part(RUN, wish, SLOT, NODE)
    if fault is None:
        assert (list(given), startd.knobs["PILOT_RETURN"], startd.reconfigs) == ([None], f"{RUN}=5:0:4", 1)
    else:
        with pytest.raises(ActionRefused, match=fault):
            list(given)
        assert startd.reconfigs == 0


def test_a_run_that_has_ended_is_not_asked(pool: Pool) -> None:
    """Its successor in the slot has another name."""
    pool(with_facts(JobStart=START + 9))
    with pytest.raises(RunEnded):
        list(ask_for_part(RUN, WISH, SLOT, NODE))


# ---- draining ----


def test_a_node_is_drained_once_and_opened_again(pool: Pool) -> None:
    pool(startd := Startd())
    assert [drain(NODE, "drainwise-r1: new disks"), drain(NODE, "drainwise-r1: new disks")] == [True, False]
    assert (startd.slot["Draining"], startd.slot["DrainReason"]) == (True, "drainwise-r1: new disks")
    assert [end_drain(NODE), end_drain(NODE)] == [True, False]
    assert startd.slot["Draining"] is False


def test_a_drain_of_somebody_else_stays(pool: Pool) -> None:
    pool(startd := with_facts(Draining=True, DrainReason="by hand"))
    assert (drain(NODE, "drainwise-r1: new disks"), end_drain(NODE)) == (False, False)
    assert (startd.slot["Draining"], startd.slot["DrainReason"]) == (True, "by hand")


@pytest.mark.parametrize("opens", [False, True])
@pytest.mark.parametrize(
    ("facts", "fault", "said"),
    [
        pytest.param({"faults": {"drain": "busy", "cancel": "busy"}}, ActionRefused, "busy", id="refused"),
        pytest.param({"allowed": False}, RightsRefused, "ALLOW_ADMINISTRATOR", id="no rights"),
        pytest.param({"away": True}, PoolUnreachable, "timed out", id="away"),
        pytest.param({"Machine": "n2"}, PoolUnreachable, "knows no startd on n1", id="gone"),
    ],
)
def test_a_drain_that_cannot_be_says_why(
    pool: Pool, opens: bool, facts: dict[str, object], fault: type[PoolError], said: str
) -> None:
    drained = {"Draining": True, "DrainReason": "drainwise-r1"} if opens else {}
    pool(startd := with_facts(**drained, **facts))
    with pytest.raises(PoolError, match=said) as raised:
        end_drain(NODE) if opens else drain(NODE, "drainwise-r1: new disks")
    assert type(raised.value) is fault
    assert bool(startd.slot.get("Draining")) is opens


def test_nothing_is_asked_of_a_node_for_what_no_order_can_say() -> None:
    """Nobody is there to be asked."""
    for steps in (
        give_order(OrderEntry("no run", DEADLINE), SLOT, NODE),
        ask_for_part("no run", PartialReturn(1), SLOT, NODE),
    ):
        with pytest.raises(ActionRefused, match=r"cannot be (an order|asked of a run)"):
            next(steps)


def test_a_slot_that_does_not_say_how_long_it_vacates_takes_an_order_back(pool: Pool) -> None:
    startd = ordered(Activity="Retiring")
    for name in ("MachineMaxVacateTime", "PilotVacateTime"):
        del startd.slot[name]
    pool(startd)
    list(withdraw_order(RUN, SLOT, NODE))
    assert startd.slot[ORDERS] == f"{RUN}={WITHDRAWN}"


def test_what_was_ordered_is_waited_for_until_the_collector_shows_it(pool: Pool, mocker: MockerFixture) -> None:
    """Each order by its own attribute: also the one that stands again after a withdrawal in vain, and a wish."""
    startd = ordered(Activity="Retiring", lets_go_on=False, RetirementTimeRemaining=3600)
    startd.slot[SECOND_SLOT] = True
    pool(startd)
    shown = mocker.spy(order_channel, "await_collector")
    with pytest.raises(ActionRefused, match="the order stands"):
        list(withdraw_order(RUN, SLOT, NODE))
    startd.knobs["SETTABLE_ATTRS_ADMINISTRATOR"] += f", {RETURN_KNOB}"
    list(ask_for_part(RUN, PartialReturn(3), SLOT, NODE))
    stands, asked = (call.args for call in shown.call_args_list)
    assert stands[:4] == (RUN, SLOT, NODE, ORDERS) and stands[4](str(ORDER)) and not stands[4]("")
    assert asked[:4] == (RUN, SLOT, NODE, RETURN_ASKED)
    assert asked[4](f"{RUN}=3:0:1") and not asked[4](f"{RUN}=2:0:1") and not asked[4]("")


@pytest.mark.parametrize(
    ("looks", "number"),
    [
        (["", "", "set"], 3),
        ([None], 1),
        ([{"JobStart": START + 9}], 1),
        ([PoolUnreachable("gone")], 1),
        ([""] * 99, 6),
    ],
    ids=["late", "no slot", "next run", "silent", "never"],
)
def test_what_the_collector_shows_is_waited_for_as_long_as_it_may_take(
    mocker: MockerFixture, looks: list[object], number: int
) -> None:
    """It stands whatever is shown."""
    clock = [1000.0]

    def slept(seconds: float) -> None:
        clock[0] += seconds

    mocker.patch.object(time, "monotonic", autospec=True, side_effect=lambda: clock[0])
    mocker.patch.object(time, "sleep", autospec=True, side_effect=slept)
    mocker.patch.object(order_channel, "SHOWN_SECONDS", 0.9)
    run = {"GlobalJobId": JOB, "JobStart": START}
    ads = [
        {**run, **look} if isinstance(look, dict) else {**run, "Shown": look} if isinstance(look, str) else look
        for look in looks
    ]
    asked = mocker.patch.object(collector, "collector_slot", autospec=True, side_effect=ads)
    order_channel.await_collector(RUN, SLOT, NODE, "Shown", "set".__eq__)
    assert asked.call_count == number
    assert asked.call_args.args == (SLOT, NODE, ("GlobalJobId", "JobStart", "Shown"))


def test_a_slot_without_cores_can_return_none(pool: Pool) -> None:
    startd = Startd()
    del startd.slot["Cpus"]
    pool(startd)
    with pytest.raises(ActionRefused, match="1 of its 0 cores: expected 0 to 0"):
        next(ask_for_part(RUN, PartialReturn(1), SLOT, NODE))


def test_a_startd_that_hides_its_configuration_is_said(pool: Pool, mocker: MockerFixture) -> None:
    """Whoever gives the order may do so."""
    pool(with_facts(away=True))
    mocker.patch.object(collector, "rights_at", autospec=True)
    why = order_channel._why_refused(f"<{NODE}>", KNOB)
    assert why == ("the agent's identity may give orders, but the startd does not show its configuration: timed out")
