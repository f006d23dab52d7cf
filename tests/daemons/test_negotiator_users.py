"""The negotiator's policy: no claim moves a kill from one user to another."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from condor_jobs import TRANSFERRED, described
from condor_pool import CondorPool
from scenario import condor_site

pytestmark = [pytest.mark.play, pytest.mark.in_turn("negotiator", "whose users")]
QUOTAS = """\
GROUP_NAMES = group_pilots, group_bob
GROUP_QUOTA_group_pilots = 16
GROUP_QUOTA_group_bob = 8
GROUP_ACCEPT_SURPLUS = True
SUBMIT_REQUIREMENT_NAMES =
"""
# Says that `$1` cores of eight are busy with a payload that has just started, and that `$2` 1024ths of a second of the
# whole lease would be lost beside it; both as large as can be true.
PILOT = """\
#!/bin/sh
cd "$_CONDOR_SCRATCH_DIR"
now=$(date +%s)
cat > .pilot.ad.new <<END
LAST_JOB_START = $now
FIRST_EXP_JOB_END = $((now + 36000))
LAST_EXP_JOB_END = $((now + 36000))
LAST_MAX_JOB_END = $((now + 36000))
USED_FRACTION1k = $(($1 * 128))
ADD_UNCOM_TIME1k = $2
ADD_FINAL_EXP_WASTE1k = 0
PRIORITY_FACTOR = 0
CAN_POSTPONE_LAST_JOB = True
END
mv .pilot.ad.new .pilot.ad
exec sleep 3600
"""
CLAIMS = {"liar1": "8 51200", "liar2": "8 51200", "honest": "2 0"}


@pytest.fixture
def pool(release: str) -> Iterator[CondorPool]:
    """Three nodes of 8 cores, each with a pilot; the group that all three users share is over its quota by one."""
    with CondorPool(nodes=3, cpus=8, release=release) as running:
        condor_site.install(running, "least-waste", f"{condor_site.RECLAIM}max_grace = 2m\n")
        running.configure("central", "41-groups.conf", QUOTAS)
        running.copy_in(_program(running), "/usr/share/drainwise/claims")
        running.restart("central")
        yield running


def _program(pool: CondorPool) -> str:
    path = f"{pool.root}/claims"
    with open(path, "w", encoding="ascii") as stream:
        stream.write(PILOT)
    os.chmod(path, 0o755)
    return path


def submit(pool: CondorPool, group: str, user: str, arguments: str, executable: str = "/bin/sleep") -> int:
    """Submit a job of eight cores for a user of a group."""
    owner = "bob" if group == "group_bob" else "alice"
    lines = (TRANSFERRED, f"accounting_group = {group}", f"accounting_group_user = {user}")
    return pool.submit(described(arguments, *lines, executable=executable), user=owner)


def test_two_liars_with_huge_claims_do_not_keep_their_slots(pool: CondorPool) -> None:
    """The honest pilot has by far the least to lose; the liars' priority is worse, so one of theirs goes.

    None of them says that it ends within max_grace, so kill waste is compared and the one that is chosen is killed.
    """
    pilots = {
        user: submit(pool, "group_pilots", user, said, "/usr/share/drainwise/claims") for user, said in CLAIMS.items()
    }
    fresh = 'PilotReportStanding == "fresh" && PilotKillWaste > 60'
    pool.wait_for(lambda: len(pool.slots(fresh, ["Name"])) == 3, 180, "three pilots that are believed")
    for user in CLAIMS:
        factor = "2000" if user.startswith("liar") else "1000"
        pool.run(["condor_userprio", "-setfactor", f"group_pilots.{user}@pool.test", factor])
    wanted = submit(pool, "group_bob", "bob", "900")
    pool.wait_for(lambda: bool(pool.queue(f"ClusterId == {wanted} && JobStatus == 2", ["ProcId"])), 180, "bob runs")
    waiting = pool.queue('AcctGroup == "group_pilots" && JobStatus != 2', ["ClusterId"])
    names = {cluster: user for user, cluster in pilots.items()}
    assert [names[ad.integer("ClusterId")] for ad in waiting] in (["liar1"], ["liar2"])
