"""The oldest numpy, jinja2 and prometheus_client that the package allows, on Python 3.9: what uses them passes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from clean_machine import CleanMachine, wheels_for
from package_build.clone import ROOT
from real_daemons.furnish import copy_tree
from typed_page import unpack_wheels

pytestmark = [pytest.mark.daemons, pytest.mark.in_turn("installed", "floors")]

NAMES = ("jinja2", "numpy", "prometheus-client")
# jinja2 2.11 needs a markupsafe of its time; the last three pytest needs before Python 3.11.
BESIDE = (
    "markupsafe<2.1",
    "pytest<9.2",
    "pytest-timeout>=2.1",
    "pytest-mock>=3.3",
    "hypothesis>=6.80",
    "exceptiongroup",
    "tomli",
    "typing-extensions",
)
PARTS = ("plugins", "scripts", "tests", "docs", "condor_config.d", "slurm", "systemd", "prologs", "pyproject.toml")
TESTS = (
    *("tests/room/test_room.py", "tests/reclaim/test_policy.py", "tests/reclaim/test_whole_plans.py"),
    *("tests/reclaim/test_threshold.py", "tests/simulate/test_waiting.py"),
    "tests/simulate/test_engine.py::test_the_same_seed_has_the_same_outcome",
    *("tests/agent/test_metrics.py", "tests/slurm/test_render.py", "tests/siteconfig/test_node_kinds.py"),
)
VERSIONS = "import jinja2, numpy, sys; print(*sys.version_info[:2], jinja2.__version__, numpy.__version__)"


def floors() -> dict[str, str]:
    """By name the oldest version that pyproject.toml allows: one, wherever it stands."""
    text = Path(ROOT, "pyproject.toml").read_text()
    found = {name: set(re.findall(rf'"{name}>=([\d.]+)"', text)) for name in NAMES}
    return {name: version for name, [version] in found.items()}


def test_the_package_asks_for_the_same() -> None:
    control = Path(ROOT, "packaging", "debian", "control").read_text()
    assert {name: re.findall(rf"python3-{name} \(>= (?:1:)?([\d.]+)\)", control) for name in NAMES} == {
        name: [version] for name, version in floors().items()
    }


def test_what_uses_them_passes() -> None:
    oldest = floors()
    wheels = wheels_for("3.9", (*(f"{name}=={version}" for name, version in oldest.items()), *BESIDE))
    with CleanMachine("bullseye") as machine:
        names = [path.name.partition("-")[0] for path in Path(wheels).iterdir()]
        unpack_wheels(wheels, names, f"{machine.root}/usr/local/lib/python3.9/dist-packages")
        for part in PARTS:
            copy_tree(machine.root, f"{ROOT}/{part}", f"/srv/clone/{part}", 0)
        shown = machine.run(["python3", "-c", VERSIONS]).stdout.split()
        assert shown == ["3", "9", *(f"{oldest[name]}.0" for name in ("jinja2", "numpy"))]
        command = ["python3", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not daemons", *TESTS]
        ran = machine.run(["sh", "-c", 'cd /srv/clone && exec "$@"', "sh", *command], check=False, timeout=1800)
        assert ran.returncode == 0, ran.stdout[-8000:] + ran.stderr[-2000:]
