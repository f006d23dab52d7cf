"""The house rules of docs/architecture.md hold: each room's machine and rights, and who may know whom."""

from __future__ import annotations

import ast
import functools
import subprocess
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import fault_places
import house
from house import HOUSE, JOB, NEIGHBOURS, NODE, PACKAGE

SYSTEM_PYTHON = "/usr/bin/python3"
HOOKS = ["htcondor.node.prepare_hook", "htcondor.node.update_hook", "htcondor.node.startd_cron"]
HOOKS += ["slurm.node.prolog", "slurm.node.task_prolog", "slurm.node.epilog", "slurm.node.host_list", "features.host"]
TOO_EXPENSIVE = {"re", "json", "dataclasses", "typing", "enum", "pathlib", "logging", "argparse", "subprocess"}
TOO_EXPENSIVE |= {"collections", "functools", "contextlib", "tempfile", "configparser", "socket", "signal", "site"}
OPTIONAL = {"common.typed_table": "tomli", "page.html_page": "jinja2"}
"""A package that a module of a plain room uses where it is there."""


modules = functools.cache(house.modules)


def statements(block: ast.AST) -> Iterator[ast.stmt]:
    """The statements that run, wherever in a file they stand."""
    for field in ("body", "handlers", "cases", "orelse", "finalbody"):
        for node in getattr(block, field, ()):
            if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
                continue
            if isinstance(node, ast.stmt):
                yield node
            yield from statements(node)


@functools.cache
def parsed(path: Path) -> list[ast.stmt]:
    """The statements of a module that run."""
    return list(statements(ast.parse(path.read_text())))


@functools.cache
def imports(path: Path) -> set[str]:
    """The absolute names that a module imports at run time, wherever in the file."""
    found: set[str] = set()
    for node in parsed(path):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def room_of(module: str) -> str:
    """The folder of a module, by its name as `modules` gives it."""
    return module.rpartition(".")[0]


def known_modules(path: Path) -> set[str]:
    """The modules and packages of drainwise and its neighbours that a module imports."""
    found = {name.removeprefix("drainwise.") for name in imports(path)}
    return {name for name in found if name in modules() or f"{name}.__init__" in modules()}


def known_rooms(path: Path) -> set[str]:
    """The rooms whose modules a module imports; a package counts where something of its own is taken."""
    return {room_of(name) for name in known_modules(path) if name in modules()} - {""}


def arrows() -> dict[str, set[str]]:
    """For each room the others that its modules import."""
    found: dict[str, set[str]] = {}
    for name, path in modules().items():
        found.setdefault(room_of(name), set()).update(known_rooms(path) - {room_of(name)})
    return found


def test_every_folder_is_a_room_of_the_table() -> None:
    """A folder that the table does not list may know anything, and nobody knows where it runs."""
    assert set(arrows()) == set(HOUSE)


@pytest.mark.parametrize("room", HOUSE)
def test_a_room_knows_what_the_table_allows_and_no_permission_is_unused(room: str) -> None:
    """One line of the table is one room: what it imports is what it may import."""
    assert arrows()[room] == set(HOUSE[room].knows.split())


def test_the_core_imports_nothing_of_its_neighbours() -> None:
    """A machine without them runs pilots, the agent, and the commands of the reclaim loop."""
    core = {name: room for name, room in HOUSE.items() if not name.startswith(NEIGHBOURS)}
    assert {name for name, room in core.items() if not core.keys() >= set(room.knows.split())} == set()


def test_no_arrow_runs_back_up() -> None:
    """The rooms stand on floors: there is an order in which each knows only those before it."""
    TopologicalSorter({name: room.knows.split() for name, room in HOUSE.items()}).prepare()


def test_no_two_files_know_each_other() -> None:
    """Neither directly nor by others: no circle of modules."""
    TopologicalSorter(
        {name: {one for one in known_modules(path) if one in modules()} for name, path in modules().items()}
    ).prepare()


def test_node_rooms_know_node_rooms_alone() -> None:
    """What runs on a worker node imports the standard library, and rooms that need no more."""
    for name, room in HOUSE.items():
        if room.machine in {NODE, JOB}:
            assert room.plain
            assert all(HOUSE[one].plain for one in room.knows.split()), name


def test_plain_rooms_need_the_standard_library_alone() -> None:
    """They import nothing that a site would have to install on each of its nodes."""
    for name, path in modules().items():
        if HOUSE[room_of(name)].plain:
            others = {top.split(".")[0] for top in imports(path)} - {"drainwise", *NEIGHBOURS, *sys.stdlib_module_names}
            assert others <= {OPTIONAL.get(name)}, name


@pytest.mark.parametrize("hook", HOOKS)
def test_a_hook_starts_fast(hook: str) -> None:
    """Hooks, cron and what they import later need none of the modules that cost more than the hook's own work."""
    program = f"import sys; sys.path.append({str(PACKAGE.parent)!r}); import drainwise.{hook}; print(*sys.modules)"
    ran = subprocess.run([SYSTEM_PYTHON, "-I", "-S", "-B", "-c", program], capture_output=True, text=True, check=True)
    assert not TOO_EXPENSIVE & set(ran.stdout.split())


def test_faults_are_drawn_from_modules_that_are_there() -> None:
    """A module that is merged or renamed leaves no hole in what `scripts/faults` puts its faults into."""
    assert fault_places.modules(PACKAGE, fault_places.PLACES.split())
    with pytest.raises(ValueError, match=r"no module fits room/\*\.py: say where it is now"):
        fault_places.modules(PACKAGE, ["reclaim/*.py", "room/*.py"])
