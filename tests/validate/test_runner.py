"""The runner inside a job, with real processes: what it measures from outside, and what it makes of a report."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from drainwise_tasks.validate.measurement import parse_measurement
from drainwise_tasks.validate.start import REPORT, RUNNER_WORDS, Run, prepare

pytestmark = pytest.mark.daemons  # it runs real programs and waits for them

PLUGINS = str(Path(__file__).parents[2] / "plugins")
PROGRAM = str(Path(__file__).parents[2] / "scripts" / "validation_program.py")
SAY = 'printf \'{"written": 1, "output_bytes": 1000}\' > $DRAINWISE_VALIDATION_REPORT;'


def run(place: Path, *command: str, cores: int = 1, events: int = 1) -> tuple[int, str]:
    """Run a command as the job of a validation does; its exit code and what it wrote on its stderr."""
    prepare(str(place), Run("r", cores, 2000, events, 60, command))
    made = [sys.executable, *RUNNER_WORDS]
    ran = subprocess.run(made, cwd=place, capture_output=True, text=True, check=False, timeout=60)
    return ran.returncode, ran.stderr


def report(place: Path) -> dict[str, dict[str, float]]:
    return dict(json.loads((place / REPORT).read_text()))


def test_a_program_that_uses_cpu_memory_and_threads(tmp_path: Path) -> None:
    """CPU seconds, resident memory and events are what the program was told to use."""
    words = ("--events", "6", "--cores", "2", "--cpu", "0.05", "--memory", "60", "--size", "7", "--filter", "0.5")
    code, said = run(tmp_path, sys.executable, PROGRAM, *words, cores=2, events=6)
    assert (code, said) == (0, "")
    measured = parse_measurement((tmp_path / REPORT).read_bytes(), cores=2, events=6)
    assert measured.cpu_seconds >= 0.3 and measured.wall_seconds >= 0.15
    assert 72 <= measured.peak_rss < 172
    assert (measured.written, measured.size_per_event, measured.filter_efficiency) == (3, 7.0, 0.5)


def test_everything_that_the_program_starts_is_measured_and_ended(tmp_path: Path) -> None:
    """CPU of a grandchild counts, and a daemon that it leaves behind is ended with it."""
    script = (
        f"import os, subprocess; subprocess.run([{sys.executable!r}, '-I', '-S', '-c', 'x = bytes(10**8);"
        " import time\\nwhile time.process_time() < 0.3: pass'])\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    open('daemon', 'w').write(str(os.getpid()))\n"
        "    os.execvp('sleep', ['sleep', '1000'])\n"
        "while not os.path.exists('daemon') or not open('daemon').read(): pass\n"
        "open(os.environ['DRAINWISE_VALIDATION_REPORT'], 'w').write('{}')\n"
    )
    assert run(tmp_path, sys.executable, "-I", "-S", "-c", script)[0] == 0
    assert report(tmp_path)["measured"]["cpu_seconds"] >= 0.3
    with pytest.raises(ProcessLookupError):
        os.kill(int(next(tmp_path.glob("run-*/daemon")).read_text()), 0)


def test_the_end_is_seen_at_once(tmp_path: Path) -> None:
    """Not at the next look, which here is never; SIGCHLD reaches the program as ever."""
    words = [REPORT, "1", "1", "2000", "--", "sh", "-c", f"{SAY} exec sleep 0.3"]
    program = f"from drainwise_tasks.validate import runner; runner._LOOK = 1e6; sys.exit(runner.main({words!r}))"
    command = [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.append({PLUGINS!r}); {program}"]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=60)
    assert report(tmp_path)["measured"]["wall_seconds"] >= 0.3
    assert run(tmp_path, "grep", "-q", "SigBlk:.0*$", "/proc/self/status")[0] == 0


def test_many_orphans_are_reaped_and_counted(tmp_path: Path) -> None:
    """A program that leaves 200 processes behind, one after the other, leaves no zombies; their CPU time counts."""
    script = (
        "for i in $(seq 200); do (true &); done; sleep 0.3; cat /proc/*/stat 2>/dev/null | grep -c ' Z '$PPID' ' >&2"
    )
    code, said = run(tmp_path, "sh", "-c", script)
    assert said.strip() == "0", (code, said)


def test_a_peak_of_memory_between_two_looks_is_not_missed(tmp_path: Path) -> None:
    """200 MB that are gone at once, of a program that takes less time than a look."""
    assert run(tmp_path, sys.executable, "-I", "-S", "-c", "x = b'x' * (2 * 10**8); del x")[0] == 0
    assert report(tmp_path)["measured"]["peak_rss_bytes"] >= 2 * 10**8


def test_the_program_hears_its_figures(tmp_path: Path) -> None:
    """Cores, events, memory and the report's place are in its environment."""
    script = f"echo $DRAINWISE_VALIDATION_CORES $DRAINWISE_VALIDATION_EVENTS $DRAINWISE_VALIDATION_MEMORY >&2; {SAY}"
    assert run(tmp_path, "sh", "-c", script, cores=4, events=7) == (0, "4 7 2000\n")


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("true", "the program wrote no report"),
        ("echo hello > $DRAINWISE_VALIDATION_REPORT", "the program's report is not JSON"),
        ("echo '<x>' > $DRAINWISE_VALIDATION_REPORT", "the job report is no sound XML"),
        ("mkfifo $DRAINWISE_VALIDATION_REPORT", "expected a regular file, found a FIFO"),
        ("ln -s /etc/passwd $DRAINWISE_VALIDATION_REPORT", "found a symbolic link"),
        ("head -c 5000000 /dev/zero > $DRAINWISE_VALIDATION_REPORT", "longer than"),
    ],
)
def test_a_program_without_a_sound_report(tmp_path: Path, script: str, expected: str) -> None:
    """None, garbage, a FIFO, a link to another file, a huge one (HOSTILE 1, 5, 20, 23): named, and nothing hangs."""
    assert run(tmp_path, "sh", "-c", script)[0] == 0
    with pytest.raises(ValueError, match=expected):
        parse_measurement((tmp_path / REPORT).read_bytes(), cores=1, events=1)


def test_the_job_report_of_cmssw(tmp_path: Path) -> None:
    """The program may leave its XML instead."""
    size = "<Metric Name='Timing-file-write-totalMegabytes' Value='1'/>"
    text = f"<FrameworkJobReport><TotalEvents>3</TotalEvents>{size}</FrameworkJobReport>"
    assert run(tmp_path, "sh", "-c", f'echo "{text}" > $DRAINWISE_VALIDATION_REPORT')[0] == 0
    assert report(tmp_path)["reported"] == {"written": 3, "output_bytes": 1 << 20}


@pytest.mark.parametrize(("command", "code"), [("exit 3", 3), ("kill -9 $$", 137), ("kill -TERM $PPID; wait", 143)])
def test_the_runner_ends_as_its_program(tmp_path: Path, command: str, code: int) -> None:
    """With its code, 128 + N for signal N; a SIGTERM to the job reaches the program."""
    script = f"{command}" if "wait" not in command else "kill -TERM $PPID; exec sleep 1000"
    assert run(tmp_path, "sh", "-c", script)[0] == code


def test_a_command_that_is_none_ends_as_in_a_shell(tmp_path: Path) -> None:
    """127 and a line that names it; 126 where it cannot be executed."""
    assert run(tmp_path, "/no/such/program") == (127, "drainwise: /no/such/program: No such file or directory\n")
    assert run(tmp_path, str(tmp_path)) == (126, f"drainwise: {tmp_path}: Permission denied\n")
