"""`scripts/faults`: which faults it draws, and what it says of them, in a tree of its own."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import fault_tests
from fault_places import drawn, faults_of

SCRIPTS = Path(fault_tests.__file__).parent
pytestmark = pytest.mark.daemons  # it takes its time
CONFIGURATION = "[tool.pytest.ini_options]\npythonpath = ['plugins']\nmarkers = ['daemons: slow']\n"
CONFIGURATION += "[tool.coverage.run]\nbranch = true\nsource_pkgs = ['drainwise']\n"
MODULE = "LARGEST = 5\n\n\ndef sum_to(last):\n    found = 0\n"
MODULE += "    while last > 0:\n        found += last\n        last -= 1\n    return found\n"
TESTS = "from drainwise.reclaim.sums import sum_to\n\ndef test_three():\n    assert sum_to(3) == 6\n\n"
TESTS += "def test_that_fails_anyhow():\n    assert sum_to(3) == 7\n"
SUMS = "plugins/drainwise/reclaim/sums.py"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A package of one module with its tests, one of which fails anyhow."""
    files = {
        "pyproject.toml": CONFIGURATION,
        SUMS: MODULE,
        "plugins/drainwise/__init__.py": "",
        "tests/reclaim/test_sums.py": TESTS,
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "scripts").mkdir()
    for script in SCRIPTS.glob("fault*"):
        shutil.copy(script, tmp_path / "scripts")
    return tmp_path


def listed(path: Path, source: str) -> list[str]:
    path.write_text(source)
    return [str(fault) for fault in faults_of(path)]


def test_it_says_which_faults_are_seen_by_which_test(tree: Path) -> None:
    """No test knows the largest; the sum of three is known. The tree itself is left as it is."""
    command = [sys.executable, "scripts/faults", "--only", f"{SUMS}:1", "--only", f"{SUMS}:7"]
    ran = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)
    assert ran.stdout.splitlines() == [
        f"{SUMS}:1: 5 → 6",
        "    not seen",
        f"{SUMS}:7: found += last → found -= last",
        "    seen by tests/reclaim/test_sums.py::test_three",
        "1 of 2 seen",
    ]
    assert ran.returncode == 1
    assert (tree / SUMS).read_text() == MODULE


def test_tests_that_hang_see_a_fault(
    tree: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A number that never comes down to 0."""
    monkeypatch.setattr(fault_tests, "WAIT", 3)
    tests = fault_tests.FaultTests(tree, tmp_path_factory.mktemp("scratch"))
    tests.passed = {"tests/reclaim/test_sums.py::test_three": 0.1}
    (fault,) = (fault for fault in faults_of(tests.copy / SUMS) if str(fault) == "last -= 1 → last += 1")
    assert tests.seen_by(fault) == "no end of the tests"


def test_the_same_seed_draws_the_same_faults(tree: Path) -> None:
    """One for a line at most."""
    drawings = [drawn([tree / SUMS], 4, seed) for seed in (1, 1, 2)]
    first, again, other = ([(fault.lines[0], str(fault)) for fault in drawing] for drawing in drawings)
    assert first == again != other
    assert len({line for line, _ in first}) == 4


def test_what_decides_nothing_has_no_fault(tmp_path: Path) -> None:
    """Texts, types, names, decorators and what only types need."""
    source = '"""1."""\n__all__ = ["f"] + ["g"]\nTYPE_CHECKING = False\nif TYPE_CHECKING:\n    X = 1\n\n\n'
    source += '@cache(size=1)\ndef f(x: "A[1]") -> "A[2]":\n    """2."""\n    print(3 + 4)\n    log.info(f"{x + 5}")\n'
    assert listed(tmp_path / "module.py", source) == []


@pytest.mark.parametrize(
    ("source", "faults"),
    [
        ("a < b", {"a < b → a <= b", "a < b → a >= b"}),
        ("a and b", {"a and b → a or b", "a and b → b", "a and b → a"}),
        ("x = not a", {"not a → a"}),
        ("x = a - b", {"a - b → a + b"}),
        ("x = f'{a}' + b", set()),
        ("x = 3", {"3 → 4"}),
        ("x = True", {"True → False"}),
        ("x = min(a)", {"min(a) → max(a)"}),
        ("x = f(a=b)", {"f(a=b) → f()"}),
        ("f(a)", {"f(a) → pass"}),
        ("x = a if b else c", {"a if b else c → a", "a if b else c → c"}),
        ("if a:\n    x = b", {"a → not a", "a → False"}),
        ("for a in b:\n    continue", {"continue → pass"}),
        ("def f():\n    return a", {"return a → return None"}),
        ("raise A(f'{b} is 1' + 2)", {"raise A(f'{b} is 1' + 2) → pass"}),
        ("x = [a for a in b if c]", {"c → True"}),
        ("a.b = c", {"a.b = c → pass"}),
    ],
)
def test_each_kind_of_fault(source: str, faults: set[str], tmp_path: Path) -> None:
    """What stands there, and what it becomes."""
    assert set(listed(tmp_path / "module.py", source)) == faults


def test_a_fault_changes_its_place_alone(tmp_path: Path) -> None:
    """Also behind letters of several bytes, and over several lines."""
    path = tmp_path / "module.py"
    path.write_text("x = 'é' < (\n    a\n)  # why\ny = 'é'\n")
    assert [fault.text().decode() for fault in faults_of(path)] == [
        f"x = ('é' {other} a)  # why\ny = 'é'\n" for other in ("<=", ">=")
    ]
