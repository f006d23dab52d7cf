"""Where a command's settings come from."""

from __future__ import annotations

import argparse
import importlib.util
from pathlib import Path

import pytest
from pytest_mock import MockerFixture

from drainwise.cli import pool_options, site_file
from drainwise.cli.command_line.options import add_options
from drainwise.cli.pool_options import DECISION, settings_of
from drainwise.facts.errors import ConfigurationError, UsageError
from drainwise.htcondor import system as htcondor
from drainwise.htcondor.pool.pool import HTCondorPool
from drainwise.local.pool import LocalPool
from drainwise.pool.facts import Pool
from drainwise.reclaim.seen_pilots import StuckRules
from drainwise.reclaim.settings import ReclaimSettings
from drainwise.siteconfig import SiteConfig
from drainwise.slurm.pool.pool import SlurmPool


def settings(*words: str) -> ReclaimSettings:
    parser = argparse.ArgumentParser()
    add_options(parser, DECISION)
    return settings_of(parser.parse_args(words))


def test_without_a_site_file_the_defaults_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each default stands once in the table of keys and once where a bound is explained: they agree."""
    monkeypatch.setattr(site_file, "DEFAULT_SITE_FILE", "/nonexistent/site.ini")
    defaults = SiteConfig()
    assert settings("--pool", "local") == ReclaimSettings(
        policy=defaults.reclaim.policy,
        horizon=defaults.reclaim.horizon,
        grace=defaults.reclaim.grace,
        max_grace=defaults.reclaim.max_grace,
        heartbeat_limit=defaults.pilot.stale_after,
        max_cores=defaults.reclaim.max_cores_per_cycle,
        max_cores_per_user=defaults.reclaim.max_cores_per_user_per_cycle,
        max_cores_per_user_hour=defaults.reclaim.max_cores_per_user_per_hour,
        order_latency=1,
        waiting_cost=float(defaults.reclaim.waiting_cost),
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
drain_only = no
min_age = 2m
max_cores_per_cycle = 48
max_cores_per_user_per_cycle = 24
max_cores_per_user_per_hour = 96
[features]
grace_job = 20m
[htcondor]
max_vacate_time = 8m
update_interval = 2m
[slurm]
agent_period = 20s
"""


def test_the_site_file_counts_and_the_command_line_before_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "site.ini"
    file.write_text(SITE)
    condor = ("--pool", "htcondor")
    read = settings("--site", str(file), *condor)
    assert read == ReclaimSettings(
        "paper",
        horizon=3600,
        grace=5400,
        max_grace=10800,
        heartbeat_limit=2400,
        max_cores=48,
        max_cores_per_user=24,
        max_cores_per_user_hour=96,
        margin=600,
        notice=1200,
        vacate=480,
        order_latency=125,
        min_age=120,
        drain_only=False,
        stuck=StuckRules(heartbeat_limit=2400),
    )
    assert settings("--site", str(file), "--policy", "least-waste").policy == "least-waste"
    monkeypatch.setattr(site_file, "DEFAULT_SITE_FILE", str(file))
    assert settings(*condor) == read


def test_when_a_pilot_hears_of_an_order_and_is_ended_is_a_matter_of_its_batch_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mocker: MockerFixture
) -> None:
    """Of [htcondor] nothing counts on the others; what HTCondor's nodes are not told stands in its own default."""
    file = tmp_path / "site.ini"
    file.write_text(SITE)
    monkeypatch.setattr(site_file, "DEFAULT_SITE_FILE", str(file))
    times = {
        pool: (it.vacate, it.order_latency)
        for pool in ("htcondor", "slurm", "local")
        if (it := settings("--pool", pool))
    }
    assert times == {"htcondor": (480, 125), "slurm": (0, 20), "local": (0, 1)}
    file.write_text("")
    assert settings("--pool", "htcondor").vacate == 600
    mocker.patch.object(htcondor.HTCondor, "missing", autospec=True, return_value="")
    assert settings().order_latency == 65, "the pool that would be opened counts"


