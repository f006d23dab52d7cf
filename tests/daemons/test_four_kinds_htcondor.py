"""Unmodified pilots of four kinds on a real HTCondor pool: ranked with figures, and a kill loses what they promise."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from acting_agent import acting_agent
from condor_jobs import TRANSFERRED, described
from condor_pool import CondorPool
from four_kinds import ALL_CORES, PANDA, PAYLOAD, PROGRAM, Stage, assert_kills_lose_what_the_plan_promises, four_kinds
from pilot_clients import bring_panda_pilot, panda_pilot
from scenario.condor_site import in_pool, install

pytestmark = [pytest.mark.play, pytest.mark.in_turn("four kinds", "HTCondor")]
SECONDS = 240.0
INTERVAL = 15  # seconds: the cron's period, the startd's and the collector's
METRICS = "/var/lib/drainwise/drainwise.prom"
SITE = """\
period = 5s
[metrics]
textfile = {0}
[reclaim]
policy = least-waste
drain_only = no
min_age = 0s
[clients]
panda = job.ClientKind=panda
alice = job.ClientKind=alice
"""


def submit(pool: CondorPool, kind: str, script: str, cores: int) -> int:
    """Submit a script as alice's pilot; its cluster."""
    place = Path(f"{pool.root}/home/alice/{kind}.sh")
    place.write_text(script if script.startswith("#!") else f"#!/bin/sh\n{script}")
    place.chmod(0o755)
    more = ("accounting_group = group_alice", TRANSFERRED, f'+ClientKind = "{kind}"')
    text = described("", *more, cores=cores, executable=place.name)
    return pool.submit(text.replace("transfer_executable = False", "transfer_executable = True"), user="alice")


def test_kills_lose_what_the_plan_promises() -> None:
    """All four at once; the draining waste of what the node sees is the agent's own, and stands nowhere else."""
    pilot = panda_pilot()
    with CondorPool(nodes=1, cpus=ALL_CORES) as pool:
        metrics = pool.root + METRICS
        site_file = install(pool, reclaim=SITE.format(metrics), quotas=(0, ALL_CORES))
        bring_panda_pilot(pool, pilot, PANDA)
        program = f"{pool.root}{PROGRAM}"
        Path(program).write_text(PAYLOAD)
        os.chmod(program, 0o755)
        kinds = four_kinds("/home/alice")
        clusters = {kind: submit(pool, kind, one.script, one.cores) for kind, one in kinds.items()}

        def names() -> dict[str, str]:
            slots = {
                slot.text("JobId"): slot.text("Name") for slot in pool.slots("JobId isnt undefined", ["Name", "JobId"])
            }
            return {kind: slots[f"{cluster}.0"] for kind, cluster in clusters.items() if f"{cluster}.0" in slots}

        pool.wait_for(lambda: len(names()) == len(kinds), SECONDS, "all four")

        def kill() -> None:
            said = pool.run(["condor_status", "-af", "Name", "PilotKillWaste", "PilotDrainingWaste"]).stdout
            published = {words[0]: words[1:] for words in map(str.split, said.splitlines())}
            pool.run(["condor_rm", "-all"])
            pool.wait_for(lambda: not pool.queue() and not pool.slots('State != "Unclaimed"'), SECONDS, "an empty pool")
            figures = {kind: published[name] for kind, name in stage.names.items()}
            assert all(float(killed) > 0 for killed, _ in figures.values()), figures
            assert [kind for kind, (_, drained) in figures.items() if drained != "undefined"] == ["glidein"]

        stage = Stage(
            home=Path(f"{pool.root}/home/alice"),
            names=names(),
            command=lambda *words: in_pool(pool, [*words, "--site", site_file]).stdout,
            agent=lambda: acting_agent(pool, "--site", site_file),
            metrics=Path(metrics),
            kill=kill,
            wait_for=pool.wait_for,
            interval=INTERVAL,
            seconds=SECONDS,
            user="alice@pool.test",
        )
        assert_kills_lose_what_the_plan_promises(stage)
