"""`[htcondor] defrag = yes` on real daemons: condor_defrag drains the cheapest node; its pilots leave by themselves."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from condor_jobs import TRANSFERRED, described
from condor_pool import CondorPool
from drainwise.htcondor.pool.knobs import why_at_once
from drainwise.htcondor.setup.render import ROLES, render
from drainwise.install.rendered_tree import RenderedFile, write_tree
from drainwise.siteconfig import SiteConfig, load

pytestmark = [pytest.mark.play, pytest.mark.in_turn("beside HTCondor's own tools", "defrag")]
PLUGINS = Path(__file__).parents[2] / "plugins"
GRACE = 7200  # [reclaim] grace, by default

SITE_FILE = """\
[htcondor]
cron_period = 2s
slot_update_interval = 2s
update_interval = 2s
initial_update_interval = 1s
max_vacate_time = 5s
defrag = yes
"""

# The site's own part: condor_defrag runs, looks every 5 s, drains one node at a time, and stops at so many empty ones.
DEFRAG = """\
DAEMON_LIST = $(DAEMON_LIST) DEFRAG
DEFRAG_INTERVAL = 5
DEFRAG_DRAINING_MACHINES_PER_HOUR = 720
DEFRAG_MAX_CONCURRENT_DRAINING = 1
DEFRAG_MAX_WHOLE_MACHINES = {whole}
"""

# Says that its payloads on `$1` 1024ths of the cores end in an hour, and that `$2` 1024ths of a second of the whole
# lease idle in the minute until the last of them ends; says nothing without these. On a site notice it leaves, and
# brings that notice back.
PILOT = """\
#!/bin/sh
cd "$_CONDOR_SCRATCH_DIR"
trap 'echo SIGTERM > left; exit 1' TERM
now=$(date +%s)
[ -z "$1" ] || cat > .pilot.ad.new <<END
LAST_JOB_START = $now
FIRST_EXP_JOB_END = $((now + 3600))
LAST_EXP_JOB_END = $((now + 3600 + 60 * ($2 > 0)))
LAST_MAX_JOB_END = $((now + 3600 + 60 * ($2 > 0)))
USED_FRACTION1k = $1
ADD_UNCOM_TIME1k = 0
ADD_FINAL_EXP_WASTE1k = $2
PRIORITY_FACTOR = 3
CAN_POSTPONE_LAST_JOB = True
END
[ -z "$1" ] || mv .pilot.ad.new .pilot.ad
until grep -q 'VACATE_DESIRED = True' .site.ad 2>/dev/null; do sleep 1; done
sleep 3
cp .site.ad left
"""

NODES = "condor_status -print-format /etc/drainwise/nodes.cpf -sort 'real(sum(ChildPilotDrainPrice))'"
"""As docs/htcondor.md has it."""

PRICE = "sum(ChildPilotDrainPrice)"

# Node → the arguments of its two pilots of four cores. Draining waste: 30 + 40; silent; 0 + 3.5 cores for an hour.
PILOTS = {"node1": ("1024 7680", "1024 10240"), "node2": ("", ""), "node3": ("1024 0", "128 0")}


@pytest.fixture(scope="module")
def pool(release: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CondorPool]:
    """Three nodes of 8 cores; the pilots of node1 run longest, those of node3 started last."""
    file = tmp_path_factory.mktemp("site") / "site.ini"
    file.write_text(SITE_FILE)
    site = load(str(file))
    with CondorPool(
        nodes=3, cpus=8, release=release, config={role: render(site, role)[-1].text for role in ROLES}
    ) as running:
        install(running, site)
        for node, pilots in PILOTS.items():
            fill(running, node, pilots)
        yield running


def install(pool: CondorPool, site: SiteConfig) -> None:
    """Install the package, and all rendered files but the drop-ins, which the pool has."""
    pool.copy_in(str(PLUGINS / "drainwise"), "/usr/share/drainwise/drainwise")
    files = [file for role in ROLES for file in render(site, role)[:-1]]
    write_tree([*files, RenderedFile("/usr/share/drainwise/pilot", PILOT, 0o755)], pool.root)
    pool.reconfigure("execute")
    pool.wait_for(lambda: len(pool.slots("PilotCronHeartbeat isnt undefined", ["Name"])) == 3, 30, "crons on 3 nodes")


def fill(pool: CondorPool, node: str, pilots: tuple[str, ...]) -> None:
    """Start a node's pilots, and wait until those that report are believed."""
    for number, arguments in enumerate(pilots):
        back = f'transfer_output_remaps = "left={node}-{number}"'
        needs = f'requirements = Machine == "{node}.pool.test"'
        lines = (TRANSFERRED, "transfer_output_files = left", back, needs)
        program = "/usr/share/drainwise/pilot"
        pool.submit(described(arguments, *lines, cores=4, executable=program), user="alice")
    standing = '"fresh"' if pilots[0] else "undefined"
    where = f'Machine == "{node}.pool.test" && JobStart isnt undefined && PilotReportStanding is {standing}'
    pool.wait_for(lambda: len(pool.slots(where, ["Name"])) == 2, 60, f"two pilots on {node}")


