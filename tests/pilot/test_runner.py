"""The loop's own promises that need no real time: a clock that is set, batches of starts, one that cannot start."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from apart import apart
from drainwise.pilot.channels import Channels, SiteNoticeReader
from drainwise.pilot.decide.lease import Lease, ReturnedCores
from drainwise.pilot.decide.payload import Backlog, Payload
from drainwise.pilot.decide.settings import PilotSettings
from drainwise.pilot.lease_record import ExitReport
from drainwise.pilot.processes import Processes
from drainwise.pilot.queues.records import EndedPayload
from drainwise.pilot.runner import START_BATCH, PilotClock, PilotRunner
from real_daemons.waiting import wait_for


class Listed:
    """A queue that is a list, and what was told to it."""

    def __init__(self, *payloads: Payload) -> None:
        self.payloads, self.told = list(payloads), list[tuple[str, str]]()

    def look(self, now: float) -> bool:
        return False

    def waiting(self) -> Backlog:
        return Backlog(self.payloads)

    def claim(self, payload: Payload, now: float) -> bool:
        self.payloads.remove(payload)
        self.told.append(("claimed", payload.name))
        return True

    def finished(self, ended: EndedPayload, now: float) -> None:
        self.told.append((f"ended {ended.code} {ended.stopped}".strip(), ended.payload.name))

    def requeue(self, payload: Payload, reason: str, seconds: float, now: float) -> None:
        self.told.append((f"requeued {reason}", payload.name))

    def unclaim(self, payload: Payload, reason: str, now: float) -> None:
        self.payloads.insert(0, payload)
        self.told.append((reason, payload.name))

    def refuse(self, payload: Payload, reason: str, now: float) -> None:
        self.payloads.remove(payload)
        self.told.append(("refused", payload.name))

    def more_may_come(self) -> bool:
        return False

    def fileno(self) -> int | None:
        return None

    def close(self, now: float) -> None:
        self.told.append(("closed", ""))


class Slow(Processes):
    """Processes whose start takes a while, or fails once, by the clock of the test."""

    def __init__(self, place: Path, clock: dict[str, float], seconds: float = 0, fault: int = 0) -> None:
        super().__init__(str(place), os.environ, "one", 0.5)
        self._test_clock, self._seconds, self._fault = clock, seconds, fault

    def start(self, payload: Payload, now: float) -> None:
        self._test_clock["steady"] += self._seconds
        self._test_clock["wall"] += self._seconds
        if self._fault:
            fault, self._fault = self._fault, 0
            raise OSError(fault, os.strerror(fault))
        super().start(payload, now)


def sleeps(name: str, seconds: float = 60, maximum: float = 60, cores: int = 1) -> Payload:
    return Payload(name, cores, ("sleep", str(seconds)), maximum, maximum)


class Pilot:
    """A runner on clocks that the test sets, with real processes and files."""

    def __init__(
        self, place: Path, queue: Listed, cores: int = 8, seconds: float = 0, fault: int = 0, returns: bool = False
    ) -> None:
        self.time = {"wall": 1_795_249_000.0, "steady": 100.0}
        self.place, self.said = place, list[str]()
        clock = PilotClock(lambda: self.time["wall"], lambda: self.time["steady"])
        lease = Lease(cores, clock.now(), clock.now() + 1000)
        self.processes = Slow(place, self.time, seconds, fault)
        channels = Channels(str(place), None, cores, self.said.append)
        watch = SiteNoticeReader(str(place), {}, self.said.append)
        part = ReturnedCores(cores, clock.now(), memory=100) if returns else None
        settings, say = PilotSettings(), self.said.append
        self.runner = PilotRunner(
            "one", lease, settings, queue, self.processes, channels, watch, say, clock, False, None, part
        )

    def pass_by(self, seconds: float) -> None:
        for name in self.time:
            self.time[name] += seconds

    def round(self) -> bool:
        """One step; whether another one follows at once."""
        until = self.runner.step()
        return until is not None and until <= self.time["wall"]

    def end(self) -> ExitReport:
        return self.runner.end("the test is over")


@apart
def test_a_clock_that_is_set_ends_no_payload(tmp_path: Path) -> None:
    """HOSTILE 53: set forward by a day, every payload has run as long as before, and the lease is as long as before."""
    queue = Listed(sleeps("p"))
    pilot = Pilot(tmp_path, queue)
    pilot.round()
    pilot.pass_by(10)
    for step in (86400.0, -2 * 86400.0):
        pilot.time["wall"] += step
        assert not pilot.round()
        assert queue.told == [("claimed", "p")]
        [running] = pilot.runner.workload.running.values()
        assert running.start == pytest.approx(pilot.time["wall"] - 10)
        assert running.maximum_end == pytest.approx(pilot.time["wall"] + 50)
    assert len(pilot.said) == 2 and "the clock was set by +86400 s" in pilot.said[0]
    pilot.pass_by(51)
    pilot.round()
    assert pilot.end().core_seconds.lease == pytest.approx(8 * 61)
    assert ("ended -15 maximum", "p") in queue.told


@apart
def test_many_starts_are_told_in_between(tmp_path: Path) -> None:
    """Starting a thousand payloads takes a while: the pilot tells and listens at least every half second."""
    pilot = Pilot(tmp_path, Listed(*(sleeps(f"p{number}") for number in range(8))), seconds=0.2)
    assert pilot.round()
    running = len(pilot.runner.workload.running)
    assert 0 < running <= START_BATCH / 0.2 + 1
    assert f"USED_FRACTION1k = {running * 128}\n" in (tmp_path / ".pilot.ad").read_text()
    while pilot.round():
        continue
    assert len(pilot.runner.workload.running) == 8
    pilot.end()


class Contested(Listed):
    """A queue of which others take the first payloads."""

    def __init__(self, lost: int, *payloads: Payload) -> None:
        super().__init__(*payloads)
        self._lost = lost

    def claim(self, payload: Payload, now: float) -> bool:
        self._lost -= 1
        if self._lost < 0:
            return super().claim(payload, now)
        self.payloads.remove(payload)
        return False


@apart
def test_cores_are_not_stated_as_idle_because_another_pilot_was_faster(tmp_path: Path) -> None:
    """Pilots that share a queue begin together, and a site that reads them just then would end the idle ones first."""
    pilot = Pilot(tmp_path, Contested(2, *(sleeps(name, cores=8) for name in "abc")))
    assert pilot.round() and pilot.round()
    assert not (tmp_path / ".pilot.ad").exists()
    pilot.round()
    assert "USED_FRACTION1k = 1024\n" in (tmp_path / ".pilot.ad").read_text()
    pilot.end()


@apart
def test_a_pilot_that_is_always_too_late_reports_all_the_same(tmp_path: Path) -> None:
    """Half a second after a report is due it says what is."""
    pilot = Pilot(tmp_path, Contested(9, *(sleeps(name, cores=8) for name in "abcdefghi")))
    pilot.round()
    pilot.pass_by(START_BATCH)
    pilot.round()
    assert "USED_FRACTION1k = 0\n" in (tmp_path / ".pilot.ad").read_text()
    pilot.end()


@apart
def test_one_that_cannot_start_goes_back(tmp_path: Path) -> None:
    """No space, no processes: a line, the payload waits again, and the next try is 30 s later, not at once."""
    queue = Listed(sleeps("a"), sleeps("b"))
    pilot = Pilot(tmp_path, queue, fault=errno.ENOSPC)
    assert not pilot.round() and not pilot.round()
    assert queue.told == [("claimed", "a"), ("not started: No space left on device", "a")]
    assert len(pilot.said) == 1 and "payload a cannot be started now: No space left on device" in pilot.said[0]
    pilot.pass_by(31)
    pilot.round()
    assert queue.told[2:] == [("claimed", "a"), ("claimed", "b")]
    pilot.end()
    *requeued, closed = queue.told[4:]  # whichever process ends first
    assert sorted(requeued) == [("requeued the pilot ended", "a"), ("requeued the pilot ended", "b")]
    assert closed == ("closed", "")


@apart
def test_a_failing_pilot_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever breaks inside: payloads are ended and requeued, and the report says that nothing is in use."""
    queue = Listed(sleeps("a"))
    pilot = Pilot(tmp_path, queue)

    step = pilot.runner.step

    def break_down(signals: int = 0) -> float | None:
        step(signals)
        raise RuntimeError("a defect")

    monkeypatch.setattr(pilot.runner, "step", break_down)
    with pytest.raises(RuntimeError, match="a defect"):
        pilot.runner.run()
    assert queue.told == [("claimed", "a"), ("requeued the pilot ended", "a"), ("closed", "")]
    assert "USED_FRACTION1k = 0\n" in (tmp_path / ".pilot.ad").read_text()


