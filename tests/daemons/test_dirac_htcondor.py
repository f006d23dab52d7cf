"""DIRAC's own pilot that nobody changed, as a job of a real HTCondor pool: what is seen of it, and lost as told."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from condor_jobs import TRANSFERRED, described
from condor_pool import CondorPool
from dirac_modules import WITHOUT_TIME_LEFT, dirac_modules
from dirac_pilot import asked, bring_dirac, dirac_script, lives
from drainwise.pilotad.observation import Observation, observation_in
from scenario.condor_site import in_pool_json, install

pytestmark = [pytest.mark.play, pytest.mark.in_turn("DIRAC", "HTCondor")]
RECLAIM = """\
[reclaim]
grace = 20m
horizon = 20m
min_grace = 20s
margin = 30s
min_age = 0s
[clients]
dirac = job.ClientKind=dirac*
"""
CORES, SECONDS = 2, 180.0
INTERVAL = 15  # seconds: the cron's period, the startd's and the collector's
PLACE = "/home/alice"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[CondorPool, str]]:
    """One node, and a VO with two payloads of an hour."""
    modules = dirac_modules(WITHOUT_TIME_LEFT)
    with CondorPool(nodes=1, cpus=2 * CORES) as pool:
        site_file = install(pool, reclaim=RECLAIM, quotas=(CORES, CORES))
        bring_dirac(pool, modules, tmp_path_factory.mktemp("certificate"), [3600, 3600], PLACE, 0.25)
        yield pool, site_file


def slot_of(pool: CondorPool, cluster: int, *names: str) -> Any:
    """The slot of a job."""
    return next(iter(pool.slots(f'JobId == "{cluster}.0"', names)), {})


def used(home: Path) -> float:
    """The CPU seconds that both payloads have used, as they wrote last."""
    return sum(life.get("cpu", 0.0) for life in lives(home))


def test_both_payloads_of_its_pool_are_seen_and_lost_as_told(site: tuple[CondorPool, str]) -> None:
    """Its Pool computing element has a process tree for each; of an order it learns by SIGTERM alone.

    Its order, the first one, is priced within 20 % of what idles until its end and is lost then, or within what its
    cores do in a reporting interval.
    """
    pool, site_file = site
    home = Path(f"{pool.root}{PLACE}")
    script = dirac_script(WITHOUT_TIME_LEFT, "Pool", 10.0, 7200, f"{PLACE}/pilot.log", cores=CORES + 1)
    (home / "pilot").write_text(script)
    os.chmod(home / "pilot", 0o755)
    more = ("accounting_group = group_alice", TRANSFERRED, '+ClientKind = "dirac"')
    text = described("", *more, cores=CORES, executable="pilot")
    cluster = pool.submit(text.replace("transfer_executable = False", "transfer_executable = True"), user="alice")
    pool.wait_for(lambda: len(lives(home)) == 2, SECONDS, "both payloads")

    def found() -> Observation | None:
        told = observation_in(slot_of(pool, cluster, "PilotObserved").get("PilotObserved"))
        return told if told is not None and told.payloads >= 2 else None

    told = pool.wait_for(found, SECONDS, "both payloads seen")
    assert told is not None and (told.client, told.payloads) == ("dirac", 2)
    requests, began = asked(pool), [life["began"] for life in lives(home)]
    assert all(one - 5 <= begin <= other + 5 for one, begin, other in zip(requests, told.begins, began))
    beside = max(0.0, told.cpu_seconds - used(home))
    now, used_then = int(time.time()), used(home)
    words = ["reclaim", "--cores", str(CORES), "--user", "alice", "--by", "+90s", "--act", "--site", site_file]
    [order] = [order for one in in_pool_json(pool, words)["users"] for order in one["orders"]]
    assert (order["client"], order["kind"]) == ("dirac", "cut"), order
    assert "dirac goes on until SIGTERM" in order["reason"]
    live: list[float] = []

    def has_gone() -> bool:
        slot = slot_of(pool, cluster, "Name", "PilotKillWaste")
        if "PilotKillWaste" in slot:
            said = pool.run(["condor_status", "-constraint", f'JobId == "{cluster}.0"', "-af", "PilotKillWaste"]).stdout
            live.extend(float(word) for word in said.split() if word.replace(".", "").isdigit())
        return not slot

    pool.wait_for(has_gone, SECONDS, "its end")
    lost = used(home)
    assert not any("ended" in life for life in lives(home)) and not (home / "pilot.log.left").exists()
    assert max(asked(pool)) > now, "it fetched on under its order"
    # How long its payloads run nobody knows yet: the price is what a kill lost then, and its cores until its end.
    last = max(file.stat().st_mtime for file in home.glob("payload.*"))
    wasted = used_then + CORES * (last - now)
    print(
        f"{pool.release}: {told}, wrappers' own {beside:.1f}; kill waste told {live[-1]:.1f}, lost {lost:.1f}, "
        f"order priced at {order['expected_waste']:.1f}, wasted {wasted:.1f} core-seconds"
    )
    assert order["expected_waste"] == pytest.approx(wasted, rel=0.2, abs=CORES * INTERVAL)
    assert live[-1] == pytest.approx(lost, rel=0.1, abs=told.cores_busy * 2 * INTERVAL + beside)
