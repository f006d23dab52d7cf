"""A need that stays open, on a real pool whose pilots report: an order is replaced when another costs less by far."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from condor_jobs import TRANSFERRED, described
from condor_pool import CondorPool, DeadlineError
from open_needs import replace_an_order
from scenario import condor_site
from useful_orders import Stage

pytestmark = [pytest.mark.play, pytest.mark.in_turn("open need", "HTCondor")]
RECLAIM = """\
[reclaim]
policy = open-need
min_grace = 1h
min_age = 0s
"""
# Writes as its report what it finds under the name of its slot, each second.
PILOT = """\
#!/bin/sh
cd "$_CONDOR_SCRATCH_DIR"
said=/usr/share/drainwise/says-${_CONDOR_SLOT}@$(hostname -s)
while :; do
    if ! cmp -s $said .said; then cp $said .said && cp .said .new && mv .new .pilot.ad; fi
    sleep 1
done
"""
REPORT = """\
LAST_JOB_START = {now}
FIRST_EXP_JOB_END = {end}
LAST_EXP_JOB_END = {end}
USED_FRACTION1k = {used}
ADD_UNCOM_TIME1k = 0
ADD_FINAL_EXP_WASTE1k = 0
PRIORITY_FACTOR = 0
CAN_POSTPONE_LAST_JOB = True
"""
CORES = 8


@pytest.fixture
def site(release: str, tmp_path: Path) -> Iterator[tuple[CondorPool, str]]:
    """Two nodes of 16 cores with hooks, cron and orders; alice has four pilots of 8 cores that report."""
    with CondorPool(nodes=2, cpus=2 * CORES, release=release) as pool:
        site_file = condor_site.install(pool, reclaim=RECLAIM, quotas=(16, 16))
        program = tmp_path / "pilot"
        program.write_text(PILOT)
        os.chmod(program, 0o755)
        pool.copy_in(str(program), "/usr/share/drainwise/pilot")
        submit(pool, "alice", CORES, count=4, executable="/usr/share/drainwise/pilot")
        pool.wait_for(lambda: len(running(pool, "alice")) == 4, 120, "four pilots")
        yield pool, site_file


def submit(pool: CondorPool, user: str, cores: int, count: int = 1, executable: str = "/bin/sleep") -> None:
    lines = (TRANSFERRED, f"accounting_group = group_{user}")
    pool.submit(described(3000, *lines, cores=cores, count=count, executable=executable), user=user)


def running(pool: CondorPool, user: str) -> set[str]:
    """The slots of a user's jobs, also of those with an order."""
    ads = pool.slots('Activity == "Busy" || Activity == "Retiring"', ["Name", "RemoteOwner"])
    return {ad.text("Name") for ad in ads if ad.text("RemoteOwner").partition("@")[0] == user}


def say(pool: CondorPool, place: Path, name: str, used: float, seconds: int) -> None:
    """Let the pilot in a slot state that, and wait until the collector knows it."""
    end = int(time.time()) + seconds
    path = place / "said"
    path.write_text(REPORT.format(now=end - seconds, end=end, used=int(used * 1024 / CORES)))
    slot, _, host = name.partition("@")
    pool.copy_in(str(path), f"/usr/share/drainwise/says-{slot}@{host.partition('.')[0]}")
    is_known = f'Name == "{name}" && PilotLastExpJobEnd == {end}'
    pool.wait_for(lambda: pool.slots(is_known, ["Name"]), 120, f"the report of {name}")


def test_an_order_is_replaced_when_another_pilot_costs_less_by_far(
    site: tuple[CondorPool, str], tmp_path: Path
) -> None:
    pool, site_file = site
    journal = f"{tmp_path}/journal"

    def command(*words: str) -> str:
        argv = [*words, "--journal", journal] if words[0] in {"explain", "reclaim"} else [*words]
        argv += [] if words[0] == "explain" else ["--site", site_file]
        return condor_site.in_pool(pool, argv, check=False).stdout

    stage = Stage(partial(submit, pool), partial(running, pool), command, pool.wait_for, DeadlineError)
    replace_an_order(stage, partial(say, pool, tmp_path))
