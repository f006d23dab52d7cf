"""Promises of the site's word to a running job."""

from __future__ import annotations

from pathlib import Path

import pytest

from drainwise.errors import FeatureError
from drainwise.features.facts import HostFacts, JobFacts
from drainwise.node.job_features import make_features
from drainwise.node.tell import tell

NOW = 1_795_249_000


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """A job's directory with its features."""
    make_features(str(tmp_path), HostFacts(total_cpu=8), JobFacts(allocated_cpu=8), None, NOW)
    return tmp_path


def channels(job: Path) -> dict[str, str]:
    """What stands in the three channels."""
    paths = (".site.ad", ".machinefeatures/shutdowntime", ".jobfeatures/shutdowntime_job")
    return {path: (job / path).read_text() for path in paths if (job / path).exists()}


def test_an_order_stands_in_all_three_channels_and_goes_from_all(job: Path) -> None:
    """A deadline is told by `.site.ad` and both shutdown files, and taken back from all of them."""
    tell(str(job), NOW + 600, None, NOW)
    assert channels(job) == {
        ".site.ad": f"VACATE_DESIRED = True\nPAYLOAD_DEADLINE = {NOW + 600}\n",
        ".machinefeatures/shutdowntime": f"{NOW + 600}\n",
        ".jobfeatures/shutdowntime_job": f"{NOW + 600}\n",
    }
    tell(str(job), None, None, NOW)
    assert channels(job) == {}


def test_a_planned_shutdown_shortens_the_lease_without_a_wish_to_vacate(job: Path) -> None:
    """VACATE_DESIRED is False where only the machine's end is near."""
    tell(str(job), None, NOW + 600, NOW)
    assert channels(job)[".site.ad"] == f"VACATE_DESIRED = False\nPAYLOAD_DEADLINE = {NOW + 600}\n"


def test_the_other_channels_are_told_when_one_cannot_be(job: Path) -> None:
    """A fault in one place is raised after all were tried."""
    (job / ".machinefeatures" / "shutdowntime").mkdir()
    (job / ".machinefeatures" / "shutdowntime" / "filled").touch()
    with pytest.raises(FeatureError, match="shutdowntime"):
        tell(str(job), NOW + 600, None, NOW)
    assert (job / ".site.ad").exists()
    assert (job / ".jobfeatures" / "shutdowntime_job").exists()
