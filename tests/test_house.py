"""The house rules of docs/architecture.md hold: who may know whom, and what a hook may import."""

from __future__ import annotations

import ast
import functools
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "plugins" / "drainwise"
WORKER_NODE = ("errors", "fact", "waste", "features", "pilotad", "node")
PLAIN = (*WORKER_NODE, "pilot", "estimate", "launch", "sge", "written_file", "foreign_tree")
HOOKS = ["htcondor.prepare_hook", "htcondor.update_hook", "htcondor.startd_cron"]
HOOKS += ["slurm.prolog", "slurm.task_prolog", "slurm.epilog", "slurm.host_list", "features.host"]
TOO_EXPENSIVE = {"re", "json", "dataclasses", "typing", "enum", "pathlib", "logging", "argparse", "subprocess"}
TOO_EXPENSIVE |= {"collections", "functools", "contextlib", "tempfile", "configparser", "socket", "signal", "site"}
PURE_PILOT = {"backlog", "decide", "estimates", "lease", "orders", "overrun", "payload", "settings", "workload"}
SYSTEM_PYTHON = "/usr/bin/python3"


@functools.cache
def modules() -> dict[str, Path]:
    """Every module of the package by its name below `drainwise`."""
    return {str(path.relative_to(PACKAGE))[:-3].replace("/", "."): path for path in PACKAGE.rglob("*.py")}


@functools.cache
def imports(path: Path) -> set[str]:
    """The absolute names that a module imports at run time, wherever in the file."""
    found: set[str] = set()
    tree = ast.parse(path.read_text())
    typing_only = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in typing_only:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def rooms(path: Path) -> set[str]:
    """The rooms of the package that a module knows."""
    return {name.split(".")[1] for name in imports(path) if name.startswith("drainwise.")}


BATCH_SYSTEMS = {"htcondor", "slurm", "sge", "local"}
DECIDES = {"reclaim", "journal", "agent"}
KNOWS_AT_MOST = {
    **{one: set(WORKER_NODE) for one in WORKER_NODE},
    "pilot": {*WORKER_NODE, "pilot", "launch"},
    "launch": {"errors", "launch", "written_file", "foreign_tree"},
    "simulate": {"simulate", "pilot", "reclaim", "estimate", "pool", "html_page", *WORKER_NODE} - {"node"},
}
KNOWS_NONE_OF = {
    **{one: (BATCH_SYSTEMS - {one}) | DECIDES for one in BATCH_SYSTEMS},
    "reclaim": BATCH_SYSTEMS | {"agent"},
    "journal": BATCH_SYSTEMS | {"agent"},
    "agent": BATCH_SYSTEMS,
    "estimate": BATCH_SYSTEMS | DECIDES,
}


def test_who_may_know_whom() -> None:
    """Batch systems do not know each other or `reclaim`, `reclaim` knows no batch system, and nothing imports `cli`."""
    for name, path in modules().items():
        room, known = name.split(".", 1)[0], rooms(path)
        assert known <= KNOWS_AT_MOST.get(room, known), name
        assert not known & KNOWS_NONE_OF.get(room, set()), name
        assert "cli" not in known or room in {"cli", "__main__"}, name
        if room == "pilot":
            choice = {one for one in imports(path) if one.startswith("drainwise.launch")}
            assert all(one.startswith("drainwise.launch.waiting") for one in choice), name
        if room == "estimate" and "launch" in known:
            assert name == "estimate.validation_launched"


def test_the_simulator_plays_what_runs_on_a_site() -> None:
    """It knows what is pure in the pilot; `cli` alone knows it, and one module of it draws."""
    for name, path in modules().items():
        if not name.startswith("simulate."):
            assert name.startswith("cli.") or "simulate" not in rooms(path), name
            continue
        found = imports(path)
        assert {part.split(".")[2] for part in found if part.startswith("drainwise.pilot.")} <= PURE_PILOT, name
        assert name == "simulate.plots" or not any(part.startswith("matplotlib") for part in found), name


def test_worker_node_code_needs_the_standard_library_alone() -> None:
    """What runs on a worker node imports nothing that a site would have to install there."""
    for name, path in modules().items():
        if name.split(".", 1)[0] in PLAIN:
            assert {top.split(".")[0] for top in imports(path)} <= {"drainwise", *sys.stdlib_module_names}, name


@pytest.mark.parametrize("hook", HOOKS)
def test_a_hook_starts_fast(hook: str) -> None:
    """Hooks, cron and what they import later need none of the modules that cost more than the hook's own work."""
    program = f"import sys; sys.path.append({str(PACKAGE.parent)!r}); import drainwise.{hook}; print(*sys.modules)"
    ran = subprocess.run([SYSTEM_PYTHON, "-I", "-S", "-B", "-c", program], capture_output=True, text=True, check=True)
    assert not TOO_EXPENSIVE & set(ran.stdout.split())
