"""The reference pilot as a real process with real payloads: it reports, drains, resumes, and loses no payload."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from interpreters import PYTHONS, interpreter
from pilot_process import PilotProcess, json_lines, put, write
from real_daemons.waiting import wait_for

SLEEP = ["sleep", "1"]
LONG = ["sleep", "50"]


def check_sums(pilot: PilotProcess) -> None:
    """The exit report adds up, with itself and with the records."""
    report = pilot.report()
    spent = report["core_seconds"]
    assert isinstance(spent, dict)
    assert round(spent["lease"], 3) == round(sum(spent[kind] for kind in ("useful", "failed", "lost", "idle")), 3)
    assert min(spent.values()) >= 0
    mine = [each for each in pilot.records() if each["pilot"] == report["pilot"]]
    cores = {each["payload"]: each["cores"] for each in mine if each["event"] == "started"}
    for event, kind, count in (
        ("done", "useful", "done"),
        ("failed", "failed", "failed"),
        ("requeued", "lost", "requeued"),
    ):
        ended = [each for each in mine if each["event"] == event]
        total = sum(float(str(each["seconds"])) * int(str(cores[each["payload"]])) for each in ended)
        assert len(ended) == report[count]
        assert total == pytest.approx(spent[kind], abs=0.1 * max(1, len(ended)))


def running(pilot: PilotProcess, cores: int) -> Callable[[], bool]:
    """That `.pilot.ad` says so many of four cores are in use."""
    return lambda: pilot.ad().get("USED_FRACTION1k") == str(cores * 256)


def test_every_payload_runs_and_the_numbers_add_up(tmp_path: Path) -> None:
    """Ten payloads on four cores: all done, never more cores than there are, and an account to the millisecond."""
    with PilotProcess(str(tmp_path)) as pilot:
        for number in range(10):
            put(pilot.queue, f"p{number}", ["sleep", "0.3"], 2, cores=1 + number % 3)
        line = pilot.end()
        assert pilot.code == 0 and "10 payloads done, 0 failed, 0 requeued" in line
        assert pilot.payloads("done") == {f"p{number}" for number in range(10)}
        assert not pilot.payloads() and not pilot.claimed()
        in_use = most = 0
        cores = {each["payload"]: int(str(each["cores"])) for each in pilot.records("started")}
        for each in pilot.records():
            in_use += cores[each["payload"]] * (1 if each["event"] == "started" else -1)
            most = max(most, in_use)
        assert most <= 4
        check_sums(pilot)


@pytest.mark.parametrize("python", PYTHONS)
def test_it_needs_no_more_than_a_plain_python(tmp_path: Path, python: str) -> None:
    """The system's Python and 3.9, isolated and without site packages, run it."""
    with PilotProcess(str(tmp_path), python=(interpreter(python), "-I", "-S")) as pilot:
        put(pilot.queue, "p", ["sleep", "0.1"], 2)
        pilot.end()
        assert pilot.code == 0 and pilot.payloads("done") == {"p"}


def test_each_event_is_told_in_both_channels(tmp_path: Path) -> None:
    """At every start and end `.pilot.ad` and `$JOBSTATUS` say the same, all nine attributes, and that no core
    is returned; in the end none in use.
    """
    with PilotProcess(str(tmp_path)) as pilot:
        put(pilot.queue, "a", ["sleep", "1"], 20, expected=10, cores=2)
        put(pilot.queue, "b", ["sleep", "2"], 30, expected=5, cores=1)
        wait_for(running(pilot, 3), what="both run")
        ad = pilot.ad()
        first, last = int(ad["FIRST_EXP_JOB_END"]), int(ad["LAST_EXP_JOB_END"])
        assert 4 <= last - first <= 6  # `a` expects 10 s and `b` 5; one may start a little later
        assert 29 <= int(ad["LAST_MAX_JOB_END"]) - int(ad["LAST_JOB_START"]) <= 32
        # Idle from the first end to the last: what `a`, which ends last, does not use. Ends are rounded up.
        waste = int(ad["ADD_FINAL_EXP_WASTE1k"]) * 4 / 1024
        assert (4 - 2) * (last - first) <= waste <= (4 - 2) * (last - first) + 3
        assert ad["CAN_POSTPONE_LAST_JOB"] == "True"
        assert (ad.pop("RETURNED_CORES"), abs(int(ad.pop("RETURNED_SINCE")) - int(ad["LAST_JOB_START"])) < 60) == (
            "0",
            True,
        )
        assert len(ad) == 9
        wait_for(lambda: pilot.status().get("used_CPU") == "3", what="the other channel")
        status = pilot.status()
        assert status["first_exp_job_end"] == ad["FIRST_EXP_JOB_END"]
        assert status["last_max_job_end"] == ad["LAST_MAX_JOB_END"]
        assert abs(int(status["add_final_exp_waste"]) - waste) <= 0.5
        assert status.pop("returned_cores") == "0" and "returned_since" in status
        assert len(status) == 10
        wait_for(running(pilot, 1), what="a has ended")
        wait_for(lambda: pilot.status().get("used_CPU") == "1", what="the other channel")
        pilot.end()
        assert pilot.ad()["USED_FRACTION1k"] == "0" and pilot.status()["used_CPU"] == "0"
        assert pilot.ad()["CAN_POSTPONE_LAST_JOB"] == "False"


