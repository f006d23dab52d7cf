"""What the backend makes of the log, the queue and the history, when they do not agree or one of them is lost.

The schedd is a list of ads here: HTCondor's own ClassAds say for which of them a constraint holds.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import classad2
import pytest

from drainwise.facts.errors import ActionRefused, PoolFull, PoolUnreachable
from drainwise_launch.backend import DONE, RUNNING, VANISHED, WAITING, JobState, LaunchPlace, Start
from drainwise_launch.choice.resources import Resources
from drainwise_launch.htcondor import backend as launch_backend
from drainwise_launch.htcondor.backend import CondorBackend, open_backend
from drainwise_launch.htcondor.schedd import AccessPoint
from drainwise_launch.htcondor.submission import TAG

IDLE, RUNS, HELD = 1, 2, 5
KINDS = ("Run Remote", "Run Local", "Total Remote", "Total Local")
USAGE = "\n".join(f"\t\tUsr 0 00:00:00, Sys 0 00:00:00  -  {kind} Usage" for kind in KINDS)


class Schedd:
    """Its queue, its history, and what it writes into the event log unless that is lost."""

    def __init__(self, log: Path) -> None:
        self.queue: list[dict[str, object]] = []
        self.history: list[dict[str, object]] = []
        self.next, self.loses_events = 1, False
        self.refuses: Exception | None = None
        self.log, self.longest = log, 0

    def submit(self, words: Mapping[str, str]) -> str:
        if self.refuses is not None:
            raise self.refuses
        number, self.next = self.next, self.next + 1
        tag = words[f"My.{TAG}"].strip('"')
        self.queue.append({"ClusterId": number, "ProcId": 0, "JobStatus": IDLE, TAG: tag})
        self.write(number, "000", f"Job submitted from host: <127.0.0.1:1>\n    {words['submit_event_user_notes']}")
        return f"{number}.0"

    def write(self, number: int, kind: str, text: str) -> None:
        if not self.loses_events:
            with self.log.open("a") as file:
                file.write(f"{kind} ({number:03}.000.000) 2026-11-21 23:00:00 {text}\n...\n")

    def end(self, number: int, code: int) -> None:
        """A job ends."""
        (ad,) = [ad for ad in self.queue if ad["ClusterId"] == number]
        self.queue.remove(ad)
        self.history.insert(0, {**ad, "JobStatus": 4, "ExitCode": code})
        self.write(number, "005", f"Job terminated.\n\t(1) Normal termination (return value {code})\n{USAGE}")

    def in_queue(self, constraint: str) -> list[dict[str, object]]:
        return _of(self.queue, constraint)

    def in_history(self, constraint: str, most: int, since: int) -> list[dict[str, object]]:
        return _of(self.history, constraint)[:most]

    def remove(self, constraint: str) -> None:
        self.longest = max(self.longest, len(constraint))
        for ad in _of(self.queue, constraint):
            self.queue.remove(ad)
            self.history.insert(0, {**ad, "JobStatus": 3})

    def set_priorities(self, priorities: Mapping[str, int]) -> None:
        for ad in self.queue:
            ad["JobPrio"] = priorities.get(f"{ad['ClusterId']}.0", 0)


def _of(ads: list[dict[str, object]], constraint: str) -> list[dict[str, object]]:
    holds = classad2.ExprTree(constraint)
    return [ad for ad in ads if holds.eval(classad2.ClassAd(ad)) is True]


@pytest.fixture
def schedd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Schedd:
    made = Schedd(tmp_path / "htcondor-events.log")
    for name in ("submit", "in_queue", "in_history", "remove", "set_priorities"):
        monkeypatch.setattr(AccessPoint, name, getattr(made, name))
    # What a child would do to the lists would be lost.
    monkeypatch.setattr(launch_backend, "within", lambda _seconds, call, _what: call())
    monkeypatch.setattr(launch_backend, "_SOON", 0.0)
    return made


Opener = Callable[[], CondorBackend]


@pytest.fixture
def opened(schedd: Schedd, tmp_path: Path) -> Iterator[Opener]:
    """Opens the backend, again and again as the same launch does."""
    backends: list[CondorBackend] = []

    def open_it() -> CondorBackend:
        backend = open_backend(
            {"history_seconds": 0, "check_seconds": 1}, "", LaunchPlace("f", "key", str(tmp_path), "st")
        )
        assert isinstance(backend, CondorBackend)
        backends.append(backend)
        return backend

    yield open_it
    for backend in backends:
        backend.close()


def job(tag: str) -> Start:
    return Start("n", f"st-{tag}", ("true",), "/", Resources(), "/out")


def states(backend: CondorBackend, *ids: str) -> dict[str, tuple[str, int]]:
    return {number: (state.state, state.code) for number, state in backend.poll(ids).items()}


def test_the_log_tells(schedd: Schedd, opened: Opener) -> None:
    backend = opened()
    number = backend.start(job("a"))
    assert states(backend, number) == {number: (WAITING, 0)}
    schedd.write(1, "001", "Job executing on host: <127.0.0.1:1>")
    schedd.queue[0]["JobStatus"] = RUNS
    assert states(backend, number) == {number: (RUNNING, 0)}
    schedd.end(1, 3)
    assert states(backend, number) == {number: (DONE, 3)}


def test_a_schedd_with_a_new_queue_gives_a_number_anew(
    schedd: Schedd, opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """48: the log and the history have another job of ours with that number, which has ended well."""
    first = opened()
    number = first.start(job("a"))
    schedd.end(1, 0)
    schedd.next = 1
    second = opened()
    assert second.start(job("b")) == number
    assert states(second, number) == {number: (WAITING, 0)}
    schedd.queue.clear()
    monkeypatch.setattr(second, "_asked", 0.0)
    assert states(second, number) == {number: (VANISHED, 0)}


def test_without_its_events_the_queue_and_the_history_tell(schedd: Schedd, opened: Opener) -> None:
    """27: nothing can be written where the log is."""
    schedd.loses_events = True
    backend = opened()
    number = backend.start(job("a"))
    assert states(backend, number) == {number: (WAITING, 0)}
    schedd.queue[0]["JobStatus"] = RUNS
    assert states(backend, number) == {number: (RUNNING, 0)}
    schedd.end(1, 7)
    assert states(backend, number) == {number: (DONE, 7)}


def test_what_nobody_knows_has_vanished(schedd: Schedd, opened: Opener) -> None:
    schedd.loses_events = True
    backend = opened()
    number = backend.start(job("a"))
    schedd.queue.clear()
    assert states(backend, number) == {number: (VANISHED, 0)}


def test_what_is_on_hold_has_failed_and_is_removed(schedd: Schedd, opened: Opener) -> None:
    backend = opened()
    number = backend.start(job("a"))
    schedd.queue[0]["JobStatus"] = HELD
    schedd.write(1, "012", "Job was held.\n\tno such slot\n\tCode 13 Subcode 2")
    assert backend.poll([number]) == {number: JobState(DONE, 1, why="on hold: no such slot")}
    assert not schedd.queue


@pytest.mark.parametrize(("fails", "expected"), [(False, WAITING), (True, DONE)])
def test_what_its_owner_holds_waits_unless_that_is_a_failure(
    schedd: Schedd, tmp_path: Path, fails: bool, expected: str
) -> None:
    backend = open_backend({"fail_held": fails}, "", LaunchPlace("f", "key", str(tmp_path), "st"))
    number = backend.start(job("a"))
    schedd.queue[0]["JobStatus"] = HELD
    schedd.write(1, "012", "Job was held.\n\tmine (by user alice)\n\tCode 1 Subcode 0")
    state = backend.poll([number])[number]
    assert (state.state, state.why) == (expected, "on hold: mine (by user alice)")
    assert len(schedd.queue) == (not fails)


def test_a_stranger_with_the_number_of_one_of_ours_is_left_alone(schedd: Schedd, opened: Opener) -> None:
    """50: neither removed, nor given a priority, nor taken for ours; with a tag of another launch, or with none."""
    backend = opened()
    numbers = [backend.start(job(tag)) for tag in "ab"]
    schedd.queue = [
        {"ClusterId": 1, "ProcId": 0, "JobStatus": RUNS, TAG: "other-a"},
        {"ClusterId": 2, "ProcId": 0, "JobStatus": RUNS},
    ]
    before = [dict(ad) for ad in schedd.queue]
    backend.kill(numbers)
    for one in (backend, opened()):  # which knows the numbers alone
        one.kill(numbers)
        one.reprioritise(dict.fromkeys(numbers, 1e9))
    assert [{key: ad[key] for key in was} for ad, was in zip(schedd.queue, before)] == before
    assert all(not ad["JobPrio"] for ad in schedd.queue)
    assert backend.find(["other-a"]) == {}


def test_many_jobs_are_removed(schedd: Schedd, opened: Opener) -> None:
    """Not all in one constraint: the schedd would go as deep into it as it has terms."""
    backend = opened()
    numbers = [backend.start(job(str(place))) for place in range(450)]
    backend.kill(numbers[1:])
    assert [ad["ClusterId"] for ad in schedd.queue] == [1]
    assert schedd.longest < 30_000


def test_a_start_is_found_by_log_queue_or_history(schedd: Schedd, opened: Opener) -> None:
    first = opened()
    logged = first.start(job("a"))
    schedd.queue.clear()  # and the history knows nothing either
    schedd.loses_events = True
    queued, ended = first.start(job("b")), first.start(job("c"))
    schedd.end(3, 0)
    found = {"st-a": logged, "st-b": queued, "st-c": ended}
    assert opened().find(["st-a", "st-b", "st-c", "st-d"]) == found


def test_log_and_scripts_go_with_the_last_job(schedd: Schedd, opened: Opener, tmp_path: Path) -> None:
    backend = opened()
    numbers = [backend.start(job(tag)) for tag in "ab"]
    schedd.end(1, 0)
    assert states(backend, *numbers)["1.0"] == (DONE, 0)
    backend.close()
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["htcondor-events.log", "htcondor-scripts", "st-b"]
    again = opened()
    schedd.end(2, 0)
    assert states(again, "2.0") == {"2.0": (DONE, 0)}
    again.close()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("fault", [ActionRefused("no"), PoolFull("full")])
def test_what_was_not_submitted_leaves_nothing(
    schedd: Schedd, opened: Opener, tmp_path: Path, fault: Exception
) -> None:
    schedd.refuses = fault
    with pytest.raises(type(fault)):
        opened().start(job("a"))
    assert not list((tmp_path / "htcondor-scripts").iterdir())


def test_a_script_that_cannot_be_written_is_no_failure_of_the_job(
    schedd: Schedd, opened: Opener, tmp_path: Path
) -> None:
    """27."""
    backend = opened()
    (tmp_path / "htcondor-scripts").rmdir()
    with pytest.raises(PoolUnreachable, match="cannot be written"):
        backend.start(job("a"))


@pytest.mark.parametrize(
    ("sizes", "resources", "why"),
    [
        ([(8, 4000), (2, 9000)], Resources(8, 4000), ""),
        (
            [(8, 4000), (2, 9000)],
            Resources(3, 5000),
            "no slot has 3 cores and 5000 MiB; the largest has 8 and 4000 MiB",
        ),
        ([], Resources(), "the pool has no slots now"),
    ],
)
def test_what_no_slot_can_hold_is_refused_where_that_is_asked_for(
    schedd: Schedd,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    sizes: list[tuple[int, int]],
    resources: Resources,
    why: str,
) -> None:
    """Else it waits: a pool may get larger slots."""
    monkeypatch.setattr(AccessPoint, "slot_sizes", lambda _: sizes)
    place = LaunchPlace("f", "key", str(tmp_path), "st")
    assert open_backend({"check_slots": True}, "", place).fits(resources) == why
    assert open_backend({}, "", place).fits(resources) == ""


def test_files_below_a_name_that_htcondor_cannot_use_are_not_carried(opened: Opener) -> None:
    with pytest.raises(ActionRefused, match="cannot use a directory"):
        opened().start(Start("n", "st-a", ("true",), '/a"b', Resources(), '/a"b/out', outputs=("c",)))


@pytest.mark.daemons  # it waits for what never answers
def test_a_pool_that_never_answers_is_given_up(
    in_a_silent_pool: Callable[[str], subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    """HOSTILE 54: the real bindings against a real socket that takes connections and says nothing."""
    ran = in_a_silent_pool(
        "from drainwise.common.bounded_call import within\n"
        "from drainwise.facts.errors import PoolUnreachable\n"
        "from drainwise_launch.htcondor.backend import open_backend\n"
        "from drainwise_launch.htcondor.schedd import AccessPoint\n"
        "from drainwise_launch.backend import LaunchPlace\n"
        f"place = LaunchPlace('f', 'k', '{tmp_path}/runs', 'v-')\n"
        "for ask in (lambda: open_backend({'command_seconds': 1}, '', place),\n"
        "            lambda: within(1, AccessPoint().slot_sizes, 'the collector')):\n"
        "    try:\n        ask()\n        print('answered')\n"
        "    except PoolUnreachable as fault:\n        print(fault)\n"
    )
    assert ran.stdout.splitlines() == [f"the {name} did not answer within 1 s" for name in ("schedd", "collector")], (
        ran.stderr
    )
