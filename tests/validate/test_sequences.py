"""A request of several sequences: each is measured, checked and adjusted on its own, and submitted together."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from drainwise.facts.errors import ConfigurationError
from drainwise_tasks.validate import machine
from drainwise_tasks.validate.checks import MEMORY, SIZE, TIME, RequestEstimates, check_run
from drainwise_tasks.validate.measurement import Measurement, parse_measurement
from drainwise_tasks.validate.report import as_json, rows, submission, verdict
from drainwise_tasks.validate.request import FurtherSequence, Request, load_request, request_of
from drainwise_tasks.validate.request import as_json as request_as_json
from drainwise_tasks.validate.start import REPORT, RUNNER_WORDS, Run, prepare
from drainwise_tasks.validate.state import text_of, validation_in
from drainwise_tasks.validate.thresholds import MCM

SECOND = FurtherSequence(("reco", "-j{cores}"), 4.0, 50.0)
REQUEST = Request("r", ("gen",), 100, 1.0, 100.0, 2300, can_thread=True, cores=(2,), following=(SECOND,))


def sequence(time: float, size: float, events: int = 100, written: int = 100, **facts: int) -> Measurement:
    """One sequence on one core at 80 per cent in 1000 MB, when nothing else is said."""
    wall = time * events
    cores, peak = facts.get("cores", 1), facts.get("peak", 1000)
    cpu = wall * cores * facts.get("efficiency", 80) / 100
    return Measurement(cores, events, written, int(size * 1000 * written), wall, cpu, peak * 10**6)


def run(first: Measurement, second: Measurement) -> Measurement:
    return replace(first, following=(second,))


GOOD = run(sequence(1.0, 100.0), sequence(4.0, 50.0))


def missed(measured: Measurement) -> set[str]:
    checks = check_run(measured, REQUEST.estimates, REQUEST.limits)
    return {check.name for check in checks if not check.passed}


def test_each_sequence_is_checked_against_its_own_claim() -> None:
    """Time and size by sequence; the largest peak counts."""
    assert missed(GOOD) == set()
    assert missed(run(sequence(4.0, 50.0), sequence(1.0, 100.0))) == {
        f"{check} of sequence {number}" for check in (TIME, SIZE) for number in (1, 2)
    }
    assert missed(run(sequence(1.0, 100.0), sequence(4.0, 50.0, peak=2301))) == {MEMORY}


def test_the_filter_efficiency_is_the_product() -> None:
    """Half of the events come through the first sequence, half of these through the second."""
    halves = run(sequence(1.0, 100.0, 10_000, 5000), sequence(4.0, 50.0, 5000, 2500))
    assert halves.whole_filter_efficiency == 0.25
    limits = replace(REQUEST.limits, filter_efficiency=0.25)
    assert all(check.passed for check in check_run(halves, REQUEST.estimates, limits))
    [least] = [one for one in check_run(halves, REQUEST.estimates, limits, MCM) if one.name == "events written"]
    assert least.measured == 2500


def test_what_is_out_of_range_alone_is_adjusted() -> None:
    """The second sequence's time moves by three quarters; the next try is held against it."""
    validation = machine.measured(machine.begin(REQUEST, "id"), "1c-1", run(sequence(1.0, 100.0), sequence(8.0, 50.0)))
    expected = RequestEstimates(1.0, 100.0, (RequestEstimates(7.0, 50.0),))
    assert validation.steps[-1].estimates == expected
    assert rows(validation)[0][-1].endswith("next try with 1+7 s, 100+50 kB")
    again = machine.measured(validation, "1c-2", run(sequence(1.0, 100.0), sequence(8.0, 50.0)))
    assert [step.label for step in machine.with_state(again, machine.PLANNED)] == ["2c-1"]
    assert validation_in(text_of(again), "f") == again


def test_the_cpu_efficiency_is_weighed_by_time_per_event() -> None:
    """(0.5·1 + 0.9·4)/5 = 82 %, above 70 %, though the first sequence is below."""
    validation = machine.measured(machine.begin(REQUEST, "id"), "1c-1", GOOD)
    two = run(
        sequence(1.0, 100.0, cores=2, efficiency=50, peak=1500), sequence(4.0, 50.0, cores=2, efficiency=90, peak=2500)
    )
    validation = machine.measured(validation, "2c-1", two)
    chosen = submission(validation)
    assert chosen is not None and chosen.cores == 2 and chosen.cpu_efficiency == pytest.approx(0.82)
    assert (chosen.time_per_event, chosen.size_per_event, chosen.memory) == (5.0, 150.0, 3000)
    assert [one.memory for one in chosen.sequences] == [2000, 3000]
    assert "2 cores, 3000 MB, 5 s and 150 kB per event" in verdict(validation)
    assert rows(validation)[1][4:9] == ("1+4", "100+50", "2500", "1", "82 %")
    [_, step] = json.loads(json.dumps(as_json(validation)))["steps"]
    assert step["claimed"]["following"] == [{"time_per_event": 4.0, "size_per_event": 50.0}]
    assert step["measured"]["following"][0]["peak_rss"] == 2500