def of_nodes(pool: CondorPool, expression: str) -> dict[str, float]:
    """Return what an expression gives on each node's partitionable slot, where it gives something."""
    query = ["condor_status", "-constraint", "PartitionableSlot", "-af", "Machine", expression]
    rows = [line.split() for line in pool.run(query, user="bob").stdout.splitlines()]
    return {name.partition(".")[0]: float(value) for name, value in rows if value != "undefined"}


def prices_are_plain(price: dict[str, float]) -> bool:
    """Return whether the silent pilots have run for some seconds, and the reports of the others have come up."""
    return price["node1"] == 70 and price["node2"] > 100 and price["node3"] > 3600


def drained(pool: CondorPool, whole: int) -> str:
    """Let condor_defrag drain until so many nodes are empty; return the node that began to drain first."""
    pool.configure("central", "60-defrag.conf", DEFRAG.format(whole=whole))
    pool.reconfigure("central")
    began = pool.wait_for(
        lambda: of_nodes(pool, "ifThenElse(Draining =?= true, LastDrainStartTime, undefined)"), 60, "a drain"
    )
    [node] = began
    return node


def endings(pool: CondorPool, count: int) -> list[str]:
    """Return exit code and number of starts of the jobs that have left the queue, once there are so many."""
    lines = pool.run(["condor_history", "-af", "ExitCode", "NumJobStarts"]).stdout.splitlines()
    return lines if len(lines) == count else []


def notices(pool: CondorPool, node: str) -> list[str]:
    """Return what the two pilots of a node brought back, once both have left."""
    files = [Path(f"{pool.root}/home/alice/{node}-{number}") for number in range(2)]
    pool.wait_for(lambda: all(file.exists() for file in files), 60, f"the end of the pilots of {node}")
    return [file.read_text() for file in files]


def test_condor_defrag_takes_the_cheapest_node_and_its_pilots_leave_by_themselves(pool: CondorPool) -> None:
    """Twice: first the two pilots of least waste, then the silent ones; the dearest run on. Orders stay possible."""
    pool.wait_for(lambda: prices_are_plain(of_nodes(pool, PRICE)), 60, "prices of silent and of dear pilots")
    price, rank = of_nodes(pool, PRICE), of_nodes(pool, "0 - ExpectedMachineGracefulDrainingBadput")
    reported = of_nodes(pool, "sum(ChildPilotDrainingWaste)")
    assert max(rank, key=rank.__getitem__) == "node3", "by default the node whose jobs ran shortest, here the dearest"
    assert (price["node1"], reported["node1"], reported["node2"]) == (70, 70, 0)
    assert 100 < price["node2"] < 8 * 600, "silent: cores x run time, not nothing"
    assert 3.5 * 3000 < price["node3"] <= 3.5 * 3600

    for whole, node in ((1, "node1"), (2, "node2")):
        before = int(time.time()) - 1  # the startd's clock has whole seconds, and may be a tick behind
        assert drained(pool, whole) == node
        for notice in notices(pool, node):
            deadline = int(notice.rpartition("PAYLOAD_DEADLINE = ")[2])
            assert before + GRACE <= deadline + 30 <= time.time() + GRACE + 30, notice
        ended = pool.wait_for(partial(endings, pool, 2 * whole), 30, "the pilots' end")
        assert ended == ["0 1"] * 2 * whole, "exit code, starts"
        pool.wait_for(lambda: not pool.slots("Draining =?= true", ["Name"]), 60, "the end of the drain")
    assert len(pool.slots('Machine == "node3.pool.test" && Activity == "Busy"', ["Name"])) == 2

    ran = pool.run(["condor_status", "-l", "-direct", "node1.pool.test"])
    [written] = [
        line.partition(" = ")[2] for line in ran.stdout.splitlines() if line.startswith("MaxJobRetirementTime")
    ]
    assert why_at_once(written) == ""


