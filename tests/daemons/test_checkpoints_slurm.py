"""On a real Slurm cluster: of jobs that say when they save their work, an order loses what they did since."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pytest

from acting_agent import acting_agent, journal_events
from drainwise.siteconfig import FeaturesSection, SiteConfig
from outside_slurm import command, site_file
from slurm_cluster import SlurmCluster
from slurm_site import SlurmSite

pytestmark = [pytest.mark.play, pytest.mark.all_releases]
MANY, HALF_MINUTE = 20, 30
SHARES = 3
"""Bob is owed a third of the cores."""
PLACE = "/home/alice/ticks"
SAVES = f"""\
while :; do
cd "$JOBSTATUS"
now=$(date +%s)
end=$((now + 36000))
cat > .pilot.ad.new <<END
LAST_JOB_START = $now
FIRST_EXP_JOB_END = $end
LAST_EXP_JOB_END = $end
LAST_MAX_JOB_END = $end
USED_FRACTION1k = 1024
ADD_UNCOM_TIME1k = 0
ADD_FINAL_EXP_WASTE1k = 0
CAN_POSTPONE_LAST_JOB = True
LAST_CHECKPOINT = $now
NEXT_CHECKPOINT = $((now + {HALF_MINUTE}))
END
mv .pilot.ad.new .pilot.ad
echo $now >> {PLACE}/$SLURM_JOB_ID
sleep {HALF_MINUTE}
done
"""
RECLAIM = "period = 5s\n[reclaim]\npolicy = least-waste\nmin_age = 0s\nmin_grace = 30s\nmargin = 30s\n"


@pytest.mark.parametrize("slurm_release", ["trixie", "sid"])
def test_of_twenty_orders_none_loses_more_than_one_interval(slurm_release: str, tmp_path: Path) -> None:
    """Beside jobs that save nothing: what each did since it last saved is lost, and its order was to waste as much,
    within one interval. (Jobs that sleep use no CPU time, so that the journal counts them as idle since their orders.)
    """
    with SlurmCluster(nodes=1, cpus=SHARES * MANY, release=slurm_release) as cluster:
        site = SlurmSite(cluster, SiteConfig(features=FeaturesSection(hs06=Decimal(100))))
        site.install()
        site.start_agent("node1")
        cluster.run(["mkdir", PLACE], user="alice", node="node1")
        options = ("--time=600", "--output=/dev/null")
        savers = {str(cluster.submit(SAVES, "alice", options)) for _ in range(MANY)}
        cluster.submit("exec sleep 36000", "alice", (*options, f"--array=1-{(SHARES - 1) * MANY}"))
        file = site_file(site, tmp_path, RECLAIM)

        def saved() -> int:
            """How many say that they have saved their work since they began."""
            said = json.loads(command(site, file, "status", "--json"))
            ages = {one["name"]: said["taken"] - one["started"] for one in said["pilots"]}
            wastes = {one["name"]: one["kill_waste"] for one in said["pilots"]}
            return sum(wastes[name] <= HALF_MINUTE + 5 < ages[name] for name in savers & ages.keys())

        cluster.wait_for(lambda: saved() == MANY, 400, "runs with checkpoints")
        with acting_agent(cluster, "--pool", "slurm", "--site", str(file)):
            for _ in range(MANY):
                cluster.submit("exec sleep 36000", "bob", options)
            cluster.wait_for(lambda: len(journal_events(tmp_path, "ended")) >= MANY, 500, "their ends")
        ends, lost = journal_events(tmp_path, "ended"), []
        assert {one["name"] for one in ends} == savers, "one that had not saved its work was ordered"
        for one in ends:
            said = cluster.run(["cat", f"{PLACE}/{one['name']}"], node="node1").stdout.split()
            lost.append(one["ended"] - max(int(moment) for moment in said if int(moment) <= one["ended"]))
    print(f"{slurm_release}: lost {sorted(lost)} s, expected {sorted(one['predicted'] for one in ends)}")
    assert max(lost) <= HALF_MINUTE + 1, "whole seconds"
    assert all(abs(one["predicted"] - seconds) <= HALF_MINUTE for one, seconds in zip(ends, lost))
