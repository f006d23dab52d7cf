"""The budget of each room holds: the package grows only where as much is removed, or where an issue allows it."""

from __future__ import annotations

from pathlib import Path

import pytest

from house import ALLOWANCES, BUDGETS, LARGEST_SUM, code_lines, measured_rooms, modules, rooms_of

MODULES = set(modules())
SLACK = 20
"""A budget that is further above what its room has is lowered: what was removed is not to be filled again unseen."""
TABLE = "its budget in tests/support/house.py"


@pytest.fixture(scope="module")
def measured() -> dict[str, int]:
    return measured_rooms()


@pytest.mark.parametrize("room", BUDGETS)
def test_a_room_keeps_its_budget(room: str, measured: dict[str, int]) -> None:
    """It has no more code lines, and hardly fewer."""
    lines, budget = measured[room], BUDGETS[room].code_lines
    assert lines <= budget, (
        f"{room} has grown by {lines - budget} to {lines} code lines: remove as many of them, or raise {TABLE} in a "
        "commit that says what it removes elsewhere"
    )
    assert lines >= budget - SLACK, f"{room} has shrunk by {budget - lines} code lines: lower {TABLE} to {lines}"


def test_the_budgets_grow_by_allowances_alone() -> None:
    """A room whose budget is raised takes it from another, or from what an issue may add."""
    assert all(0 <= one.taken <= one.granted for one in ALLOWANCES.values())
    assert sum(one.code_lines for one in BUDGETS.values()) <= LARGEST_SUM + sum(
        one.taken for one in ALLOWANCES.values()
    )


def test_every_module_belongs_to_one_room() -> None:
    """None is counted twice or not at all."""
    assert {name: rooms_of(name) for name in MODULES if len(rooms_of(name)) != 1} == {}


def test_every_room_holds_what_is_there() -> None:
    """A folder that has gone keeps no place in the table."""
    there = MODULES | {name.rpartition(".")[0] for name in MODULES}
    assert {name for budget in BUDGETS.values() for name in budget.holds.split()} <= there


def test_code_lines_are_what_runs(tmp_path: Path) -> None:
    """Blanks, comments and docstrings are none; texts of two lines are two, also those that document an attribute."""
    module = tmp_path / "module.py"
    module.write_text(
        '"""A module.\n\nOf two lines.\n"""\n\n# why\nX = """one\ntwo"""\n"""What X is,\nand why."""\n\n\n'
        'class A:\n    """A class."""\n\n    def f(self) -> int:\n        """A function."""\n        return 1  # one\n'
    )
    assert code_lines(module) == 7