def test_a_site_file_that_was_named_must_be_there() -> None:
    with pytest.raises(ConfigurationError):
        settings("--site", "/nonexistent/site.ini")


def opened(*words: str) -> Pool:
    parser = argparse.ArgumentParser()
    add_options(parser, DECISION)
    return pool_options.open_pool(parser.parse_args(words))


def test_without_htcondor_the_local_batch_system_takes_over_and_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("CONDOR_CONFIG", raising=False)
    monkeypatch.setattr(htcondor, "CONDOR_FILES", ("/nonexistent/condor_config",))
    monkeypatch.delenv("DRAINWISE_LOCAL", raising=False)
    monkeypatch.setenv("HOME", "/nonexistent")
    monkeypatch.setenv("XDG_STATE_HOME", "/nonexistent/state")
    assert isinstance(opened(), LocalPool)
    warned = "drainwise: no HTCondor here: using the local batch system in /nonexistent/"
    shown = capsys.readouterr()
    assert (shown.out, shown.err.startswith(warned), shown.err.count("\n")) == ("", True, 1)
    monkeypatch.setenv("DRAINWISE_LOCAL", "/nonexistent/state")
    assert isinstance(opened(), LocalPool)
    assert capsys.readouterr() == ("", ""), "who names it there knows"


@pytest.mark.parametrize("words", [("--pool", "local"), ("--directory", "/nonexistent/state")])
def test_who_asks_for_the_local_batch_system_is_not_warned(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert isinstance(opened(*words), LocalPool)
    assert capsys.readouterr() == ("", "")


def test_a_directory_is_the_local_batch_systems_alone() -> None:
    with pytest.raises(UsageError, match="--directory"):
        opened("--pool", "htcondor", "--directory", "/nonexistent/state")


def test_htcondor_is_taken_where_it_is_configured_or_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "condor_config").write_text("")
    monkeypatch.delenv("CONDOR_CONFIG", raising=False)
    monkeypatch.setattr(htcondor, "CONDOR_FILES", ("/nonexistent/condor_config",))
    assert isinstance(opened("--pool", "htcondor"), HTCondorPool)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(htcondor, "CONDOR_FILES", (str(tmp_path / "condor_config"),))
    assert isinstance(opened(), HTCondorPool)
    monkeypatch.setattr(htcondor, "CONDOR_FILES", ())
    monkeypatch.setenv("CONDOR_CONFIG", "/wherever")
    assert isinstance(opened(), HTCondorPool)
    assert capsys.readouterr() == ("", "")


def test_slurm_is_taken_where_it_is_configured_or_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the site file's word on where it lies; HTCondor comes first where both are there."""
    monkeypatch.delenv("CONDOR_CONFIG", raising=False)
    monkeypatch.setattr(htcondor, "CONDOR_FILES", ())
    site = tmp_path / "site.ini"
    site.write_text(f"[slurm]\nconfig_dir = {tmp_path}\nbin_dir = {tmp_path}\n")
    assert isinstance(opened("--pool", "slurm", "--site", str(site)), SlurmPool)
    assert capsys.readouterr() == ("", "")
    assert isinstance(opened("--site", str(site)), LocalPool)
    for name in ("slurm.conf", "squeue"):
        (tmp_path / name).write_text("")
    capsys.readouterr()
    assert isinstance(opened("--site", str(site)), SlurmPool)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    monkeypatch.setenv("CONDOR_CONFIG", "/wherever")
    assert isinstance(opened("--site", str(site)), HTCondorPool)
    assert capsys.readouterr() == ("", "")


def test_htcondor_without_its_bindings_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CONDOR_CONFIG", "/wherever")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert isinstance(opened(), LocalPool)
    assert "its Python bindings are missing" in capsys.readouterr().err