def test_the_heartbeat_beats_without_events(tmp_path: Path) -> None:
    """While nothing happens the report is written anew in time."""
    with PilotProcess(str(tmp_path), heartbeat=0.2) as pilot:
        put(pilot.queue, "p", LONG, 55)
        wait_for(running(pilot, 1), what="it runs")
        written = os.stat(f"{pilot.start}/.pilot.ad").st_mtime_ns
        for _ in range(3):
            wait_for(lambda: os.stat(f"{pilot.start}/.pilot.ad").st_mtime_ns > written, what="a heartbeat", seconds=2)  # noqa: B023 - called at once
            written = os.stat(f"{pilot.start}/.pilot.ad").st_mtime_ns


def test_an_overrun_moves_the_estimate(tmp_path: Path) -> None:
    """A payload that runs past its estimate gets a later one, and never one in the past."""
    with PilotProcess(str(tmp_path)) as pilot:
        put(pilot.queue, "p", LONG, 55, expected=1)
        wait_for(running(pilot, 1), what="it runs")
        before = int(pilot.ad()["LAST_EXP_JOB_END"])
        wait_for(lambda: int(pilot.ad()["LAST_EXP_JOB_END"]) > before, what="a later estimate")
        assert int(pilot.ad()["LAST_EXP_JOB_END"]) > time.time()
        assert int(pilot.ad()["LAST_EXP_JOB_END"]) <= int(pilot.ad()["LAST_MAX_JOB_END"])


def order(pilot: PilotProcess, channel: str, deadline: float) -> None:
    """Ask the pilot to go in one of the four ways."""
    if channel == ".site.ad":
        write(f"{pilot.start}/.site.ad", f"VACATE_DESIRED = True\nPAYLOAD_DEADLINE = {deadline:.0f}\n")
    elif channel == "shutdowntime_job":
        write(f"{pilot.job_features}/shutdowntime_job", f"{deadline:.0f}\n")
    elif channel == "shutdowntime":
        write(f"{pilot.machine_features}/shutdowntime", f"{deadline:.0f}\n")
    else:
        os.kill(pilot.pid, signal.SIGTERM)


@pytest.mark.parametrize("channel", [".site.ad", "shutdowntime_job", "shutdowntime", "SIGTERM"])
def test_it_drains_when_ordered(tmp_path: Path, channel: str) -> None:
    """What runs ends in peace, what cannot end in time does not start, both channels say so, and the pilot leaves."""
    with PilotProcess(str(tmp_path)) as pilot:
        put(pilot.queue, "a-runs", ["sleep", "1.5"], 3, cores=3)
        wait_for(running(pilot, 3), what="it runs")
        order(pilot, channel, time.time() + 28)
        wait_for(lambda: pilot.ad()["CAN_POSTPONE_LAST_JOB"] == "False", what="draining")
        wait_for(lambda: pilot.status()["can_postpone_last_job"] == "False", what="draining, in the other channel")
        put(pilot.queue, "b-waits", LONG, 30)
        line = pilot.end()
        assert pilot.code == 0
        assert pilot.payloads("done") == {"a-runs"} and pilot.payloads() == {"b-waits"}
        drain = pilot.report()["drain"]
        assert isinstance(drain, dict)
        assert channel in drain["source"] and 0 < drain["seconds"] < 20 and drain["lost"] == 0
        assert f"after the order ({drain['source']})" in line
        check_sums(pilot)


