"""docs/architecture.md is true: its folders, the modules of its walks, and the files that a change must touch."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from house import HOUSE, PACKAGE, PLUGINS

ROOT = PACKAGE.parents[1]
PAGE = (ROOT / "docs" / "architecture.md").read_text()


def section(title: str) -> str:
    """The text below a heading of the page."""
    return PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def rows(title: str) -> list[list[str]]:
    """The cells of the table in a section, without its head."""
    table = section(title).partition("\n|")[2].partition("\n\n")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]


def floor_of(room: str) -> int:
    """1 for a folder that knows no other; else one more than the highest that it knows."""
    return 1 + max((floor_of(one) for one in HOUSE[room].knows.split()), default=0)


def test_the_page_shows_each_folder_with_its_floor_machine_and_rights() -> None:
    """The highest floor stands first."""
    shown = [(int(floor), name.strip("`"), machine, rights) for floor, name, _, machine, rights in rows("Folders")]
    assert shown == sorted(
        (
            (floor_of(name), f"{name.replace('.', '/')}/" if name else ".", room.machine, room.rights)
            for name, room in HOUSE.items()
        ),
        key=lambda one: (-one[0], one[1] if one[1] != "." else ""),
    )


def test_no_section_is_empty() -> None:
    """A heading promises some lines."""
    titles = re.findall(r"(?m)^## (.+)$", PAGE)
    assert [title for title in titles if len(section(title).split()) < 20] == []


def test_each_module_of_a_walk_is_there_and_is_named_once() -> None:
    """A reader finds the line by the page; what two walks share is a fact of all."""
    named = Counter(re.findall(r"`([a-z_0-9]+/[a-z_/0-9]+\.py)`", PAGE))
    for name in named:
        assert any((place / name).exists() for place in (PACKAGE, PLUGINS, ROOT)), name
    for title in ("How a report travels", "How a plan is made", "How a deadline travels", "How a launched job travels"):
        found = Counter(re.findall(r"`([a-z_0-9]+/[a-z_/0-9]+\.py)`", section(title)))
        assert [name for name, times in found.items() if times > 1] == []
        assert len(found) >= 7


# ---- to change something: each change is made in a copy of the package, in the files of its row and no other ----


class Copy:
    """A copy of the package in which a change is made: links to the files, but for those that are changed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.touched: set[str] = set()
        shutil.copytree(PACKAGE, path / "drainwise", copy_function=os.symlink)

    def insert(self, name: str, after: str, line: str) -> None:
        """Insert a line behind the one that begins with `after`, which must stand there once."""
        lines = (self.path / "drainwise" / name).read_text().splitlines()
        [place] = [number for number, one in enumerate(lines) if one.startswith(after)]
        (self.path / "drainwise" / name).unlink()
        (self.path / "drainwise" / name).write_text("\n".join([*lines[: place + 1], line, *lines[place + 1 :], ""]))
        self.touched.add(name)

    def run(self, program: str) -> str:
        """What a Python program prints that imports the copy."""
        code = f"import sys; sys.path.insert(0, {str(self.path)!r})\n{program}"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout


def a_policy(copy: Copy) -> None:
    """The widest pilots."""
    row = '    "widest": PriceList("the widest pilots", lambda it, _: it.columns.cores**0.5, meaning="few pilots"),'
    copy.insert("reclaim/prices.py", "POLICIES: Mapping", row)
    assert "widest" in copy.run("from drainwise.cli.main import main; main(['plan', '--help'])")
    program = "from drainwise.reclaim.prices import policy_called; print(policy_called('widest').rule)"
    assert copy.run(program) == "the widest pilots\n"


def an_attribute(copy: Copy) -> None:
    """Core-seconds that it costs to move a pilot's payloads."""
    row = '    Attribute("MOVE_COST1k", "move_cost", "move_cost", "PilotMoveCost", CORE_SECONDS),'
    copy.insert("pilotad/attributes.py", "ATTRIBUTES = (", row)
    copy.insert("pilotad/report.py", "    exp_waste_curve: str | None = None", "    move_cost: float | None = None")
    copy.insert(
        "pilotad/report.py",
        "        report.exp_waste_curve,",
        "        _clamped(report.move_cost, 0, lease),",
    )
    copy.insert(
        "pilot/decide/workload.py",
        "        exp_waste_curve,",
        "        move_cost=workload.used * 60.0,",
    )
    said = copy.run(
        "from drainwise.pilot.decide.lease import Lease\n"
        "from drainwise.pilot.decide.payload import Payload\n"
        "from drainwise.pilot.decide.workload import Workload, report_of, running_since\n"
        "from drainwise.pilotad import pilot_ad, report as reports\n"
        "start = 1795350000; workload = Workload(start)\n"
        "workload.add(running_since(Payload('a', 2, ('true',), 600, 600), start))\n"
        "report = report_of(workload, Lease(8, start, None), True, 0, start)\n"
        "print(pilot_ad.pilot_ad_text(report, 8).decode())\n"
        "print(reports.from_plain(reports.as_plain(report)).move_cost)\n"
    )
    assert "MOVE_COST1k = 15360\n" in said
    assert said.endswith("\n120.0\n")


def a_feature_key(copy: Copy) -> None:
    """The job's share of the node's GPUs."""
    key = '    Feature("gpus", JOB, INTEGER, "GPUs", 0, "GPUs of the job"),'
    copy.insert("features/facts.py", '    Feature("hs06_job"', key)
    copy.insert("features/facts.py", "    hs06_job: float | None = None", "    gpus: int | None = None")
    program = "from drainwise.features.facts import HostFacts, JobFacts, job_values\n"
    assert copy.run(program + "print(job_values(JobFacts(gpus=2), HostFacts())['gpus'])") == "2\n"


def an_option(copy: Copy) -> None:
    """An option of `plan`."""
    copy.insert("cli/plan.py", "        *DECISION,", '        option("--rack", "only pilots there"),')
    assert "--rack" in copy.run("from drainwise.cli.main import main; main(['plan', '--help'])")


CHANGES: dict[str, Callable[[Copy], None]] = {
    "a policy": a_policy,
    "an attribute of a pilot's report": an_attribute,
    "a feature key": a_feature_key,
    "an option of a command": an_option,
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_needs_the_files_that_the_page_names(change: str, tmp_path: Path) -> None:
    """The change works when it is made there, and nowhere else."""
    table = dict(rows("To change something"))
    copy = Copy(tmp_path)
    CHANGES[change](copy)
    assert set(re.findall(r"`([a-z_/]+\.py)`", table[change])) == copy.touched


def test_the_page_names_a_test_for_each_other_change() -> None:
    """A batch system needs no file of this package; docs/your-own-pool.md builds one, and its test runs it."""
    others = {what: files for what, files in rows("To change something") if what not in CHANGES}
    assert set(others) == {"a batch system", "a policy in a package of its own"}
    assert "your-own-pool.md" in others["a batch system"]
    assert "your-own-policy.md" in others["a policy in a package of its own"]
    for page in ("your-own-pool.md", "your-own-policy.md"):
        assert any(
            page in one.read_text() for one in (ROOT / "tests").rglob("test_*.py") if one.name != Path(__file__).name
        )
