"""The runner as one file: it needs a plain Python and nothing of ours, and starts the program in a place of its own."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from drainwise_tasks.validate.start import REPORT, Run, packed_run, packed_runner
from interpreters import PYTHONS, interpreter
from made_up_node import PYTHON

pytestmark = pytest.mark.daemons  # it runs real programs and waits for them

SAY = 'printf \'{"written": 1, "output_bytes": 1000}\' > $DRAINWISE_VALIDATION_REPORT'


def carried(place: Path, command: tuple[str, ...], python: str = PYTHON, wall: int = 60) -> tuple[int, str]:
    """Run the packed runner as on a node that has nothing else: its exit code and stderr."""
    (place / "runner.pyz").write_bytes(packed_runner())
    odd = {"QUOTED": "a 'b' \"c\"; $(d)\n;", "EMPTY": ""}
    (place / "run.json").write_bytes(packed_run(Run("r", 2, 100, 7, wall, command, odd)))
    words = [interpreter(python), "-I", "-S", "-B", "runner.pyz", "run.json"]
    ran = subprocess.run(words, cwd=place, env={}, capture_output=True, text=True, check=False, timeout=60)
    return ran.returncode, ran.stderr


@pytest.mark.parametrize("python", PYTHONS)
def test_it_needs_no_more_than_a_plain_python(tmp_path: Path, python: str) -> None:
    """The system's Python and 3.9, isolated: also for the job report of CMSSW."""
    size = "<Metric Name='Timing-file-write-totalMegabytes' Value='1'/>"
    text = f"<FrameworkJobReport><TotalEvents>3</TotalEvents>{size}</FrameworkJobReport>"
    assert carried(tmp_path, ("sh", "-c", f'echo "{text}" > $DRAINWISE_VALIDATION_REPORT'), python) == (0, "")
    assert json.loads((tmp_path / REPORT).read_bytes())["reported"] == {"written": 3, "output_bytes": 1 << 20}


def test_the_program_starts_in_an_empty_directory_with_its_variables(tmp_path: Path) -> None:
    """Whatever stands in them: no shell and no language of submit files ever sees them."""
    script = f'ls -A; [ "$(ls -A)" = "" ] && [ -z "${{EMPTY-x}}" ] && printf %s "$QUOTED" >&2; {SAY}'
    assert carried(tmp_path, ("sh", "-c", script)) == (0, "a 'b' \"c\"; $(d)\n;")
    assert json.loads((tmp_path / REPORT).read_bytes())["fault"] == ""


def test_the_wall_limit_is_kept(tmp_path: Path) -> None:
    """What runs on is killed, and why is told."""
    assert carried(tmp_path, ("sleep", "1000"), wall=1) == (137, "drainwise: its wall limit is over\n")
