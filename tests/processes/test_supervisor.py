"""The process that starts jobs: what it writes down when its launcher is killed, and that it never stands still."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from drainwise.processes.supervised import Supervisor
from real_daemons.waiting import wait_for

pytestmark = pytest.mark.daemons  # it runs real processes

PATIENCE = 20.0


class Started:
    """A supervisor, its jobs, and its file."""

    def __init__(self, directory: Path) -> None:
        self.directory, self.record = directory, directory / "unseen.jsonl"
        self.supervisor = Supervisor(str(self.record))
        self.output = os.open(os.devnull, os.O_WRONLY)

    def start(self, name: str, *argv: str) -> int:
        variables = {b"PATH": b"/usr/bin:/bin"}
        return self.supervisor.start(name, f"tag-{name}", argv, str(self.directory), variables, self.output)

    def without_a_launcher(self) -> dict[str, float]:
        """As if the launcher had been killed; seconds of those that are written down, when it has gone."""
        self.supervisor._channel.close()
        os.waitpid(self.supervisor._pid, 0)
        ends = [json.loads(line) for line in self.record.read_text().splitlines()]
        assert all(end["tag"] == f"tag-{end['name']}" and abs(end["ended"] - time.time()) < PATIENCE for end in ends)
        return {end["name"]: end["seconds"] for end in ends}


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Started]:
    made = Started(tmp_path)
    yield made
    if made.supervisor.fileno() >= 0:
        made.supervisor.dismiss()
    os.close(made.output)


def test_successes_alone_are_written_down(started: Started) -> None:
    """Told before or not; what was ordered to end has not succeeded, whatever it made of the signal."""
    told = started.start("told", "true")
    wait_for(lambda: started.supervisor.end_of(told))
    ordered = started.start("ordered", "sh", "-c", "trap 'exit 0' TERM; touch up; while :; do sleep 0.01; done")
    wait_for((started.directory / "up").exists)
    started.supervisor.signal(ordered, 15)
    started.start("later", "sleep", "0.3")
    for name, line in (("failed", "exit 3"), ("killed", "kill -9 $$")):
        started.start(name, "sh", "-c", line)
    found = started.without_a_launcher()
    assert set(found) == {"told", "later"} and 0.3 <= found["later"] < PATIENCE


def has_ended(pid: int) -> bool:
    """Whether a process is gone, or waits to be reaped."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def test_nobody_waits_for_the_other_to_read(started: Started) -> None:
    """Five hundred ends that nobody has taken yet, and a message that is larger than what a socket holds."""
    jobs = [started.start(f"j{number}", "true") for number in range(500)]
    wait_for(lambda: all(has_ended(job) for job in jobs))
    large = started.start("large", "true", *("x" * 100_000 for _ in range(10)))
    wait_for(lambda: all(started.supervisor.end_of(job) for job in (*jobs, large)))


def test_the_last_one_says_how_all_ended(started: Started) -> None:
    """Status as wait() has it, seconds, CPU seconds; then its pid may be another's."""
    job = started.start("j", "sh", "-c", "i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done; sleep 0.1; exit 7")
    wait_for(lambda: started.supervisor.end_of(job))
    end = started.supervisor.end_of(job)
    assert end is not None and os.WEXITSTATUS(end[0]) == 7 and end[1] >= 0.1 and 0 < end[2] < end[1] + 0.1
    assert started.supervisor.has_news
    started.supervisor.forget(job)
    assert started.supervisor.end_of(job) is None and not started.supervisor.has_news


def test_one_that_is_gone_says_so(started: Started) -> None:
    job = started.start("j", "sleep", "0.5")
    os.kill(started.supervisor._pid, 9)
    with pytest.raises(ConnectionError):
        wait_for(lambda: started.supervisor.end_of(job))
    with pytest.raises(ConnectionError):
        started.start("k", "true")
    with pytest.raises(ConnectionError):
        started.supervisor.signal(job, 15)