@pytest.mark.parametrize(("mode", "starts"), [("holes", True), ("deadline", True), ("nothing", False)])
def test_a_short_payload_fills_a_hole_while_draining(tmp_path: Path, mode: str, starts: bool) -> None:
    """A payload that surely ends before the others do may start while the pilot drains, unless told otherwise."""
    with PilotProcess(str(tmp_path), while_draining=mode) as pilot:
        put(pilot.queue, "a-runs", ["sleep", "2"], 30, cores=3, expected=10)
        wait_for(running(pilot, 3), what="it runs")
        order(pilot, ".site.ad", time.time() + 40)
        wait_for(lambda: pilot.ad()["CAN_POSTPONE_LAST_JOB"] == "False", what="draining")
        put(pilot.queue, "b-short", ["sleep", "0.2"], 1)
        pilot.end()
        assert pilot.payloads("done") == ({"a-runs", "b-short"} if starts else {"a-runs"})


@pytest.mark.parametrize("how", ["vanishes", "says False"])
def test_it_resumes_when_the_order_is_withdrawn(tmp_path: Path, how: str) -> None:
    """VACATE_DESIRED = False, or no `.site.ad` any more: payloads start again."""
    with PilotProcess(str(tmp_path)) as pilot:
        put(pilot.queue, "a-runs", ["sleep", "2"], 30, expected=2)
        wait_for(running(pilot, 1), what="it runs")
        order(pilot, ".site.ad", time.time() + 50)
        wait_for(lambda: pilot.ad()["CAN_POSTPONE_LAST_JOB"] == "False", what="draining")
        put(pilot.queue, "b-waits", ["sleep", "0.1"], 40)
        if how == "vanishes":
            os.unlink(f"{pilot.start}/.site.ad")
        else:
            write(f"{pilot.start}/.site.ad", "VACATE_DESIRED = False\n")
        wait_for(lambda: pilot.payloads("done") == {"b-waits"}, what="the waiting one ran")
        assert pilot.ad()["CAN_POSTPONE_LAST_JOB"] == "True"
        assert len(pilot.said("no longer ordered to drain")) == 1
        pilot.end()
        assert pilot.report()["drain"] is None and pilot.payloads("done") == {"a-runs", "b-waits"}


TIDY = "trap 'echo tidied > tidied; exit 0' TERM; touch ready; while :; do sleep 0.05; done"
STUBBORN = "trap '' TERM; touch ready; while :; do sleep 0.05; done"


def ready(pilot: PilotProcess, *names: str) -> Callable[[], bool]:
    """That the payloads have set their traps."""
    return lambda: all(os.path.exists(f"{pilot.start}/payloads/{name}/ready") for name in names)


def test_at_the_deadline_payloads_are_stopped_and_requeued(tmp_path: Path) -> None:
    """TERM, then KILL for the one that ignores it: both are back in the queue with a record, before the deadline."""
    with PilotProcess(str(tmp_path), margin=5) as pilot:
        put(pilot.queue, "tidy", TIDY, 50)
        put(pilot.queue, "stubborn", STUBBORN, 50, cores=2)
        wait_for(ready(pilot, "tidy", "stubborn"), what="traps")
        deadline = time.time() + 8
        order(pilot, ".site.ad", deadline)
        pilot.end()
        assert os.stat(f"{pilot.start}/pilot-report.json").st_mtime < deadline
        assert pilot.code == 0 and pilot.payloads() == {"tidy", "stubborn"} and not pilot.claimed()
        requeued = pilot.records("requeued")
        assert {(each["payload"], each["reason"]) for each in requeued} == {
            ("tidy", "deadline"),
            ("stubborn", "deadline"),
        }
        assert os.path.exists(f"{pilot.start}/payloads/tidy/tidied")
        assert pilot.session() == []
        drain = pilot.report()["drain"]
        assert isinstance(drain, dict) and drain["lost"] > 3
        check_sums(pilot)


