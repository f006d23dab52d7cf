"""The agent among HTCondor's daemons: condor_master starts it and passes signals on, the collector shows it."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from acting_agent import ENVIRONMENT
from condor_pool import CondorPool
from drainwise.htcondor.pool.collector import AGENT_TYPE
from drainwise.htcondor.setup.render import render
from drainwise.install.rendered_tree import RenderedFile, write_tree
from drainwise.siteconfig import SiteConfig
from drainwise.siteconfig.schema import AgentSection

pytestmark = pytest.mark.play
ROOT = Path(__file__).parents[2]
SITE = SiteConfig(agent=AgentSection(condor_master="yes"))
LOG = "/var/log/agent.log"
# In the place of the command: tells how it was started and which signals came.
STAND_IN = f"""\
#!/bin/sh
say() {{ echo "$*" >> {LOG}; }}
trap 'say HUP' HUP
trap 'say TERM; exit 0' TERM
say "$$ $*"
while :; do sleep 0.1; done
"""


@pytest.fixture(scope="module")
def pool(release: str) -> Iterator[CondorPool]:
    """A pool whose master does not wait long before it starts a daemon again."""
    with CondorPool(nodes=1, cpus=4, release=release, config={"central": "MASTER_BACKOFF_CONSTANT = 1\n"}) as running:
        yield running


def test_the_drop_in_puts_the_agent_below_the_master(pool: CondorPool) -> None:
    """Started by a reconfig, told of the next one by HUP, started again after a kill -9, ended by TERM."""
    files = render(SITE, "central")
    assert not [file for file in files if file.path.endswith(".service")], "one keeper is enough"
    write_tree([RenderedFile(SITE.agent.command, STAND_IN, 0o755)], pool.root)
    log = Path(f"{pool.root}{LOG}")

    def said() -> list[str]:
        return log.read_text().splitlines() if log.exists() else []

    pool.configure("central", "60-agent.conf", files[-1].text)
    pool.reconfigure("central")
    [begins] = pool.wait_for(said, 30, "the agent is started")
    pid, _, words = begins.partition(" ")
    assert words == "reclaim --loop --pool htcondor"
    pool.reconfigure("central")
    pool.wait_for(lambda: said()[1:] == ["HUP"], 30, "HUP")
    pool.run(["kill", "-KILL", pid])
    pool.wait_for(lambda: len(said()) == 3 and said()[2].endswith(words), 60, "it is started again")
    pool.run(["condor_off", "-daemon", "DRAINWISE_AGENT"])
    pool.wait_for(lambda: said()[3:] == ["TERM"], 30, "TERM")


@contextmanager
def agent(pool: CondorPool, place: Path, identity: str) -> Iterator[subprocess.Popen[bytes]]:
    """An agent that acts as that identity, a cycle a second; its log is `log` in its directory."""
    place.mkdir()
    site = place / "site.ini"
    site.write_text(f"[agent]\nperiod = 1s\nstate_dir = {place}\n[page]\ndirectory = {place}\n")
    words = ["reclaim", "--loop", "--act", "--pool", "htcondor", "--site", str(site)]
    command = pool.outside_command([sys.executable, "-m", "drainwise", *words])
    environment = {**os.environ, **pool.outside_env(identity), **ENVIRONMENT}
    with (place / "log").open("wb") as log, subprocess.Popen(command, env=environment, stderr=log) as process:
        try:
            yield process
        finally:
            process.kill()


DOCUMENTED = "condor_status -any -constraint 'MyType == \"DrainwiseAgent\"' -af Name AgentState LastCycle NextCycle"


def shown(pool: CondorPool, *attributes: str) -> list[list[str]]:
    """What the collector shows of agents."""
    constraint = f'MyType == "{AGENT_TYPE}"'
    asked = pool.run(["condor_status", "-any", "-constraint", constraint, "-af", *attributes])
    return [line.split() for line in asked.stdout.splitlines()]


def test_the_collector_shows_a_living_agent_and_that_a_killed_one_is_late(pool: CondorPool, tmp_path: Path) -> None:
    """By an ad that goes when its time is over. An agent without the right says so once and does its work."""
    with agent(pool, tmp_path / "refused", "plugin@pool.test"):
        log, page = tmp_path / "refused" / "log", tmp_path / "refused" / "status.json"
        pool.wait_for(lambda: "ALLOW_DAEMON" in log.read_text(), 60, "the refusal in its log")
        first = page.read_text()
        pool.wait_for(lambda: page.read_text() != first, 30, "its next cycle")
        assert log.read_text().count("not shown") == 1
        assert shown(pool, "Name") == []
    with agent(pool, tmp_path / "shown", "root@pool.test") as process:
        pool.wait_for(lambda: [one[0] for one in shown(pool, "AgentState")] == ["ok"], 60, "the agent in the collector")
        [found] = pool.run(shlex.split(DOCUMENTED)).stdout.splitlines()
        assert found.split()[1] == "ok" and DOCUMENTED in (ROOT / "docs" / "troubleshoot.md").read_text()
        [[name, last, life, error]] = shown(pool, "Name", "LastCycle", "ClassAdLifetime", "LastErrorTime")
        assert name.startswith("drainwise@") and 600 <= int(life) < 700 and error == "0"
        pool.wait_for(lambda: int(shown(pool, "LastCycle")[0][0]) > int(last), 30, "another cycle in its ad")
        process.kill()
        pool.wait_for(lambda: shown(pool, "time()-NextCycle>5") == [["true"]], 60, "an ad that is late")
