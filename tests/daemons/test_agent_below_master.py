"""condor_master as the agent's keeper: it starts it, starts it again, and passes its signals on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from condor_pool import CondorPool
from drainwise.htcondor.setup.render import render
from drainwise.install.rendered_tree import RenderedFile, write_tree
from drainwise.siteconfig import SiteConfig
from drainwise.siteconfig.schema import AgentSection

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


@pytest.fixture
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
