"""Who sent a pilot, on a real pool: from the job's ad to the snapshot, the journal, explain and report."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from condor_jobs import TRANSFERRED, described
from condor_pool import CondorPool
from scenario.condor_site import in_pool, in_pool_json, install

pytestmark = [pytest.mark.play, pytest.mark.in_turn("identity", "HTCondor")]
RECLAIM = """\
[reclaim]
policy = least-waste
grace = 2m
margin = 30s
min_age = 1s
[identity]
issuer = https://{vo}-auth.example/{} | {vo}
"""
CORES, PART = 8, 2
AS_A_CE = "SYSTEM_SECURE_JOB_ATTRS =\n"
"""What a CE's router may set, anybody may: this access point stands for one that routed the jobs."""
PROXY = """\
+x509UserProxyVOName = "cms"
+x509UserProxyFirstFQAN = "/cms/Role=pilot/Capability=NULL"
+x509userproxysubject = "/DC=ch/DC=cern/CN=cmspilot"
+RoutedFromJobId = "4711.0"
+GlideinFactory = "OSGGOC"
+GlideinEntryName = "CMSHTPC_T2_X"
"""
TOKEN = """\
+orig_AuthTokenSubject = "7dee38a3"
+orig_AuthTokenIssuer = "https://atlas-auth.example/"
+RoutedFromJobId = "12.3"
+harvesterID = "CERN_central_A"
+harvesterWorkerID = 991
"""
DOUBLING = "\n".join(f"+Grown{n} = strcat(Grown{n - 1}, Grown{n - 1})" for n in range(1, 41))
HOSTILE = f"""\
+RoutedFromJobId = Grown40
+orig_AuthTokenGroups = "/{"9" * 100_000}"
+Grown0 = "x"
{DOUBLING}
+GlideinFactory = Grown40
"""
ESCAPING = """\
+RoutedFromJobId = "\x1b[2J\u202eevil"
+harvesterID = "a b\tc"
"""
SUBMIT = """
import sys, htcondor2
[schedd] = htcondor2.Collector().query(htcondor2.AdType.Schedd)
print(htcondor2.Schedd(schedd).submit(htcondor2.Submit(sys.argv[1]), count=1).cluster())
"""


@pytest.fixture(scope="module")
def site(release: str) -> Iterator[tuple[CondorPool, str]]:
    """One node of 8 cores that are all bob's by right, with drainwise as a site installs it."""
    with CondorPool(nodes=1, cpus=CORES, release=release) as pool:
        yield pool, install(pool, reclaim=RECLAIM, quotas=(0, CORES))


def described_by(more: str) -> str:
    return described(3000, "accounting_group = group_alice", more, cores=PART)


def identities(pool: CondorPool, site_file: str) -> dict[int, Any]:
    """Who sent each pilot, by the cluster of its job."""
    pilots = in_pool_json(pool, ["status", "--site", site_file])["pilots"]
    return {int(one["run"].split("#")[1].split(".")[0]): one["identity"] for one in pilots}


def test_a_user_names_no_vo_and_the_access_point_names_its_token(site: tuple[CondorPool, str]) -> None:
    """As HTCondor is by default, it ignores what a user sets of a credential; it sets that of the token itself."""
    pool, site_file = site
    answer = pool.run_outside(
        [sys.executable, "-c", SUBMIT, described_by(f"initialdir = /tmp\n{TRANSFERRED}\n{PROXY}")],
        identity="alice@pool.test",
    )
    cluster = int(answer.stdout)
    pool.wait_for(lambda: identities(pool, site_file).get(cluster), 90, "a pilot whose sender is known")
    found = identities(pool, site_file)[cluster]
    assert found == {"vo": "pool.test", "ce_job": "4711.0"}
    pool.run(["condor_rm", str(cluster)])
    pool.wait_for(lambda: not pool.queue() and not pool.slots('State != "Unclaimed"'), 90, "an empty pool")