def test_a_requeued_payload_runs_again(tmp_path: Path) -> None:
    """The next pilot on the queue takes what the first one had to stop; it has a directory of its own."""
    script = f"echo once; test -e {tmp_path}/again && exit 0; touch ready; while :; do sleep 0.05; done"
    with PilotProcess(str(tmp_path)) as pilot:
        put(pilot.queue, "p", script, 50)
        wait_for(ready(pilot, "p"), what="it runs")
        order(pilot, ".site.ad", time.time())
        pilot.end()
        assert pilot.payloads() == {"p"}
    os.unlink(f"{pilot.start}/.site.ad")
    write(f"{tmp_path}/again", "")
    with PilotProcess(str(tmp_path)) as second:
        second.end()
        assert second.payloads("done") == {"p"}
    assert (tmp_path / "start/payloads/p~2/stdout").read_text() == "once\n"


def test_a_second_sigterm_stops_everything_at_once(tmp_path: Path) -> None:
    """The first SIGTERM lets payloads end within the grace; the second stops and requeues them now."""
    with PilotProcess(str(tmp_path)) as pilot:
        put(pilot.queue, "p", LONG, 55)
        wait_for(running(pilot, 1), what="it runs")
        os.kill(pilot.pid, signal.SIGTERM)
        wait_for(lambda: pilot.said("draining (SIGTERM)"), what="draining")
        assert pilot.claimed() == {"p"}
        os.kill(pilot.pid, signal.SIGTERM)
        pilot.end()
        assert pilot.code == 0 and pilot.payloads() == {"p"}
        assert [each["reason"] for each in pilot.records("requeued")] == ["ordered twice to end"]


def test_a_payload_past_its_maximum_fails(tmp_path: Path) -> None:
    """LAST_MAX_JOB_END is a promise: who runs past the maximum is stopped, recorded as failed and not put back."""
    with PilotProcess(str(tmp_path)) as pilot:
        put(pilot.queue, "p", STUBBORN, 0.8)
        pilot.end()
        assert pilot.code == 0 and pilot.payloads("failed") == {"p"} and not pilot.payloads()
        [failed] = pilot.records("failed")
        assert failed["reason"] == "maximum" and 0.8 <= float(str(failed["seconds"])) < 10
        assert len(pilot.said("past its maximum")) == 1
        check_sums(pilot)


def test_no_payload_is_lost_when_the_pilot_is_killed(tmp_path: Path) -> None:
    """After kill -9 its payloads are not left running, and the next pilot on the queue puts them back with a record."""
    with PilotProcess(str(tmp_path)) as pilot:
        put(pilot.queue, "a", LONG, 55)
        put(pilot.queue, "b", LONG, 55)
        wait_for(running(pilot, 2), what="both run")
        pilot.process.kill()
        pilot.process.wait()
        wait_for(lambda: not pilot.session(), what="the payloads died with it")
        assert pilot.claimed() == {"a", "b"}
    with PilotProcess(str(tmp_path), cores=1) as second:
        put(second.queue, "c", ["true"], 1, priority=5)
        wait_for(lambda: len(second.records("requeued")) == 2, what="both put back")
        wait_for(lambda: second.claimed() in ({"a"}, {"b"}), what="one runs again")
        assert second.payloads() | second.claimed() | second.payloads("done") == {"a", "b", "c"}
        wait_for(lambda: len(second.said("put back: its pilot vanished")) == 2, what="both are said")


def test_two_pilots_share_a_queue(tmp_path: Path) -> None:
    """Each payload is run by one of them, once."""
    names = {f"p{number}" for number in range(30)}
    with PilotProcess(str(tmp_path / "one")) as one:
        with PilotProcess(str(tmp_path / "two"), queue=one.queue, idle_limit=1) as two:
            for name in names:
                put(one.queue, name, ["sleep", "0.1"], 1)
            one.end()
            two.end()
        assert one.payloads("done") == names
        started = [str(each["payload"]) for each in one.records("started")]
        assert sorted(started) == sorted(names)
        assert {each["pilot"] for each in one.records("started")} == {one.report()["pilot"], two.report()["pilot"]}


