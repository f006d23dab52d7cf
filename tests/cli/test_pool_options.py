"""Where a command's settings come from."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from drainwise.cli import pool_options
from drainwise.cli.pool_options import add_pool_options, settings_of
from drainwise.errors import ConfigurationError
from drainwise.reclaim.settings import Settings
from drainwise.siteconfig import SiteConfig


def settings(*words: str) -> Settings:
    parser = argparse.ArgumentParser()
    add_pool_options(parser)
    return settings_of(parser.parse_args(words))


def test_without_a_site_file_the_defaults_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool_options, "DEFAULT_SITE_FILE", "/nonexistent/site.ini")
    defaults = SiteConfig()
    assert settings() == Settings(
        policy=defaults.reclaim.policy,
        horizon=defaults.reclaim.horizon,
        grace=defaults.reclaim.grace,
        max_grace=defaults.reclaim.max_grace,
        heartbeat_limit=defaults.pilot.heartbeat_limit,
        min_age=defaults.reclaim.min_age,
        max_pilots=defaults.reclaim.max_pilots_per_cycle,
        max_cores_per_user=defaults.reclaim.max_cores_per_user_per_cycle,
    )


SITE = """\
[pilot]
heartbeat_limit = 30m
[reclaim]
policy = paper
horizon = 1h
grace = 90m
max_grace = 3h
max_pilots_per_cycle = 3
max_cores_per_user_per_cycle = 24
"""


def test_the_site_file_counts_and_the_command_line_before_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "site.ini"
    file.write_text(SITE)
    read = settings("--site", str(file))
    assert read == Settings("paper", 3600, 5400, 10800, 1800, 3, 24)
    assert settings("--site", str(file), "--policy", "least-waste").policy == "least-waste"
    monkeypatch.setattr(pool_options, "DEFAULT_SITE_FILE", str(file))
    assert settings() == read


def test_a_site_file_that_was_named_must_be_there() -> None:
    with pytest.raises(ConfigurationError):
        settings("--site", "/nonexistent/site.ini")