def test_a_ticket_of_a_vo_is_answered(site: tuple[CondorPool, str]) -> None:
    """Who sent it stands in status, snapshot, journal, explain and report; a hostile job costs nobody his place.

    A scope by attributes of jobs lets no other pilot be ordered; of an expression only its writing is looked at.
    """
    pool, site_file = site
    pool.configure("central", "45-as-a-ce.conf", AS_A_CE)
    pool.reconfigure("central")
    clusters = [pool.submit(described_by(more), user="alice") for more in (PROXY, TOKEN, ESCAPING, HOSTILE)]
    cms, atlas, escaping, hostile = clusters
    pool.wait_for(lambda: len(identities(pool, site_file)) == len(clusters), 90, "four pilots")
    pool.wait_for(lambda: identities(pool, site_file)[escaping], 30, "who sent them")
    found = identities(pool, site_file)
    assert found[cms] == {"vo": "cms", "ce_job": "4711.0"}
    assert found[atlas] == {"vo": "atlas", "ce_job": "12.3"}
    assert found[escaping] == {"ce_job": "?[2J?evil"}
    assert found[hostile] is None
    snapshot = json.loads(in_pool(pool, ["snapshot", "--site", site_file]).stdout)
    assert {"vo": "cms"}.items() <= next(
        one["identity"] for one in snapshot["pilots"] if f"#{cms}." in one["run"]
    ).items()
    columns = in_pool(pool, ["status", "--site", site_file, "--format", "vo,cejob", "--sort", "vo"]).stdout
    assert [line.split() for line in columns.splitlines()[1:3]] == [
        ["atlas", "12.3"],
        ["cms", "4711.0"],
    ]
    pool.submit(described(600, "accounting_group = group_bob", cores=PART), user="bob")

    def ordered(site_file: str) -> list[Any]:
        plan = in_pool_json(pool, ["reclaim", "--once", "--act", "--site", site_file])
        return [order for user in plan["users"] for order in user["orders"]]

    scoped = Path(site_file).with_name("scoped.ini")
    scope = "preemptible = job.GlideinFactory=OSG*,xx* or job.harvesterID=CERN*\nexempt = job.harvesterWorkerID=991\n"
    scoped.write_text(Path(site_file).read_text().replace("[reclaim]\n", f"[reclaim]\n{scope}"))
    [first] = pool.wait_for(lambda: ordered(str(scoped)), 90, "an order within the scope")
    assert f"#{cms}." in first["run"]
    states = in_pool_json(pool, ["status", "--site", str(scoped)])["pilots"]
    why = {int(one["run"].split("#")[1].split(".")[0]): one["cannot"] for one in states}
    assert "by [reclaim] exempt" in why[atlas] and "of [reclaim] preemptible" in why[hostile]
    pool.submit(described(600, "accounting_group = group_bob", cores=CORES - PART), user="bob")
    orders = pool.wait_for(lambda: ordered(site_file), 90, "orders")
    assert len(orders) == len(clusters) - 1
    journal = ["--journal", str(next(Path(f"{pool.root}/var/lib/drainwise").glob("*.journal")))]
    words = in_pool(pool, ["explain", "--vo", "cms", *journal]).stdout
    assert "VO cms, CE job 4711.0" in words
    assert words.count("ordered to end by") == 1 and f"#{cms}.0#" in words
    assert f"#{atlas}.0#" in in_pool(pool, ["explain", "--ce-job", "12.3", *journal]).stdout
    assert "\x1b" not in in_pool(pool, ["explain", f"{escaping}.0", *journal]).stdout
    report = in_pool_json(pool, ["report", *journal])
    assert {one["vo"]: one["ordered"] for one in report["vos"]} == {"atlas": 1, "cms": 1, None: 2}
    pool.wait_for(lambda: not pool.slots('State == "Claimed" && RemoteOwner == "alice@pool.test"'), 240, "their end")

    def judged() -> bool:
        # For a moment the collector may know no slot.
        in_pool(pool, ["reclaim", "--once", "--act", "--site", site_file], check=False)
        return "wasted" in in_pool(pool, ["explain", "--vo", "atlas", *journal]).stdout

    pool.wait_for(judged, 60, "what the pilot of atlas wasted")