def test_the_nodes_are_shown_by_their_price(pool: CondorPool) -> None:
    """The command that docs/htcondor.md has: the cheapest first, an empty node costs nothing."""

    def shown_at_all() -> bool:
        price = of_nodes(pool, PRICE)
        return len(price) == 3 and price["node3"] > 3600

    pool.wait_for(shown_at_all, 60, "a price of each node")
    shown = pool.run(["sh", "-c", NODES], user="bob").stdout
    heading, *rows = [line.split() for line in shown.splitlines() if line.strip()]
    assert heading == ["Node", "Cores", "Free", "Slots", "Price", "Reported", "Remaining", "Draining"]
    table = [dict(zip(heading, row)) for row in rows]
    assert len(table) == 3
    prices = [int(row["Price"]) for row in table]
    assert prices == sorted(prices)
    dearest = table[-1]
    assert (dearest["Node"], dearest["Cores"], dearest["Free"], dearest["Slots"]) == ("node3.pool.test", "8", "0", "2")
    assert dearest["Reported"] == dearest["Price"] and 3000 < int(dearest["Remaining"]) <= 3600


def runs_on(pool: CondorPool, node: str) -> tuple[list[str], float]:
    """Return the jobs that the startd of a node has, and the node's price by the lists of its partitionable slot."""
    query = ["condor_status", "-direct", f"{node}.pool.test", "-af", "PartitionableSlot", "GlobalJobId", PRICE]
    rows = [line.split() for line in pool.run(query).stdout.splitlines()]
    [price] = [float(row[2]) for row in rows if row[0] == "true"]
    return [row[1] for row in rows if row[0] != "true" and row[1] != "undefined"], price


def test_a_claim_that_is_used_again_obeys_nothing_of_the_run_before(pool: CondorPool) -> None:
    """Inside the startd the former run's report stays on the claim: there, too, it must count for no other run."""
    pool.configure("central", "60-defrag.conf", DEFRAG.format(whole=0))
    pool.reconfigure("central")
    pool.run(["condor_rm", "-all"], check=False)
    pool.wait_for(lambda: not pool.queue() and not pool.slots('State == "Claimed"', ["Name"]), 60, "an empty pool")
    needs = ('requirements = Machine == "node1.pool.test"', TRANSFERRED)
    program = "/usr/share/drainwise/pilot"
    dear = pool.submit(described("128 0", *needs, executable=program), user="alice")
    pool.wait_for(lambda: runs_on(pool, "node1")[1] > 7 * 3000, 60, "the price of the pilot that reports")
    silent = pool.submit(described("", *needs, executable=program), user="alice")
    [claim] = pool.queue(f"ClusterId == {dear}", ["PublicClaimId"])
    pool.run(["condor_rm", str(dear)], user="alice")
    pool.wait_for(lambda: f"#{silent}.0#" in "".join(runs_on(pool, "node1")[0]), 60, "the next run on the claim")
    assert pool.queue(f"ClusterId == {silent}", ["PublicClaimId"]) == [claim], "the claim was not used again"

    pool.wait_for(lambda: runs_on(pool, "node1")[1] < 7 * 3000, 20, "a price without the report of the run before")
    for _ in range(10):
        time.sleep(0.5)
        jobs, price = runs_on(pool, "node1")
        assert (len(jobs), price < 7 * 3000) == (1, True), "silent: cores x run time"
