"""What two policies' ends really wasted, from what pilots and batch systems left behind."""

from __future__ import annotations

from typing import Any

import pytest

from scenario.comparison import Realised, Result, lines, orders, realised

ORDER: dict[str, Any] = {"kind": "kill", "expected_waste": 300, "kill_waste": 248, "used_cpu": 6.0, "cores": 8}
TAKEN = 1795280000


def account(**drain: float) -> dict[str, Any]:
    spent = {"lease": 1000.0, "useful": 400.0, "failed": 8.0, "lost": 160.0, "idle": 432.0}
    return {"core_seconds": spent, "drain": drain or None}


def test_a_pilots_own_account_comes_before_its_last_report() -> None:
    """Idle since it was told; what it stopped and what was ended with it is lost."""
    own = realised("a", ORDER, TAKEN, account(idle=12.0, lost=160.0), TAKEN + 50)
    assert own == Realised("a", "kill", 300, 12.0, 168.0, "its own account")
    assert own.waste == 180.0


@pytest.mark.parametrize("said", [None, account()])
def test_without_an_account_of_a_drain_the_last_report_goes_on_until_the_end(said: dict[str, Any] | None) -> None:
    """Six cores were lost for ten seconds more; a silent pilot loses all of its cores."""
    assert realised("a", ORDER, TAKEN, said, TAKEN + 10) == Realised("a", "kill", 300, 0.0, 308.0, "its last report")
    silent = realised("a", {**ORDER, "used_cpu": None}, TAKEN, said, TAKEN + 10)
    assert silent is not None and silent.lost == 328.0
    idle = realised("a", {**ORDER, "used_cpu": 0.0}, TAKEN, said, TAKEN + 10)
    assert idle is not None and idle.lost == 248.0


def test_an_end_that_is_not_known_is_no_waste_yet() -> None:
    assert realised("a", ORDER, TAKEN, None, None) is None


def test_the_table_has_every_pilot_and_the_sum_of_each_policy() -> None:
    pilots = (
        Realised("b", "leave", 5, 1.0, 2.0, "its own account", False),
        Realised("a", "kill", 7, 0.0, 300.0, "its last report", True),
    )
    result = Result("least-waste", pilots)
    _, first, second, both = lines([result])
    assert first.split() == ["least-waste", "a", "kill", "7", "300", "0", "300", "ended", "its", "last", "report"]
    assert second.split() == ["least-waste", "b", "leave", "5", "3", "1", "2", "left", "its", "own", "account"]
    assert both.split() == ["least-waste", "together", "12", "303"]
    assert result.chosen == {"a", "b"}


def test_orders_are_found_over_all_users() -> None:
    assert orders({"users": [{"orders": [1]}, {"orders": []}, {"orders": [2, 3]}]}) == [1, 2, 3]
