"""A lease is what the features say, narrowed by options, and never a guess."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.facts.errors import FeatureError, UsageError
from drainwise.pilot.decide.lease import Lease, lease_from

from .work import T0


def features(place: Path, **values: object) -> dict[str, str]:
    """An environment with a $JOBFEATURES that says this."""
    for key, value in values.items():
        (place / key).write_text(f"{value}\n")
    return {"JOBFEATURES": str(place)}


def test_the_features_say_it_all(tmp_path: Path) -> None:
    """Cores, start and end are those of the job, not of the moment the pilot looks."""
    environment = features(tmp_path, allocated_cpu=8, jobstart_secs=T0 - 100, wall_limit_secs=86400)
    assert lease_from(environment, None, None, T0) == Lease(8, T0 - 100, T0 - 100 + 86400)


def test_an_older_site_says_it_in_the_drafts_words(tmp_path: Path) -> None:
    """`allocated_CPU` counts where the 2016 key is absent."""
    environment = features(tmp_path, allocated_CPU=4, jobstart_secs=T0, wall_limit_secs=10)
    assert lease_from(environment, None, None, T0).cores == 4


@given(st.integers(1, 64), st.integers(1, 64), st.integers(1, 9999), st.integers(1, 9999))
def test_an_option_narrows_and_never_widens(told: int, cores: int, limit: int, seconds: int) -> None:
    """Whatever the options, the lease is within what the site gave."""
    reader = {"allocated_cpu": told, "jobstart_secs": T0 - 50, "wall_limit_secs": limit}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("drainwise.features.read.DirectoryReader.integer", lambda self, key: reader.get(key))
        lease = lease_from({"JOBFEATURES": "/made/up"}, cores, seconds, T0)
    assert lease == Lease(min(told, cores), T0 - 50, min(T0 - 50 + limit, T0 + seconds))


def test_options_alone() -> None:
    """Without features the options are the lease, from now on."""
    assert lease_from({}, 8, 3600, T0 + 0.5) == Lease(8, T0 + 0.5, T0 + 3600.5)


def test_options_fill_what_the_features_leave_out(tmp_path: Path) -> None:
    """A site without a limit needs the option for the length only."""
    environment = features(tmp_path, allocated_cpu=8, jobstart_secs=T0 - 10)
    assert lease_from(environment, None, 60, T0) == Lease(8, T0 - 10, T0 + 60)


def test_a_batch_system_whose_clock_is_ahead(tmp_path: Path) -> None:
    """The pilot began no later than now; the end is the site's."""
    environment = features(tmp_path, allocated_cpu=1, jobstart_secs=T0 + 30, wall_limit_secs=100)
    assert lease_from(environment, None, None, T0) == Lease(1, T0, T0 + 130)


@pytest.mark.parametrize(
    ("told", "cores", "seconds", "named"),
    [
        ({}, None, 60, "allocated_cpu"),
        ({"allocated_cpu": 8}, None, None, "wall_limit_secs"),
        ({"allocated_cpu": 0, "wall_limit_secs": 10}, None, None, "allocated_cpu"),
        ({}, 0, 60, "cores"),
        ({}, 8, 0, "seconds"),
        ({}, 8, float("nan"), "seconds"),
    ],
)
def test_what_is_not_known_is_asked_for(
    tmp_path: Path, told: dict[str, object], cores: int | None, seconds: float | None, named: str
) -> None:
    """The error names the key that does not say it, so that the reader knows which option to give."""
    with pytest.raises(UsageError, match=named):
        lease_from(features(tmp_path, **told), cores, seconds, T0)


def test_an_open_end() -> None:
    """A pilot that only speaks need not know its end."""
    assert lease_from({}, 8, None, T0, open_ended=True) == Lease(8, T0, None)


def test_garbage_is_no_lease(tmp_path: Path) -> None:
    """A pilot that takes garbage for a number stops or never stops: the file is named instead."""
    environment = features(tmp_path, allocated_cpu="eight", wall_limit_secs=60)
    with pytest.raises(FeatureError, match="allocated_cpu"):
        lease_from(environment, None, None, T0)


def test_a_directory_that_is_gone(tmp_path: Path) -> None:
    """It says nothing; the options do."""
    assert lease_from({"JOBFEATURES": str(tmp_path / "gone")}, 2, 60, T0) == Lease(2, T0, T0 + 60)
