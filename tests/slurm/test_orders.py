"""The reasons of orders that are recorded, and what a record says of a lease, which is given back by it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.common.bounded_command import Running
from drainwise.facts.errors import ActionRefused, OrderUnanswered, PoolError, PoolUnreachable
from drainwise.slurm.jobs.commands import SlurmCommands
from drainwise.slurm.pool import orders as orders_module
from drainwise.slurm.pool.orders import SlurmOrders, granted_in, plain
from made_clock import MadeClock

T0 = 1795270000


@given(st.text())
def test_a_reason_is_plain_words(text: str) -> None:
    """HOSTILE 41 to 45: no line break, quote, sign of a shell, or what sacctmgr would take for another setting."""
    words = plain(text)
    assert words.isascii()
    assert words == "" or words.isprintable()
    assert not set(words) & set("\"'\\|=`$\n\r\t")


@pytest.mark.parametrize(
    ("comment", "granted"),
    [
        (f"drainwise: asked to be gone by 1795271000 (lease of 12_3@{T0} until 1795290000): bob waits", (1795290000,)),
        (f"drainwise: asked to be gone by 1795271000 (lease of 12_3@{T0} until none): bob waits", (None,)),
        (f"drainwise: asked to be gone by 1795271000 (lease of 12_3@{T0 + 1} until 1795290000): bob waits", None),
        (f"drainwise: asked to be gone by 1795271000 (lease of 12_4@{T0} until 1795290000): bob waits", None),
        (f"x drainwise: asked to be gone by 1795271000 (lease of 12_3@{T0} until 1795290000): bob waits", None),
        (f"drainwise: ordered to end by 1795271000 (lease of 12_3@{T0} until none): bob waits", (None,)),
        ("drainwise: ordered to end by 1795271000: bob waits", None),
        (f"drainwise: order withdrawn: x (lease of 12_3@{T0} until 1795290000)", None),
        ("", None),
    ],
)
def test_what_a_lease_was_is_read_of_that_run_alone(comment: str, granted: tuple[int | None] | None) -> None:
    assert granted_in(comment, f"12_3@{T0}", 1795271000) == granted
    assert granted_in(plain(comment), f"12_3@{T0}", 1795271000) == granted


@pytest.mark.parametrize(("end", "granted"), [(1795270999, None), (1795271000, (None,)), (1795271001, (None,))])
def test_who_shortened_a_lease_after_us_is_not_overruled(end: int, granted: tuple[int | None] | None) -> None:
    """An order is withdrawn, not what an administrator has decided since."""
    comment = f"drainwise: asked to be gone by 1795271000 (lease of 17@{T0} until none): bob waits"
    assert granted_in(comment, f"17@{T0}", end) == granted


class RecordedCommands(SlurmCommands):
    """One running job whose lease an order has changed, and its accounting record."""

    def __init__(self, end: int, limit: str, record: str) -> None:
        super().__init__()
        self.end, self.limit, self.record = end, limit, record
        self.given: list[str] = []
        self.sacct_script = ""
        self.sacctmgr_faults: list[PoolError] = []

    def start(self, name: str, *_: str, **__: object) -> Running:
        values = ("12", "12", "N/A", "0", "RUNNING", T0, self.end, "1", "1", "1", "0", "5", self.limit)
        line = "".join(f"{value}|" for value in values)
        if name == "sacct" and self.sacct_script:
            return Running(["/bin/sh", "-c", self.sacct_script], {}, 0.2)
        said = {"squeue": line, "sacct": self.record}[name]
        return Running(["/bin/echo", said], {}, 5.0)

    def order(self, name: str, *arguments: str, stdin: str = "") -> None:
        self.given.append(f"{name} {arguments[-1]}")
        if name == "sacctmgr" and self.sacctmgr_faults:
            raise self.sacctmgr_faults.pop(0)
        if arguments[-1].startswith("EndTime=uts"):
            self.end = int(arguments[-1][11:])


@pytest.mark.parametrize("is_ours", [True, False])
def test_a_lease_that_was_suspended_before_it_was_shortened_is_given_back(is_ours: bool) -> None:
    """Ten minutes later than its time limit says it ended before; so it does not look shortened by that."""
    granted, ordered = T0 + 36_600, T0 + 29_399
    record = f"drainwise: ordered to end by {ordered} (lease of 12@{T0} until {granted}): wanted"
    commands = RecordedCommands(ordered, "8:01:00", record if is_ours else "")
    after = SlurmOrders(commands).withdraw(f"12@{T0}", "not wanted")
    assert after.end == (granted if is_ours else ordered)
    assert bool(commands.given) == is_ours


REFUSED = "echo 'sacct: error: Sending PersistInit msg: Connection refused' >&2; exit 1"


@pytest.mark.parametrize("script", ["exec sleep 60", REFUSED])
def test_an_accounting_that_does_not_answer_is_asked_again_later(script: str) -> None:
    """The order stands meanwhile, by a fault of this run alone: a refusal would be for good."""
    ordered = T0 + 29_399
    commands = RecordedCommands(
        ordered, "8:10:00", f"drainwise: ordered to end by {ordered} (lease of 12@{T0} until {T0 + 36_000})"
    )
    commands.sacct_script = script
    with pytest.raises(PoolUnreachable, match="stands until the accounting answers: s") as fault:
        SlurmOrders(commands).withdraw(f"12@{T0}", "not wanted")
    assert (fault.value.only, commands.given) == (f"12@{T0}", [])
    commands.sacct_script = ""
    SlurmOrders(commands).withdraw(f"12@{T0}", "not wanted")
    assert (commands.end, commands.given[0]) == (T0 + 36_000, "scontrol TimeLimit=600")


@pytest.mark.parametrize("script", ["exec sleep 60", REFUSED])
def test_a_second_order_keeps_what_the_lease_was_though_the_accounting_does_not_answer(script: str) -> None:
    """A record that cannot be read is not overwritten by the lease as the first order left it."""
    commands = RecordedCommands(
        T0 + 29_399, "8:10:00", f"drainwise: ordered to end by {T0 + 29_399} (lease of 12@{T0} …)"
    )
    commands.sacct_script = script
    after = SlurmOrders(commands).shorten(f"12@{T0}", T0 + 20_001, "wanted")
    assert (after.end, commands.given) == (T0 + 20_001, [f"scontrol EndTime=uts{T0 + 20_001}"])


def test_without_accounting_an_order_cannot_be_withdrawn() -> None:
    commands = RecordedCommands(T0 + 29_399, "8:10:00", "")
    commands.sacct_script = "echo 'Slurm accounting storage is disabled' >&2; exit 1"
    with pytest.raises(ActionRefused, match="nobody knows what its lease was"):
        SlurmOrders(commands).withdraw(f"12@{T0}", "not wanted")


NO_RECORD = ActionRefused("sacctmgr refused: 1: Request didn't affect anything")


@pytest.mark.parametrize("fault", [OrderUnanswered("sacctmgr did not answer within 5 s"), NO_RECORD])
def test_an_order_waits_for_its_record_but_not_again_when_that_was_in_vain(
    fault: PoolError, monkeypatch: pytest.MonkeyPatch
) -> None:
    """slurmctld that has lost slurmdbd reports a start up to twenty seconds after that is back."""
    clock = MadeClock(1000.0)
    monkeypatch.setattr(orders_module, "time", clock)

    def records(missing: int) -> int:
        """How often an order tries to write its record, of which `missing` tries fail."""
        commands.given, commands.sacctmgr_faults, commands.end = [], [fault] * missing, T0 + 36_000
        orders.shorten(f"12@{T0}", T0 + 20_001, "wanted")
        return [given.partition(" ")[0] for given in commands.given].count("sacctmgr")

    commands = RecordedCommands(T0 + 36_000, "10:00:00", "")
    orders = SlurmOrders(commands)
    assert records(40) == 41
    assert commands.given[-2].startswith("sacctmgr SystemComment=drainwise: ordered to end by"), "first the record"
    assert 40 < records(1000) < 80
    assert records(1) == 1
    clock.now += 600
    assert records(1) == 2
