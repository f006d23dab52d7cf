"""The table is complete, and cheap enough for a hook."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

import drainwise
from drainwise.features.facts import BY_NAME, INTEGER, JOB, KEYS, MACHINE, keys_of
from interpreters import PYTHONS, interpreter

PLUGINS = str(Path(drainwise.__file__).parent.parent)
EXPENSIVE = [
    "re",
    "json",
    "dataclasses",
    "typing",
    "enum",
    "pathlib",
    "logging",
    "argparse",
    "subprocess",
    "collections",
    "tempfile",
    "functools",
    "configparser",
    "contextlib",
    "os",
    "socket",
    "signal",
]

MACHINE_2016 = {"total_cpu", "hs06", "shutdowntime", "grace_secs"}
MACHINE_DRAFT = {"hs06", "shutdowntime", "jobslots", "phys_cores", "log_cores", "shutdown_command"}
JOB_2016 = {
    "allocated_cpu",
    "hs06_job",
    "shutdowntime_job",
    "grace_secs_job",
    "jobstart_secs",
    "job_id",
    "wall_limit_secs",
    "cpu_limit_secs",
    "max_rss_bytes",
    "max_swap_bytes",
    "scratch_limit_bytes",
}
JOB_DRAFT = {
    "cpufactor_lrms",
    "cpu_limit_secs_lrms",
    "cpu_limit_secs",
    "wall_limit_secs_lrms",
    "wall_limit_secs",
    "disk_limit_GB",
    "jobstart_secs",
    "mem_limit_MB",
    "allocated_CPU",
    "shutdowntime_job",
}


@pytest.mark.parametrize(
    ("directory", "names"), [(MACHINE, MACHINE_2016 | MACHINE_DRAFT | {"hs23"}), (JOB, JOB_2016 | JOB_DRAFT)]
)
def test_each_generation_of_names_is_complete(directory: str, names: set[str]) -> None:
    assert {key.name for key in keys_of(directory)} == names


def test_every_draft_only_key_that_repeats_a_2016_key_names_it_as_its_twin() -> None:
    twins = {key.name: key.twin for key in KEYS if key.twin}
    assert twins == {
        "allocated_CPU": "allocated_cpu",
        "wall_limit_secs_lrms": "wall_limit_secs",
        "cpu_limit_secs_lrms": "cpu_limit_secs",
        "mem_limit_MB": "max_rss_bytes",
        "disk_limit_GB": "scratch_limit_bytes",
    }
    for name, twin in twins.items():
        assert BY_NAME[name].directory == BY_NAME[twin].directory
        assert BY_NAME[name].kind == BY_NAME[twin].kind == INTEGER


def test_names_are_unique_plain_file_names_and_every_key_says_what_it_means() -> None:
    assert len(BY_NAME) == len(KEYS)
    for key in KEYS:
        assert key.name.isidentifier()
        assert key.name.isascii()
        assert key.meaning
        assert "\n" not in key.meaning


def test_only_what_may_change_while_a_job_runs_is_dynamic() -> None:
    assert {key.name for key in KEYS if key.dynamic} == {"shutdowntime", "shutdowntime_job", "jobslots"}


@pytest.mark.timeout(600)  # the tree with Python 3.9 is fetched once
@pytest.mark.parametrize("python", PYTHONS)
def test_the_modules_of_the_hooks_import_nothing_expensive(python: str) -> None:
    """A hook's start-up is most of its cost: each of these modules would add milliseconds to every job start."""
    code = (
        f"import sys; sys.path.insert(0, {PLUGINS!r}); sys.dont_write_bytecode = True; before = set(sys.modules)\n"
        "from drainwise.common import local_file\n"
        "from drainwise.features import facts, host, planned_shutdown, write, read\n"
        "loaded = sorted(set(sys.modules) - before); import json; print(json.dumps(loaded))"
    )
    done = subprocess.run([interpreter(python), "-I", "-S", "-c", code], check=True, capture_output=True, text=True)
    loaded = json.loads(done.stdout)
    assert "drainwise.features.write" in loaded
    assert [name for name in loaded if name.partition(".")[0] in EXPENSIVE] == []
    foreign = {name for name in loaded if not name.startswith("drainwise")}
    assert foreign <= {"__future__", "errno", "posix", "stat", "_stat"}
