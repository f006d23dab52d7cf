"""docs/your-own-pool.md: its package, installed as the page says, is a pool for every command."""

from __future__ import annotations

import importlib
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

import pytest

from drainwise.cli.main import main
from drainwise.common.plugin_entries import PluginEntries
from drainwise.facts.errors import RunEnded
from drainwise.systems import find
from made_up_package import put_package
from real_daemons.waiting import wait_for

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "your-own-pool.md").read_text()
SECONDS = 60


def block(language: str, holding: str) -> str:
    """The page's piece of code that holds this text."""
    blocks = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    (found,) = (one for one in blocks if holding in one)
    return str(found)


class Ended(NamedTuple):
    """What a command printed, and its exit code."""

    returncode: int
    stdout: str
    stderr: str


class Drop:
    """The batch system of the page with its package, and a machine whose commands find it."""

    def __init__(self, base: Path) -> None:
        self.spool, self.journal, self.packages = base / "spool", base / "journal", base / "packages"
        (entry,) = re.findall(
            '^drop = "(.*)"$', block("toml", '[project.entry-points."drainwise.systems"]'), re.MULTILINE
        )
        put_package(self.packages, "drop-pool", f"[drainwise.systems]\ndrop = {entry}\n")
        (self.packages / "drop_pool.py").write_text(block("python", "class DropPool"))
        self.site = base / "site.ini"
        text = block("ini", "[drop]").replace("/var/spool/drop", str(self.spool)).replace("30s", "1s")
        text = text.replace("/var/log/drainwise/journal", str(self.journal))
        self.site.write_text(text.replace("[agent]", f"[agent]\nstate_dir = {base}"))
        self.spool.mkdir()
        self.write("shares", {"cores": 32, "accounts": {"physics": 16, "theory": 16}})
        self.write("90", {"account": "theory", "user": "bob", "cores": 16})
        self.now = int(time.time())
        for number in range(1, 5):
            self._begin(base, number)

    def _begin(self, base: Path, number: int) -> None:
        """An 8-core pilot of alice, which will have drained in some minutes."""
        work = base / f"job{number}"
        work.mkdir()
        values = {
            "USED_FRACTION1k": 500 + 100 * number,
            "LAST_JOB_START": self.now - 600,
            "FIRST_EXP_JOB_END": self.now + 300,
            "LAST_EXP_JOB_END": self.now + 300,
            "LAST_MAX_JOB_END": self.now + 600,
            "ADD_UNCOM_TIME1k": 0,
            "ADD_FINAL_EXP_WASTE1k": 0,
        }
        (work / ".pilot.ad").write_text("".join(f"{name} = {value}\n" for name, value in values.items()))
        whose = {"account": "physics", "user": "alice", "cores": 8, "node": "node1", "work": str(work)}
        self.write(str(number), {**whose, "started": self.now - 7200, "lease_end": self.now + 86400})

    def write(self, name: str, value: object) -> None:
        """Write the file of a job."""
        (self.spool / f"{name}.json").write_text(json.dumps(value))

    def ordered(self) -> list[str]:
        """The jobs that have a deadline and run."""
        jobs = {path.stem: json.loads(path.read_text()) for path in self.spool.glob("[0-9]*.json")}
        return sorted(name for name, job in jobs.items() if job.get("deadline") and not job.get("ended"))

    def end_ordered(self) -> None:
        """What the daemon does when a pilot has left: it writes down that, and starts who waited."""
        for name in self.ordered():
            job = json.loads((self.spool / f"{name}.json").read_text())
            self.write(name, {**job, "ended": int(time.time())})
        waited = {"account": "theory", "user": "bob", "cores": 16, "node": "node1", "work": "/nonexistent"}
        self.write("90", {**waited, "started": int(time.time())})

    def run(self, *words: str, site: bool = True) -> Ended:
        """Run a command to its end: each finds the packages, and warns of them, anew."""
        out, err = io.StringIO(), io.StringIO()
        sys.modules.pop("drop_pool", None)
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
            patch.setattr(find, "_installed", PluginEntries(find.GROUP, find._accept, find.TAKEN))
            patch.syspath_prepend(str(self.packages))
            for name in ("COLUMNS", "CONDOR_CONFIG"):  # a window of no size; no other batch system is configured
                patch.delenv(name, raising=False)
            patch.setenv("PATH", os.defpath)
            try:
                code = main([*words, *(("--site", str(self.site)) if site else ())])
            except SystemExit as end:
                code = int(end.code or 0)
        return Ended(code, out.getvalue(), err.getvalue())

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start a command as a program, which finds drainwise and the package by itself."""
        places = f"{ROOT / 'plugins'}:{self.packages}"
        ours = {"PATH": os.defpath, "PYTHONPATH": places, "HOME": "/nonexistent", "LC_ALL": "C.UTF-8"}
        line = [sys.executable, "-m", "drainwise", *words, "--site", str(self.site)]
        return subprocess.Popen(line, env=ours, stderr=subprocess.PIPE, text=True)


@pytest.fixture
def drop(tmp_path: Path) -> Drop:
    return Drop(tmp_path)


POOL = ("--pool", "drop")


@pytest.mark.parametrize("words", [POOL, ()])
def test_the_pool_is_shown_and_planned_without_a_word_about_it_in_drainwise(drop: Drop, words: tuple[str, ...]) -> None:
    """Also where nothing names it: it is the one batch system that is configured here."""
    shown = drop.run("status", *words)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert re.search(r"^physics +16\.0 +32\.0 +0\.0 +\+16\.0", shown.stdout, re.MULTILINE)
    assert re.search(r"^1 +alice +8 +4\.6875 +fresh", shown.stdout, re.MULTILINE)
    planned = json.loads(drop.run("plan", "--json", *words).stdout)
    assert planned["cores"]["deficit"] == 16
    assert json.loads(drop.run("snapshot", *words).stdout)["accounts"][0]["name"] == "physics"


def test_one_cycle_gives_the_orders_and_the_journal_explains_them(drop: Drop) -> None:
    dry = drop.run("reclaim", "--once", *POOL)
    assert (dry.returncode, drop.ordered()) == (0, [])
    acted = drop.run("reclaim", "--once", "--act", *POOL)
    assert (acted.returncode, acted.stderr) == (0, "")
    ordered = drop.ordered()
    assert len(ordered) == 2
    assert "gives back 16 of" in drop.run("explain", ordered[0]).stdout
    drop.end_ordered()
    assert drop.run("reclaim", "--once", "--act", *POOL).returncode == 0
    (sums,) = json.loads(drop.run("report", "--json").stdout)["users"]
    assert (sums["user"], sums["ordered"], sums["left_in_time"]) == ("alice", 2, 2)


@pytest.mark.daemons
def test_the_agent_runs_on_it(drop: Drop) -> None:
    """Cycle after cycle: it asks, learns how that ended, and asks nobody else."""
    agent = drop.start("reclaim", "--loop", "--act", *POOL)
    try:
        wait_for(lambda: len(drop.ordered()) == 2)
        drop.end_ordered()
        wait_for(lambda: drop.journal.read_text().count('"ended"') >= 2)
    finally:
        agent.send_signal(signal.SIGTERM)
        _, said = agent.communicate(timeout=SECONDS)
    assert agent.returncode == 0, said
    assert drop.ordered() == []


def test_an_order_reaches_no_other_run(drop: Drop, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page's own rule: the next run of a job keeps its lease."""
    monkeypatch.syspath_prepend(str(drop.packages))
    pool = importlib.import_module("drop_pool").DropPool(str(drop.spool))
    (pilot,) = (one for one in pool.snapshot(drop.now).pilots if one.name == "1")
    job = json.loads((drop.spool / "1.json").read_text())
    drop.write("1", {**job, "started": drop.now})
    with pytest.raises(RunEnded):
        pool.give_order(pilot, drop.now + 600, "")
    assert drop.ordered() == []


