"""Where a command's settings come from."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from drainwise.cli import pool_options
from drainwise.cli.pool_options import add_pool_options, settings_of
from drainwise.errors import ConfigurationError
from drainwise.reclaim.settings import Settings, Trust
from drainwise.siteconfig import SiteConfig


def settings(*words: str) -> Settings:
    parser = argparse.ArgumentParser()
    add_pool_options(parser)
    return settings_of(parser.parse_args(words))


def test_without_a_site_file_the_defaults_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool_options, "DEFAULT_SITE_FILE", "/nonexistent/site.ini")
    """Each default stands once in the table of keys and once where a bound is explained: they agree."""
    defaults = SiteConfig()
    assert settings() == Settings(
        policy=defaults.reclaim.policy,
        horizon=defaults.reclaim.horizon,
        grace=defaults.reclaim.grace,
        max_grace=defaults.reclaim.max_grace,
        heartbeat_limit=defaults.pilot.heartbeat_limit,
        max_cores=defaults.reclaim.max_cores_per_cycle,
        max_cores_per_user=defaults.reclaim.max_cores_per_user_per_cycle,
        max_cores_per_user_hour=defaults.reclaim.max_cores_per_user_per_hour,
    )


SITE = """\
[pilot]
heartbeat_limit = 30m
[reclaim]
policy = paper
horizon = 1h
grace = 90m
max_grace = 3h
margin = 10m
drain_only = yes
min_age = 2m
min_between_acts = 5m
max_cores_per_cycle = 48
max_cores_per_user_per_cycle = 24
max_cores_per_user_per_hour = 96
[features]
grace_job = 20m
[htcondor]
max_vacate_time = 8m
[trust]
window = 2d
pilots = 7
tolerance = 10
spared = 500
"""


def test_the_site_file_counts_and_the_command_line_before_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "site.ini"
    file.write_text(SITE)
    read = settings("--site", str(file))
    assert read == Settings(
        "paper",
        horizon=3600,
        grace=5400,
        max_grace=10800,
        heartbeat_limit=1800,
        max_cores=48,
        max_cores_per_user=24,
        max_cores_per_user_hour=96,
        margin=600,
        notice=1200,
        vacate=480,
        min_age=120,
        min_between_acts=300,
        drain_only=True,
        trust=Trust(172_800, 7, 10, 500),
    )
    assert settings("--site", str(file), "--policy", "least-waste").policy == "least-waste"
    monkeypatch.setattr(pool_options, "DEFAULT_SITE_FILE", str(file))
    assert settings() == read


def test_a_site_file_that_was_named_must_be_there() -> None:
    with pytest.raises(ConfigurationError):
        settings("--site", "/nonexistent/site.ini")