def test_a_pilot_that_ignores_orders_stays(tmp_path: Path) -> None:
    """With --ignore-orders neither `.site.ad` nor SIGTERM changes anything, and it reports like any other."""
    with PilotProcess(str(tmp_path), ignore_orders=True) as pilot:
        put(pilot.queue, "p", ["sleep", "1"], 5)
        wait_for(running(pilot, 1), what="it runs")
        order(pilot, ".site.ad", time.time() + 1)
        order(pilot, "SIGTERM", 0)
        order(pilot, "SIGTERM", 0)
        pilot.end()
        assert pilot.code == 0 and pilot.payloads("done") == {"p"} and not pilot.said("draining")


def payload_line(name: str, command: list[str], **keys: object) -> str:
    """A payload as a command prints it."""
    return json.dumps({"name": name, "command": command, "maximum": 55, **keys})


def test_payloads_from_a_command(tmp_path: Path) -> None:
    """Run as they come; a line that is none costs a log line; what did not run is written down."""
    first = [payload_line("a", ["sleep", "0.2"]), "rubbish", payload_line("long", LONG)]
    write(f"{tmp_path}/first", "\n".join(first) + "\n")
    write(f"{tmp_path}/then", payload_line("big", LONG, cores=9) + "\n")
    command = f"cat {tmp_path}/first; sleep 0.5; cat {tmp_path}/then; exec sleep 50"
    with PilotProcess(str(tmp_path), queue=None, payload_command=command) as pilot:
        records = f"{pilot.start}/records.jsonl"
        wait_for(lambda: any(each["event"] == "done" for each in json_lines(records)), what="a is done")
        wait_for(lambda: pilot.said("payload big is left to others"), what="the one that is too large")
        assert len(pilot.said("line 2 refused")) == 1
        order(pilot, "SIGTERM", 0)
        wait_for(lambda: pilot.said("draining"), what="draining")
        order(pilot, "SIGTERM", 0)
        pilot.end()
        assert pilot.code == 0
        assert {each["name"] for each in json_lines(f"{pilot.start}/requeued.jsonl")} == {"long", "big"}
        assert pilot.session() == []


def test_nothing_of_the_payloads_is_left(tmp_path: Path) -> None:
    """Neither what a payload leaves in its group, nor what left the session altogether, outlives payload and pilot."""
    # Lengths that nobody else's sleep has: the escaped ones can be found by nothing but their words.
    group, daemon, hidden = (f"{seconds}.{os.getpid()}{time.monotonic_ns()}" for seconds in (57, 58, 59))
    script = f"sleep {group} & setsid sleep {daemon} & setsid sh -c 'setsid env -i sleep {hidden}' & sleep 0.3"
    with PilotProcess(str(tmp_path)) as pilot:
        put(pilot.queue, "p", script, 5)
        put(pilot.queue, "q", ["sleep", "1.5"], 5)
        wait_for(lambda: pilot.payloads("done") == {"p"}, what="p is done")
        wait_for(lambda: not sleepers(group) and not sleepers(daemon), what="what p left is gone before the pilot is")
        assert sleepers(hidden)
        pilot.end()
        assert not sleepers(hidden) and pilot.session() == []


def sleepers(seconds: str) -> list[str]:
    """The processes `sleep SECONDS`."""
    found = []
    for name in filter(str.isdecimal, os.listdir("/proc")):
        try:
            if Path(f"/proc/{name}/cmdline").read_bytes() == f"sleep\0{seconds}\0".encode():
                found.append(name)
        except OSError:
            continue
    return found


def test_it_sleeps_between_events(tmp_path: Path) -> None:
    """Three seconds without an event cost next to no CPU time."""
    with PilotProcess(str(tmp_path), poll=5) as pilot:
        for number in range(4):
            put(pilot.queue, f"p{number}", LONG, 55)
        wait_for(running(pilot, 4), what="all run")

        def spent() -> int:
            fields = Path(f"/proc/{pilot.pid}/stat").read_text().rpartition(")")[2].split()
            return int(fields[11]) + int(fields[12])

        before, until = spent(), time.monotonic() + 3
        wait_for(lambda: time.monotonic() > until, what="three seconds")
        assert (spent() - before) / os.sysconf("SC_CLK_TCK") <= 0.05
