"""Where the agent's lock lies, which journal it keeps, and when it acts."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from drainwise.cli import reclaim
from drainwise.cli.agent_place import journal_path, lock_of, setup_of
from drainwise.cli.pool_options import CONDOR_CONFIG


def parsed(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    reclaim.add_parser(parser.add_subparsers())
    return parser.parse_args(["reclaim", *words])


@pytest.fixture
def site(tmp_path: Path) -> Path:
    file = tmp_path / "site.ini"
    file.write_text("")
    return file


def test_two_pools_of_one_machine_have_two_locks(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(CONDOR_CONFIG, raising=False)
    monkeypatch.delenv("SLURM_CONF", raising=False)

    def path(*words: str) -> str:
        return lock_of(parsed("--once", "--site", str(site), *words)).path

    assert path("--pool", "htcondor") == "/var/lib/drainwise/agent-htcondor.lock"
    assert path("--pool", "slurm") == "/var/lib/drainwise/agent-slurm.lock"
    assert path("--directory", "/x/y") == "/x/y/agent-local-x-y.lock", "a user's own lies with the user's own"
    monkeypatch.setenv(CONDOR_CONFIG, "/opt/b/condor_config")
    monkeypatch.setenv("SLURM_CONF", "/opt/b/slurm.conf")
    assert path("--pool", "htcondor") == "/var/lib/drainwise/agent-htcondor-opt-b-condor-config.lock"
    assert path("--pool", "slurm") == "/var/lib/drainwise/agent-slurm-opt-b-slurm-conf.lock"
    site.write_text("[agent]\nstate_dir = /srv/dw\n")
    assert path("--directory", "/x/y") == "/srv/dw/agent-local-x-y.lock"


def test_the_site_lets_a_loop_act_and_never_a_single_cycle(site: Path) -> None:
    """Who types --once sees what would be done, whatever the site says of the service."""

    def acting(*words: str) -> bool:
        return setup_of(parsed(*words, "--site", str(site), "--directory", "/x")).acting

    assert [acting("--loop"), acting("--loop", "--act"), acting("--once", "--act")] == [False, True, True]
    site.write_text("[agent]\nact = yes\n")
    assert [acting("--loop"), acting("--once")] == [True, False]


def test_the_site_says_how_often_and_where(site: Path) -> None:
    site.write_text("[agent]\nperiod = 30s\nlongest_pause = 5m\nkill_switch = /run/off\n[journal]\nfile = /var/log/j\n")
    words = ("--loop", "--site", str(site), "--directory", "/x")
    setup = setup_of(parsed(*words))
    assert (setup.period, setup.longest_pause, setup.kill_switch) == (30, 300, "/run/off")
    assert setup_of(parsed(*words, "--period", "2m")).period == 120
    assert journal_path(parsed(*words)) == "/var/log/j"
    assert journal_path(parsed(*words, "--journal", "other")) == "other"
