"""The reporter in shell ends with its wrapper: also with one that is gone before the reporter's first moment."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import drainwise
from drainwise.pilotad.attributes import PILOT_AD

PLUGINS = Path(drainwise.__file__).parents[1]
SCRIPT = Path(__file__).parents[2] / "share" / "pilots" / "sh" / "drainwise_report.sh"
SECONDS = 20.0
WRONG = "drainwise_report.sh: watch 8: its wrapper has ended, or is to be named: watch 8 PID\n"
# A wrapper that ends at once. Its reporter begins when the file `gone` can be read: the wrapper is dead by then.
DYING = '(read -r _ <gone; DRAINWISE_LOOK=0.05 exec "$0" watch 8 {named}) & echo $! >reporter'
REAPER = """
import subprocess, sys
from drainwise.processes.tree import adopt_orphans, reap_all
if sys.argv[1] == "subreaper":
    assert adopt_orphans()
wrapper, place = sys.argv[2:4], sys.argv[4]
subprocess.run(["sh", "-c", *wrapper], cwd=place, start_new_session=True, check=True)
with open(f"{place}/gone", "w") as gone:
    gone.write("\\n")
while not reap_all():
    pass
"""


@pytest.mark.parametrize("reaper", ["1", "subreaper"])
@pytest.mark.parametrize(("named", "told"), [("$$", ""), ("", WRONG)], ids=["named", "not named"])
def test_whoever_takes_in_orphans_is_no_wrapper(tmp_path: Path, reaper: str, named: str, told: str) -> None:
    """Process 1 and a subreaper: the reporter ends and reports nothing, whether or not its wrapper was named."""
    os.mkfifo(tmp_path / "gone")
    words = [sys.executable, "-c", REAPER, reaper, DYING.format(named=named), str(SCRIPT), str(tmp_path)]
    process = subprocess.Popen(words, cwd="/", env={**os.environ, "PYTHONPATH": str(PLUGINS)}, stderr=subprocess.PIPE)
    try:
        # The reporter has the pipe open until it ends.
        said = process.communicate(timeout=SECONDS)[1].decode()
    except subprocess.TimeoutExpired:
        os.kill(int((tmp_path / "reporter").read_text()), signal.SIGKILL)
        process.communicate()
        raise
    assert (said, (tmp_path / PILOT_AD).exists()) == (told, False)


def test_a_process_that_got_the_wrappers_number_is_no_wrapper(tmp_path: Path) -> None:
    """It is younger than the reporter."""
    words = ["sh", "-c", 'read -r pid; exec "$0" watch 8 "$pid"', str(SCRIPT)]
    with subprocess.Popen(words, cwd=tmp_path, stdin=subprocess.PIPE) as reporter:
        time.sleep(2 / os.sysconf("SC_CLK_TCK"))
        with subprocess.Popen(["sleep", "60"]) as younger:
            try:
                reporter.communicate(f"{younger.pid}\n".encode(), timeout=SECONDS)
            finally:
                younger.kill()
                reporter.kill()
    assert (reporter.returncode, (tmp_path / PILOT_AD).exists()) == (0, False)


@pytest.mark.parametrize("call", ["setsid {script}", "cd sub; exec {script}"], ids=["session", "directory"])
@pytest.mark.parametrize("named", ["$$", ""], ids=["named", "not named"])
def test_it_reports_until_its_wrapper_ends(tmp_path: Path, named: str, call: str) -> None:
    """Also one that was not named, when the reporter has a session or a directory of its own."""
    (tmp_path / "sub").mkdir()
    script = f"({call.format(script=f'{SCRIPT} watch 8')} {named}) & exec sleep 60"
    environment = {**os.environ, "DRAINWISE_LOOK": "0.05", "DRAINWISE_PLACE": str(tmp_path)}
    with subprocess.Popen(["sh", "-c", script], cwd=tmp_path, env=environment, stderr=subprocess.PIPE) as wrapper:
        deadline = time.monotonic() + SECONDS
        while not (tmp_path / PILOT_AD).exists():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        wrapper.kill()
        assert wrapper.communicate(timeout=SECONDS)[1] == b""