@apart
def test_work_is_saved_right_before_an_order_ends_it(tmp_path: Path) -> None:
    """Once for each order, as late as its seconds allow; the report says since when nothing is saved, and that nothing
    was where the command fails.
    """
    saves = {name: ("sh", "-c", f"echo . >> saved; exit {code}") for name, code in (("good", 0), ("bad", 1))}
    payloads = (Payload(name, 1, ("sleep", "60"), 900, 900, checkpoint=saves[name]) for name in saves)
    pilot = Pilot(tmp_path, Listed(*payloads))
    by, margin = round(pilot.time["wall"]) + 400, PilotSettings().margin

    def said() -> dict[str, str]:
        return dict(line.split(" = ") for line in (tmp_path / ".pilot.ad").read_text().splitlines())

    pilot.round()
    begun = pilot.time["wall"]
    assert (said()["LAST_CHECKPOINT"], said()["CHECKPOINT_SECONDS"]) == (f"{begun:.0f}", "60")
    (tmp_path / ".site.ad").write_text(
        f"VACATE_DESIRED = True\nPAYLOAD_DEADLINE = {by}\nCHECKPOINT_DESIRED = True\nCHECKPOINT_BY = {by}\n"
    )
    pilot.pass_by(60)
    assert pilot.runner.step() is not None
    assert not list(tmp_path.glob("payloads/*/saved"))
    pilot.pass_by(by - margin - 60 - pilot.time["wall"])
    pilot.round()
    asked = pilot.time["wall"]
    wait_for(lambda: pilot.round() or asked in [one.at for one in pilot.runner.workload.checkpoints])
    wait_for(lambda: pilot.round() or [line for line in pilot.said if "is not saved" in line])
    pilot.pass_by(20)
    pilot.round()
    assert [path.read_text() for path in tmp_path.glob("payloads/*/saved")] == [".\n", ".\n"]
    assert "payload bad is not saved: its checkpoint command ended with 1" in pilot.said
    assert (said()["LAST_CHECKPOINT"], said()["LAST_JOB_START"]) == (f"{begun:.0f}", f"{asked:.0f}")
    pilot.end()