LEAST = {
    "name": "r",
    "command": ["{here}/gen"],
    "events": 1,
    "time_per_event": 1,
    "size_per_event": 1,
    "memory": 2000,
    "can_thread": False,
}
TABLE = {"command": ["{here}/reco", "{cores}"], "time_per_event": 4, "size_per_event": 50}


def test_sequences_in_a_request_file(tmp_path: Path) -> None:
    """Their commands are filled in as the first one is; the state holds them."""
    path = tmp_path / "r.json"
    path.write_text(json.dumps({**LEAST, "following": [TABLE]}))
    request = load_request(str(path))
    validation = machine.begin(request, "id")
    assert machine.run_of(validation, validation.steps[0]).following == ((f"{tmp_path}/reco", "1"),)
    assert request_of(request_as_json(request), "again") == request


@pytest.mark.parametrize(
    ("following", "expected"),
    [
        ({"command": ["x"]}, "following = .* expected tables of further sequences"),
        ([{"command": ["x"]}], r"\[sequence 2\] time_per_event = 'missing'"),
        ([TABLE, {**TABLE, "events": 3}], r"\[sequence 3\] events = '3'"),
        ([{**TABLE, "command": [""]}], r"\[sequence 2\] command = ''"),
        ([TABLE] * 20, "fewer than 20"),
    ],
)
def test_wrong_sequences_are_named(following: object, expected: str) -> None:
    """File, sequence, key, value and what was expected."""
    with pytest.raises(ConfigurationError, match=expected):
        request_of({**LEAST, "following": following}, "f")


PART = {"measured": {"wall_seconds": 2.0, "cpu_seconds": 1.0, "peak_rss_bytes": 10**6}, "fault": ""}


def test_a_report_of_several_sequences() -> None:
    """A further one runs what the one before wrote, unless it says otherwise; a missing one is no report."""
    first = {**PART, "reported": {"written": 40, "output_bytes": 1}}
    second = {**PART, "reported": {"written": 10, "output_bytes": 1}}
    found = parse_measurement(json.dumps({**first, "following": [second]}).encode(), 1, 100, 2)
    assert [one.events for one in found.sequences] == [100, 40]
    with pytest.raises(ValueError, match="not of 2 sequences"):
        parse_measurement(json.dumps(first).encode(), 1, 100, 2)
    with pytest.raises(ValueError, match="sequence 2: written = missing"):
        parse_measurement(json.dumps({**first, "following": [{**PART, "reported": {}}]}).encode(), 1, 100, 2)


@pytest.mark.daemons
def test_the_runner_runs_them_one_after_the_other(tmp_path: Path) -> None:
    """In one directory; CPU time and memory of each are its own; the first that fails is the last."""

    def ran(place: Path, *shell: str) -> int:
        first, *others = [("sh", "-c", one) for one in shell]
        place.mkdir()
        prepare(str(place), Run("r", 1, 2000, 4, 60, first, following=tuple(others)))
        return subprocess.run([sys.executable, *RUNNER_WORDS], cwd=place, check=False, timeout=60).returncode

    say = 'echo "{\\"written\\": $(cat made), \\"output_bytes\\": 1000}" > $DRAINWISE_VALIDATION_REPORT;'
    program = 'x = bytearray(b"x") * {}\nimport time\nwhile time.process_time() < {}: pass'
    long, brief = (f"{sys.executable} -I -S -c '{program.format(*each)}';" for each in ((10**8, 0.4), (5 * 10**7, 0)))
    assert ran(tmp_path / "well", f"{long} echo 4 > made; {say}", f"{brief} echo 2 > made; {say}") == 0
    found = parse_measurement((tmp_path / "well" / REPORT).read_bytes(), 1, 4, 2)
    first, second = found.sequences
    assert (first.written, second.events, second.written) == (4, 4, 2)
    assert first.cpu_seconds >= 0.4 > second.cpu_seconds
    assert 150 > first.peak_rss > 100 > second.peak_rss > 50
    assert ran(tmp_path / "badly", "exit 3", "touch ../../never") == 3
    assert not (tmp_path / "never").exists()
