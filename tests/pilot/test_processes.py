"""Payloads are started in their own directory and group, stopped by TERM then KILL, and reaped once."""

from __future__ import annotations

import os
import resource
import time
from pathlib import Path

import pytest

from apart import apart
from drainwise.pilot.decide.payload import Payload
from drainwise.pilot.processes import Processes
from drainwise.pilot.queues.records import EndedPayload
from drainwise.processes.process import children
from drainwise.processes.tree import adopt_orphans
from real_daemons.waiting import wait_for

pytestmark = pytest.mark.daemons  # it runs real processes

STUBBORN = "trap '' TERM; touch ready; while :; do sleep 0.02; done"


def shell(name: str, script: str, cores: int = 1) -> Payload:
    return Payload(name, cores, ("/bin/sh", "-c", script), 60, 60)


def processes_in(place: Path) -> Processes:
    return Processes(str(place), {"PATH": os.environ["PATH"], "HOME": "/"}, "pilot-1", kill_wait=0.2)


def all_ended(processes: Processes, count: int) -> list[EndedPayload]:
    """Wait for so many ends."""
    found: list[EndedPayload] = []

    def enough() -> bool:
        found.extend(processes.reap(time.time()))
        return len(found) >= count

    wait_for(enough, what=f"{count} ends")
    return found


@apart
def test_a_payload_knows_where_and_what_it_is(tmp_path: Path) -> None:
    """Working directory, output files, variables, session of the pilot, group of its own, nothing on standard input."""
    processes = processes_in(tmp_path)
    script = "pwd; env; cat; ps -o pgid=,sid= -p $$ 2>/dev/null || cut -d' ' -f5,6 /proc/$$/stat; echo bad >&2; exit 7"
    processes.start(shell("p", script, cores=3), 1000.0)
    [ended] = all_ended(processes, 1)
    assert (ended.payload.name, ended.code, ended.start, ended.stopped) == ("p", 7, 1000.0, "")
    place = tmp_path / "payloads/p"
    output = (place / "stdout").read_text().split("\n")
    assert output[0] == str(place)
    assert {"DRAINWISE_PAYLOAD=p", "DRAINWISE_PAYLOAD_CORES=3", "DRAINWISE_PILOT=pilot-1", "HOME=/"} <= set(output)
    group, session = map(int, output[-2].split())
    assert session == os.getsid(0) and group != os.getpgid(0)
    assert (place / "stderr").read_text() == "bad\n"


@apart
def test_an_earlier_directory_is_kept(tmp_path: Path) -> None:
    """A payload that runs again finds an empty directory, and what it wrote before stays."""
    processes = processes_in(tmp_path)
    for _ in range(3):
        processes.start(shell("p", "ls; touch left"), 0.0)
        all_ended(processes, 1)
    assert sorted(os.listdir(tmp_path / "payloads")) == ["p", "p~2", "p~3"]
    assert (tmp_path / "payloads/p~3/stdout").read_text() == "stderr\nstdout\n"


@apart
def test_term_then_kill(tmp_path: Path) -> None:
    """One that ends at TERM has its time; one that ignores it is killed after kill_wait; the first reason holds."""
    processes = processes_in(tmp_path)
    processes.start(shell("tidy", "trap 'echo tidied; exit 0' TERM; touch ready; while :; do sleep 0.02; done"), 0.0)
    processes.start(shell("stubborn", STUBBORN), 0.0)
    wait_for(
        lambda: all((tmp_path / "payloads" / name / "ready").exists() for name in ("tidy", "stubborn")), what="traps"
    )
    began = time.time()
    for name in ("tidy", "stubborn", "unknown"):
        processes.stop(name, "deadline", began)
        processes.stop(name, "again", began)
    assert processes.next_kill == pytest.approx(began + 0.2)
    ended = {each.payload.name: each for each in all_ended(processes, 2)}
    assert {name: (each.code, each.stopped) for name, each in ended.items()} == {
        "tidy": (0, "deadline"),
        "stubborn": (-9, "deadline"),
    }
    assert time.time() - began >= 0.2
    assert (tmp_path / "payloads/tidy/stdout").read_text() == "tidied\n"
    assert processes.next_kill is None and processes.reap(time.time()) == [] and children() == []


@apart
def test_a_stopped_payloads_helpers_have_the_same_time(tmp_path: Path) -> None:
    """The main process dies of TERM at once: what tidies up in its group is not cut short, and is awaited."""
    adopt_orphans()
    processes = processes_in(tmp_path)
    helper = "trap 'sleep 0.1; touch ../tidied; exit' TERM; touch ready; while :; do sleep 0.02; done"
    processes.start(shell("p", f"sh -c '{helper.replace(chr(39), chr(34))}' & wait"), 0.0)
    wait_for((tmp_path / "payloads/p/ready").exists, what="the trap")
    processes.stop("p", "deadline", time.time())
    all_ended(processes, 1)
    assert (tmp_path / "payloads/tidied").exists()