@apart
def test_cores_are_given_back_and_used_again(tmp_path: Path) -> None:
    """Asked for two of 4 cores it returns each when a payload ends, runs the others on, and uses cores again only when
    the site has acknowledged that; the core-seconds that were returned are neither idle nor useful.
    """
    queue = Listed(*(sleeps(f"p{number}", maximum=900) for number in range(6)))
    pilot = Pilot(tmp_path, queue, cores=4, returns=True)

    def later(*lines: str) -> dict[str, str]:
        """The report ten seconds later, with such a notice."""
        (tmp_path / ".site.ad").write_text("\n".join(("VACATE_DESIRED = False", *lines)))
        pilot.pass_by(10)
        pilot.round()
        text = (tmp_path / ".pilot.ad").read_text()
        return dict(line.split(" = ") for line in text.splitlines() if line.startswith("RETURNED"))

    def end(name: str) -> None:
        pilot.processes.stop(name, "the test", pilot.time["wall"])
        wait_for(lambda: pilot.runner._reap(pilot.time["wall"]))

    pilot.round()
    assert set(pilot.runner.workload.running) == {"p0", "p1", "p2", "p3"}
    assert later()["RETURNED_CORES"] == "0"
    end("p0")
    assert later("RETURN_CORES = 2") == {
        "RETURNED_CORES": "1",
        "RETURNED_MEMORY": "100",
        "RETURNED_SINCE": f"{pilot.time['wall']:.0f}",
    }
    end("p1")
    stated = later("RETURN_CORES = 2")
    assert (stated["RETURNED_CORES"], set(pilot.runner.workload.running)) == ("2", {"p2", "p3"})
    end("p2")
    later("RETURN_CORES = 2")
    assert set(pilot.runner.workload.running) == {"p3", "p4"}, "what is not asked for is filled again"
    less = later(f"RETURN_SEEN = {stated['RETURNED_SINCE']}", "USABLE_CORES = 4")
    assert less["RETURNED_CORES"] == "0"
    assert set(pilot.runner.workload.running) == {"p3", "p4"}, "this acknowledges another statement"
    later(f"RETURN_SEEN = {less['RETURNED_SINCE']}", "USABLE_CORES = 3")
    assert set(pilot.runner.workload.running) == {"p3", "p4", "p5"}
    later(f"RETURN_SEEN = {less['RETURNED_SINCE']}", "USABLE_CORES = 4")
    report = pilot.end()
    assert report.core_seconds.returned == pytest.approx(1 * 10 + 2 * 10 + 2 * 10 + 2 * 10 + 1 * 10)
    spent = report.core_seconds
    assert spent.lease == spent.useful + spent.failed + spent.lost + spent.idle + spent.returned
    assert report.as_line().endswith("idle, 80 returned")
    assert "returned 2 of 4 cores, payloads may use 2" in pilot.said
