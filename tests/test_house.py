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
PLAIN = (*WORKER_NODE, "pilot", "estimate", "launch", "sge", "written_file")
HOOKS = ["htcondor.prepare_hook", "htcondor.update_hook", "htcondor.startd_cron"]
HOOKS += ["slurm.prolog", "slurm.task_prolog", "slurm.epilog", "slurm.host_list", "features.host"]
TOO_EXPENSIVE = {"re", "json", "dataclasses", "typing", "enum", "pathlib", "logging", "argparse", "subprocess"}
TOO_EXPENSIVE |= {"collections", "functools", "contextlib", "tempfile", "configparser", "socket", "signal", "site"}
PURE_PILOT = {"decide", "estimates", "lease", "orders", "overrun", "payload", "settings", "workload"}
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


@pytest.mark.parametrize("name", sorted(modules()))
def test_who_may_know_whom(name: str) -> None:
    """Batch systems do not know each other or `reclaim`, `reclaim` knows no batch system, and nothing imports `cli`."""
    room, known = name.split(".", 1)[0], rooms(modules()[name])
    batch_systems = {"htcondor", "slurm", "sge", "local"}
    if room not in {"cli", "__main__"}:
        assert "cli" not in known
    if room in batch_systems:
        assert not known & ((batch_systems - {room}) | {"reclaim", "journal", "agent"})
    if room in {"reclaim", "journal", "agent", "estimate"}:
        assert not known & batch_systems
    if room in {"reclaim", "journal"}:
        assert "agent" not in known
    if room in WORKER_NODE:
        assert known <= set(WORKER_NODE)
    if room == "pilot":
        assert known <= {*WORKER_NODE, "pilot", "launch"}
        assert all(
            "launch" not in one or one.startswith("drainwise.launch.waiting") for one in imports(modules()[name])
        )
    if room == "launch":
        assert known <= {"errors", "launch", "written_file"}
    if room == "estimate":
        assert not known & {"reclaim", "journal", "agent"}


@pytest.mark.parametrize("name", sorted(modules()))
def test_the_simulator_plays_what_runs_on_a_site(name: str) -> None:
    """It knows what is pure in pilot, agent and estimates; `cli` alone knows it, and one module of it draws."""
    room, found = name.split(".", 1)[0], imports(modules()[name])
    if room != "simulate":
        assert room == "cli" or "simulate" not in rooms(modules()[name])
        return
    assert rooms(modules()[name]) <= {"simulate", "pilot", "reclaim", "estimate", "pool", "html_page", *WORKER_NODE} - {
        "node"
    }
    assert {part.split(".")[2] for part in found if part.startswith("drainwise.pilot.")} <= PURE_PILOT
    assert name == "simulate.plots" or not any(part.startswith("matplotlib") for part in found)


@pytest.mark.parametrize("name", [name for name in sorted(modules()) if name.split(".")[0] in PLAIN])
def test_worker_node_code_needs_the_standard_library_alone(name: str) -> None:
    """What runs on a worker node imports nothing that a site would have to install there."""
    outside = {top.split(".")[0] for top in imports(modules()[name])} - {"drainwise"}
    assert outside <= set(sys.stdlib_module_names)


@pytest.mark.parametrize("hook", HOOKS)
def test_a_hook_starts_fast(hook: str) -> None:
    """Hooks, cron and what they import later need none of the modules that cost more than the hook's own work."""
    program = f"import sys; sys.path.append({str(PACKAGE.parent)!r}); import drainwise.{hook}; print(*sys.modules)"
    ran = subprocess.run([SYSTEM_PYTHON, "-I", "-S", "-B", "-c", program], capture_output=True, text=True, check=True)
    assert not TOO_EXPENSIVE & set(ran.stdout.split())
