"""Where the agent's lock lies, which journal it keeps, and when it acts."""

from __future__ import annotations

import argparse
import os
import syslog
from pathlib import Path

import pytest

from drainwise.cli import reclaim
from drainwise.cli.agent_place import journal_path, lock_of, named_journal, setup_of, to_log
from drainwise.cli.command_line.options import build
from drainwise.htcondor.system import CONDOR_CONFIG


def parsed(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    build(parser.add_subparsers(), "reclaim", reclaim.COMMAND)
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


def test_one_pool_has_one_lock_however_its_place_is_spelled(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The service has no CONDOR_CONFIG, condor_master and an administrator's shell may: they must not act together."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")

    def path(*words: str) -> str:
        return Path(lock_of(parsed("--once", "--site", str(site), *words)).path).name

    monkeypatch.delenv(CONDOR_CONFIG, raising=False)
    monkeypatch.delenv("SLURM_CONF", raising=False)
    plain = [path("--pool", name) for name in ("htcondor", "slurm")]
    monkeypatch.setenv(CONDOR_CONFIG, "/etc/condor/../condor/condor_config")
    monkeypatch.setenv("SLURM_CONF", "/etc/slurm/slurm.conf")
    assert [path("--pool", name) for name in ("htcondor", "slurm")] == plain
    other = [path("--pool", "htcondor")]
    for name in ("real", "link"):
        monkeypatch.setenv(CONDOR_CONFIG, str(tmp_path / name / "condor_config"))
        other.append(path("--pool", "htcondor"))
    assert other[0] != other[1] == other[2]
    assert path("--directory", str(tmp_path / "real")) == path("--directory", str(tmp_path / "link"))


def test_the_site_lets_a_loop_act_and_never_a_single_cycle(site: Path) -> None:
    """Who types --once sees what would be done, whatever the site says of the service."""

    def acting(*words: str) -> bool:
        return setup_of(parsed(*words, "--site", str(site), "--directory", "/x")).acting

    assert [acting("--loop"), acting("--loop", "--act"), acting("--once", "--act")] == [False, True, True]
    site.write_text("[agent]\nact = yes\n")
    assert [acting("--loop"), acting("--once")] == [True, False]


def test_the_site_says_how_often_and_where(site: Path) -> None:
    site.write_text("[agent]\nperiod = 30s\nkill_switch = /run/off\n[journal]\nfile = /var/log/j\n")
    words = ("--loop", "--site", str(site), "--directory", "/x")
    setup = setup_of(parsed(*words))
    assert (setup.period, setup.kill_switch) == (30, "/run/off")
    assert setup_of(parsed(*words, "--period", "2m")).period == 120
    assert journal_path(parsed(*words)) == "/var/log/j"
    assert journal_path(parsed(*words, "--journal", "other")) == "other"


def test_where_no_journal_is_named_it_lies_beside_the_lock(site: Path) -> None:
    words = parsed("--once", "--act", "--site", str(site), "--directory", "/x")
    assert (named_journal(words), journal_path(words)) == (None, "/x/agent-local-x.journal")


def test_what_is_said_reaches_the_log_also_below_a_service_that_writes_to_the_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """condor_master has JOURNAL_STREAM from systemd and hands it on, but not its standard error."""
    lines: list[str] = []
    monkeypatch.setattr(syslog, "syslog", lambda _, line: lines.append(line))
    kept = os.dup(2)
    try:
        with (tmp_path / "stderr").open("wb") as elsewhere:
            os.dup2(elsewhere.fileno(), 2)
            facts = os.fstat(2)
            monkeypatch.setenv("JOURNAL_STREAM", f"{facts.st_dev}:{facts.st_ino + 1}")
            to_log("a line for\x1b[31m syslog")
            monkeypatch.setenv("JOURNAL_STREAM", f"{facts.st_dev}:{facts.st_ino}")
            to_log("a line that stderr brings there")
    finally:
        os.dup2(kept, 2)
        os.close(kept)
    assert lines == ["drainwise: a line for?[31m syslog"]
    assert (tmp_path / "stderr").read_text().count("drainwise: a line") == 2