def test_its_section_is_checked_and_documented_as_any_other(drop: Drop) -> None:
    drop.site.write_text("[drop]\nperiod = 5h\n")
    refused = drop.run("status", *POOL)
    assert refused.returncode == 2
    assert "[drop] period = '5h': expected a duration from 1s to 1m" in refused.stderr
    keys = drop.run("config", "keys", site=False)
    assert "| `period` | duration, 1s to 1m | `1s` | how often its daemon looks at them |" in keys.stdout


def test_half_an_answer_is_none(drop: Drop) -> None:
    (drop.spool / "2.json").write_text('{"account": "phys')
    shown = drop.run("plan", *POOL)
    assert (shown.returncode, shown.stdout) == (1, "")
    assert shown.stderr.startswith(f"drainwise: {drop.spool}/2.json: ")


def test_a_broken_package_is_one_line_and_hinders_nobody(drop: Drop) -> None:
    place = drop.packages / "drop_pool.py"
    place.write_text(place.read_text().replace("import fcntl\n", "import no_such_module\n"))
    shown = drop.run("status", *POOL)
    assert shown.returncode == 2
    skipped = "'drop' (drainwise.systems) of package drop-pool 1.0 is left out: ModuleNotFoundError: No module named"
    first, second = shown.stderr.splitlines()
    assert first == f"drainwise: {skipped} 'no_such_module'"
    assert "'[drop]': expected a section of " in second
    drop.site.write_text("")
    assert drop.run("status", *POOL).stderr.splitlines() == [
        first,
        "drainwise: --pool drop: expected one of htcondor, slurm, local",
    ]
    assert drop.run("status", "--pool", "local", "--directory", "/nonexistent").returncode == 1
