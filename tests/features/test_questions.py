"""Use cases 1 to 8 as numbers: by the keys, and an error that names them where the site does not say."""

from __future__ import annotations

from pathlib import Path

import pytest

from drainwise.cli.main import main
from drainwise.facts.errors import FeatureError
from drainwise.features import questions
from drainwise.features.read import FeatureReader, open_features

NOW = 1_795_249_000
MACHINE = {"total_cpu": "24", "jobslots": "12"}
JOB = {"jobstart_secs": str(NOW - 500), "wall_limit_secs": "7200", "allocated_cpu": "8", "hs06_job": "80"}


def made(place: Path, **keys: str) -> FeatureReader:
    place.mkdir(exist_ok=True)
    for name, value in keys.items():
        (place / name).write_text(f"{value}\n")
    return open_features(str(place))


@pytest.mark.parametrize(
    ("machine", "job", "left"),
    [
        ({}, {}, 6700),
        ({"shutdowntime": str(NOW + 900)}, {}, 900),
        ({"shutdowntime": str(NOW + 900)}, {"shutdowntime_job": str(NOW + 300)}, 300),
        ({"shutdowntime": str(NOW + 9000)}, {}, 6700),
        ({}, {"shutdowntime_job": str(NOW - 5)}, 0),
        ({}, {"wall_limit_secs": "400"}, 0),
    ],
)
def test_the_time_left(tmp_path: Path, machine: dict[str, str], job: dict[str, str], left: int) -> None:
    found = made(tmp_path / "m", **machine), made(tmp_path / "j", **{**JOB, **job})
    assert questions.time_left(*found, NOW) == left


def test_a_shutdown_alone_says_how_much_is_left(tmp_path: Path) -> None:
    found = made(tmp_path / "m", shutdowntime=str(NOW + 60)), made(tmp_path / "j")
    assert questions.time_left(*found, NOW) == 60
    assert questions.planned_shutdown_time(*found, NOW) == NOW + 60
    with pytest.raises(FeatureError, match="no shutdown is planned"):
        questions.planned_shutdown_time(*found, NOW + 60)


def test_the_other_questions(tmp_path: Path) -> None:
    machine, job = made(tmp_path / "m", **MACHINE), made(tmp_path / "j", **JOB)
    assert questions.time_since_start(job, NOW) == 500
    assert questions.power(job) == 80
    assert questions.slots(machine, job) == 4


@pytest.mark.parametrize(
    ("action", "key"),
    [
        ("left", "jobstart_secs"),
        ("ran", "jobstart_secs"),
        ("shutdown", "no shutdown is planned"),
        ("threads", "allocated_cpu"),
        ("slots", "total_cpu"),
        ("disk", "scratch_limit_bytes"),
        ("memory", "max_rss_bytes"),
    ],
)
def test_what_the_site_does_not_say_is_no_number(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], action: str, key: str
) -> None:
    made(tmp_path / "m"), made(tmp_path / "j")
    assert main(["features", action, "--machine", str(tmp_path / "m"), "--job", str(tmp_path / "j")]) == 1
    said = capsys.readouterr()
    assert said.out == "" and key in said.err and said.err.count("\n") == 1


def test_no_score_and_no_cores_are_no_division(tmp_path: Path) -> None:
    with pytest.raises(FeatureError, match="hs06_job"):
        questions.power(made(tmp_path / "j", hs06_job="0"))
    with pytest.raises(FeatureError, match="total_cpu"):
        questions.slots(made(tmp_path / "m", total_cpu="0", jobslots="1"), made(tmp_path / "j", **JOB))


def test_the_rest_takes_its_work_by_the_power(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made(tmp_path / "j", **JOB)
    assert main(["features", "rest", "--work", "36000", "--job", str(tmp_path / "j")]) == 0
    assert capsys.readouterr().out == "450\n"


def test_a_directory_that_is_not_there_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["features", "threads", "--job", str(tmp_path / "absent")]) == 1
    assert "No such file" in capsys.readouterr().err