@apart
def test_a_suspended_payload_receives_term(tmp_path: Path) -> None:
    """One that was stopped with SIGSTOP is continued, so that it can end in order."""
    processes = processes_in(tmp_path)
    processes.start(shell("p", "trap 'exit 5' TERM; touch ready; kill -STOP $$; while :; do sleep 0.02; done"), 0.0)
    wait_for((tmp_path / "payloads/p/ready").exists, what="the trap")
    processes.stop("p", "deadline", time.time())
    assert [each.code for each in all_ended(processes, 1)] == [5]


@apart
def test_what_a_payload_leaves_is_ended_with_it(tmp_path: Path) -> None:
    """Background processes in its group, and daemons that left it; another payload's daemon lives on."""
    adopt_orphans()
    processes = processes_in(tmp_path)
    processes.start(shell("other", "setsid sh -c 'touch ready; exec sleep 64' & exec sleep 64"), 0.0)
    wait_for((tmp_path / "payloads/other/ready").exists, what="the daemon of the other")
    processes.start(shell("p", "sleep 65 & setsid sh -c 'touch ready; exec sleep 65' & sleep 0.1"), 0.0)
    wait_for((tmp_path / "payloads/p/ready").exists, what="the daemon")
    assert [each.payload.name for each in all_ended(processes, 1)] == ["p"]
    # Its remains are reaped as they die; the other and its daemon stay.
    wait_for(lambda: processes.reap(0.0) == [] and len(children()) == 1, what="only the other is left")
    assert processes.clear() == [] and children() == []


@apart
@pytest.mark.parametrize(("command", "code"), [("/no/such", 127), ("/", 126), ("./stdout", 126)])
def test_a_command_that_cannot_be_executed(tmp_path: Path, command: str, code: int) -> None:
    """The payload's fault: codes as a shell has them, the reason in its stderr."""
    processes = processes_in(tmp_path)
    processes.start(Payload("p", 1, (command,), 1, 1), 5.0)
    [ended] = processes.reap(6.0)
    assert (ended.code, ended.start) == (code, 5.0)
    assert command in (tmp_path / "payloads/p/stderr").read_text()


@apart
def test_what_is_not_the_payloads_fault_is_raised(tmp_path: Path) -> None:
    """HOSTILE 28: no descriptors, no directory: nothing has started, and the payload may be tried again."""
    processes = processes_in(tmp_path / "gone")
    with pytest.raises(FileNotFoundError):
        processes.start(shell("p", "true"), 0.0)
    processes = processes_in(tmp_path)
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, limit[1]))
    try:
        with pytest.raises(OSError, match="Too many open files"):
            processes.start(shell("p", "true"), 0.0)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limit)
    assert processes.reap(0.0) == [] and children() == []


@apart
def test_no_descriptor_stays_open(tmp_path: Path) -> None:
    """A thousand payloads in a row cost none."""
    processes = processes_in(tmp_path)
    before = len(os.listdir("/proc/self/fd"))
    for number in range(30):
        processes.start(shell(f"p{number}", "true"), 0.0)
    assert len(os.listdir("/proc/self/fd")) <= before  # the garbage collector may close some of other tests
    assert {each.code for each in all_ended(processes, 30)} == {0}


@apart
def test_a_child_that_is_no_payload(tmp_path: Path) -> None:
    """The payload command is reaped, told of, and nobody's payload."""
    processes = processes_in(tmp_path)
    told: list[int] = []
    pid = os.posix_spawn("/bin/sh", ["sh", "-c", "exit 4"], os.environ)
    processes.leave_alone(pid, told.append)
    wait_for(lambda: processes.reap(0.0) == [] and told == [4], what="its end")


@apart
def test_at_the_end_the_payload_command_may_end_in_order(tmp_path: Path) -> None:
    """It gets TERM and a moment; a payload that is still there, and a command that ignores TERM, are killed."""
    processes = processes_in(tmp_path)
    for name, trap in (("tidy", f"touch {tmp_path}/tidied; exit"), ("stubborn", "")):
        script = f"trap '{trap}' TERM; touch {tmp_path}/{name}; while :; do sleep 0.02; done"
        pid = os.posix_spawn("/bin/sh", ["sh", "-c", script], os.environ, setpgroup=0)
        processes.leave_alone(pid, lambda code: None)
        wait_for((tmp_path / name).exists, what="the trap")
    processes.start(shell("p", "exec sleep 60"), 0.0)
    assert processes.clear() == [] and children() == []
    assert (tmp_path / "tidied").exists()


def test_a_clock_that_is_set_moves_the_times(tmp_path: Path) -> None:
    """Starts and kills are where they were, by the new clock."""

    @apart
    def check() -> None:
        processes = processes_in(tmp_path)
        processes.start(shell("p", "exec sleep 60"), 100.0)
        processes.stop("p", "deadline", 110.0)
        processes.shift(1000.0)
        assert processes.next_kill == pytest.approx(1110.2)
        assert [each.start for each in all_ended(processes, 1)] == [1100.0]

    check()
