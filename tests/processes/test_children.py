"""Children are reaped with what is left of their groups, and all below a process is counted, whoever started it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from drainwise.processes.children import isolated_program, memory_of_trees

pytestmark = pytest.mark.daemons  # it runs real processes

PLUGINS = str(Path(__file__).parents[2] / "plugins")
REAPS = """
import os, subprocess, sys, time
sys.path.append(sys.argv[1])
from drainwise.processes.children import ended_children
def started(line):
    return subprocess.Popen(["/bin/sh", "-c", line], stdout=subprocess.PIPE, start_new_session=True)
leads, other = (started("sleep 60 & echo $!; exit 3"), started("sleep 60 & echo $!; kill -9 $$"))
left = {one.pid: int(one.stdout.readline()) for one in (leads, other)}
codes = {}
for ended in ended_children(lambda pid: pid == leads.pid, wait=True):
    codes[ended.pid] = ended.code
assert codes == {leads.pid: 3, other.pid: -9}, codes
def runs(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
while runs(left[leads.pid]):
    time.sleep(0.01)
assert runs(left[other.pid])
os.kill(left[other.pid], 9)
"""


def test_a_group_goes_with_the_child_that_leads_it_and_no_other() -> None:
    subprocess.run([sys.executable, "-c", REAPS, PLUGINS], check=True, timeout=60)


HOLDS = """
import subprocess, sys, threading, time
line = "import time; held = b'x' * (64 << 20); print('there', flush=True); time.sleep(60)"
def start():
    with subprocess.Popen([sys.executable, "-S", "-c", line], stdout=subprocess.PIPE) as child:
        print(child.pid, child.stdout.readline().decode().strip(), flush=True)
        child.wait()
threading.Thread(target=start).start()
time.sleep(60)
"""


@pytest.mark.parametrize("proportional", [False, True])
def test_what_another_thread_has_started_is_counted(proportional: bool) -> None:
    program = [sys.executable, "-S", "-c", HOLDS]
    with subprocess.Popen(program, stdout=subprocess.PIPE, start_new_session=True) as process:
        try:
            assert process.stdout is not None and b"there" in process.stdout.readline()
            assert memory_of_trees([process.pid], proportional) > 64 << 20
        finally:
            os.killpg(process.pid, signal.SIGKILL)
    assert memory_of_trees([process.pid], proportional) == 0


def test_a_function_runs_with_its_words_in_an_isolated_interpreter(tmp_path: Path) -> None:
    """No module of the working directory or of PYTHONPATH is taken for ours; what it returns is the exit code."""
    (tmp_path / "drainwise.py").write_text("raise SystemExit(8)")
    command = isolated_program("drainwise.cli.main:main", "no such command")
    ran = subprocess.run(
        command, env={"PYTHONPATH": str(tmp_path)}, cwd=tmp_path, check=False, capture_output=True, text=True
    )
    assert ran.returncode == 2 and "no such command" in ran.stderr
