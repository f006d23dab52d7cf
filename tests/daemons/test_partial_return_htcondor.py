"""`[htcondor] partial_return = yes` on real daemons: what a pilot returns others get, and never a core too many."""

from __future__ import annotations

import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from condor_jobs import TRANSFERRED, described
from condor_pool import CondorPool
from drainwise.htcondor.setup.render import ROLES, render
from drainwise.install.rendered_tree import RenderedFile, write_tree
from drainwise.pool.snapshot_json import snapshot_from_json
from drainwise.siteconfig import load

pytestmark = [pytest.mark.play, pytest.mark.in_turn("parts", "partial return")]
PLUGINS = Path(__file__).parents[2] / "plugins"
ENVIRONMENT = {"PYTHONPATH": os.fspath(PLUGINS)}
CORES = 8

SITE_FILE = """\
[htcondor]
cron_period = 2s
update_interval = 2s
initial_update_interval = 1s
max_vacate_time = 5s
partial_return = yes
"""

# States as returned what stands in the file that it is given, with a new time for each change, and keeps the last site
# notice there beside.
PILOT = """\
#!/bin/sh
cd "$_CONDOR_SCRATCH_DIR"
last= since=0
while :; do
  returned=$(cat "$1")
  now=$(date +%s)
  if [ "$returned" != "$last" ]; then
    [ "$now" -gt "$since" ] && since=$now || since=$((since + 1))
    last=$returned
  fi
  cat > .pilot.ad.new <<END
LAST_JOB_START = $now
FIRST_EXP_JOB_END = $((now + 3600))
LAST_EXP_JOB_END = $((now + 3600))
LAST_MAX_JOB_END = $((now + 3600))
USED_FRACTION1k = 128
ADD_UNCOM_TIME1k = 0
ADD_FINAL_EXP_WASTE1k = 0
PRIORITY_FACTOR = 3
CAN_POSTPONE_LAST_JOB = True
RETURNED_CORES = $returned
RETURNED_MEMORY = 1024
RETURNED_SINCE = $since
END
  mv .pilot.ad.new .pilot.ad
  { echo "STATED = $returned $since"; cat .site.ad; } > "$1.notice.new" 2>/dev/null && mv "$1.notice.new" "$1.notice"
  sleep 0.5
done
"""


JOB = """\
#!/bin/sh
until [ -e "$1" ]; do sleep 0.3; done
"""

PROGRAMS = {"pilot": PILOT, "job": JOB}


class Sample(NamedTuple):
    """What a startd has at one moment: the cores of alice's slots, what is lent of them, the cores of bob's slots."""

    pilots: tuple[int, ...]
    lent: int
    others: tuple[int, ...]
    free: int


class Node:
    """The pool's one node: samples of its startd, and the pilot's word."""

    def __init__(self, pool: CondorPool) -> None:
        self.pool, self.samples, self.is_restarting = pool, list[Sample](), False
        self._word = Path(f"{pool.root}/home/alice/word")

    def say(self, cores: int) -> None:
        """Have the pilot state that so many cores are returned."""
        self._word.with_suffix(".new").write_text(f"{cores}\n")
        self._word.with_suffix(".new").rename(self._word)

    def notice(self) -> dict[str, str]:
        """Return the site notice that the pilot has read last, and beside it what it stated then."""
        try:
            lines = self._word.with_suffix(".notice").read_text().splitlines()
        except OSError:
            return {}
        return {name: value for name, _, value in (line.partition(" = ") for line in lines)}

    def is_allowed(self, cores: int) -> bool:
        """Return whether the pilot's last statement is acknowledged with so many cores to use."""
        notice = self.notice()
        since = notice.get("STATED", " ").split(" ")[-1]
        return (notice.get("RETURN_SEEN"), notice.get("USABLE_CORES")) == (since, str(cores))

    def look(self) -> Sample:
        """Ask the startd, and keep the answer."""
        query = ["condor_status", "-direct", "node1.pool.test", "-af"]
        query += ["PartitionableSlot", "RemoteOwner", "Cpus", "PilotLentCpus", "PilotFreeCpus"]
        ran = self.pool.run(query, check=not self.is_restarting)
        rows = [line.split() for line in ran.stdout.splitlines()]
        parts = [row for row in rows if row[0] != "true"]
        alices = [row for row in parts if row[1].startswith("alice")]
        others = tuple(sorted(int(row[2]) for row in parts if row not in alices))
        free = min((int(row[4]) for row in rows), default=0)
        found = Sample(tuple(int(row[2]) for row in alices), sum(int(row[3]) for row in alices), others, free)
        self.samples.append(found)
        return found

    def until(self, condition: Callable[[Sample], bool], seconds: float, what: str) -> list[Sample]:
        """Look until a condition holds; return what was seen on the way."""
        begin = len(self.samples)
        self.pool.wait_for(lambda: condition(self.look()), seconds, what)
        return self.samples[begin:]

    def watch(self, seconds: float) -> list[Sample]:
        """Return what is seen for some time."""
        begin, end = len(self.samples), time.monotonic() + seconds
        while time.monotonic() < end:
            self.look()
            time.sleep(0.2)
        return self.samples[begin:]


@pytest.fixture(scope="module")
def node(release: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A node of 8 cores."""
    file = tmp_path_factory.mktemp("site") / "site.ini"
    file.write_text(SITE_FILE)
    site = load(str(file))
    config = {role: render(site, role)[-1].text for role in ROLES}
    with CondorPool(nodes=1, cpus=CORES, release=release, config=config) as pool:
        pool.copy_in(str(PLUGINS / "drainwise"), "/usr/share/drainwise/drainwise")
        files = [file for role in ROLES for file in render(site, role)[:-1]]
        programs = [RenderedFile(f"/usr/share/drainwise/{name}", text, 0o755) for name, text in PROGRAMS.items()]
        write_tree([*files, *programs], pool.root)
        pool.reconfigure("execute")
        pool.wait_for(lambda: pool.slots("PilotCronHeartbeat isnt undefined", ["Name"]), 30, "the cron")
        yield Node(pool)


def as_the_agent_sees_it(node: Node) -> tuple[dict[str, float], dict[str, float], float]:
    """Return the cores that each user holds, those that each waits for, and what is free."""
    ran = node.pool.run_outside([sys.executable, "-m", "drainwise", "snapshot"], environment=ENVIRONMENT)
    seen = snapshot_from_json(json.loads(ran.stdout))
    held = Counter[str]()
    for pilot in seen.pilots:
        held[pilot.user.partition("@")[0]] += pilot.cores
    wanted = {one.name.partition("@")[0]: one.cores_wanted for one in seen.accounts if one.cores_wanted}
    return dict(held), wanted, sum(place.free.cores for place in seen.places)


def start_pilot(node: Node) -> int:
    """Submit a pilot of all cores as alice."""
    program = "/usr/share/drainwise/pilot"
    return node.pool.submit(described("/home/alice/word", TRANSFERRED, cores=CORES, executable=program), user="alice")


def borrow(node: Node, cores: int, name: str, count: int = 1) -> None:
    """Submit jobs of bob's that run until they are told to end."""
    program = "/usr/share/drainwise/job"
    lines = described(f"/home/bob/{name}", TRANSFERRED, cores=cores, count=count, executable=program)
    node.pool.submit(lines, user="bob")


def end(node: Node, name: str) -> None:
    """Tell the jobs of that name to end."""
    Path(f"{node.pool.root}/home/bob/{name}").touch()


def test_what_a_pilot_returns_others_get_and_never_a_core_too_many(node: Node) -> None:
    """Returned, lent, taken back, in debt at its end, the claim used again, the cron dead."""
    pool = node.pool
    # Nothing is lent: bob waits.
    node.say(0)
    first = start_pilot(node)
    node.until(lambda one: one.pilots == (CORES,), 60, "the pilot's start")
    pool.wait_for(lambda: node.is_allowed(CORES), 60, "the acknowledgement of all cores")
    borrow(node, 4, "large")
    borrow(node, 1, "small", count=3)
    assert {one.others for one in node.watch(10)} == {()}
    waits = ({"alice": 8}, {"bob": 7.0}, 0)
    pool.wait_for(lambda: as_the_agent_sees_it(node) == waits, 30, "bob's jobs in the agent's view")

    # The site asks for 5; that alone frees none.
    [run] = pool.slots("JobStart isnt undefined", ["GlobalJobId", "JobStart"])
    wish = f"PILOT_RETURN = {run.text('GlobalJobId')}@{run.integer('JobStart')}=5:0:1"
    pool.run(["condor_config_val", "-startd", "-rset", wish], node="node1")
    pool.reconfigure("node1")
    pool.wait_for(lambda: node.notice().get("RETURN_CORES") == "5", 60, "the wish in the site notice")
    assert {one.others for one in node.watch(3)} == {()}

    # 5 are returned: a job of 4 and one of 1 start, the others wait.
    node.say(5)
    seen = node.until(lambda one: one.others == (1, 4), 60, "a job of 4 cores and one of 1")
    seen += node.watch(5)
    assert max(sum(one.others) for one in seen) == 5 and {one.pilots for one in seen} == {(CORES,)}
    pool.wait_for(lambda: node.is_allowed(CORES - 5), 60, "the acknowledgement of what is left")
    shared = ({"alice": 3, "bob": 5}, {"bob": 2.0}, 0)
    pool.wait_for(lambda: as_the_agent_sees_it(node) == shared, 30, "each core once in the agent's view")
    weights = pool.run(["condor_status", "-direct", "node1.pool.test", "-af", "SlotWeight"]).stdout.split()
    assert sum(map(float, weights)) == CORES, "the pool looks larger than it is"

    # 2 only: nobody new comes, and no core is used again before it is free.
    node.say(2)
    node.until(lambda one: one.lent == 2, 60, "the smaller number")
    seen = node.watch(6)
    assert {one.others for one in seen} == {(1, 4)} and {one.free for one in seen} == {-3}
    pool.wait_for(lambda: node.is_allowed(3), 60, "the acknowledgement that nothing is free yet")
    end(node, "large")
    seen = node.until(lambda one: 4 not in one.others, 60, "the end of the job of 4 cores")
    assert max(sum(one.others) for one in seen) <= 5
    pool.wait_for(lambda: node.is_allowed(6), 60, "the acknowledgement of the cores that are free again")
    seen = node.until(lambda one: one.others == (1, 1), 60, "the next jobs") + node.watch(3)
    assert max(sum(one.others) for one in seen) == 2

    ends_in_debt(node, first)
    goes_on_without_a_cron(node)
    begins_anew(node)


def ends_in_debt(node: Node, pilot: int) -> None:
    """It goes while others have its cores: the next pilot of the same user does not come before they have left."""
    start_pilot(node)
    node.pool.run(["condor_rm", str(pilot)], user="alice")
    node.until(lambda one: one.pilots == () and one.lent == 0, 60, "the first pilot's end")
    seen = node.watch(6)
    assert {one.pilots for one in seen} == {()} and min(sum(one.others) for one in seen) >= 2
    end(node, "small")
    seen = node.until(lambda one: one.pilots == (CORES,) and one.lent == 2, 120, "the next pilot's word")
    assert {sum(one.pilots) + sum(one.others) - one.lent > CORES for one in seen} == {False}


def goes_on_without_a_cron(node: Node) -> None:
    """Nothing is lent any more, and nobody is ended; with the cron it goes on."""
    pool = node.pool
    borrow(node, 1, "before", count=2)
    node.until(lambda one: one.others == (1, 1), 60, "jobs on what the next pilot has returned")
    hidden = Path(f"{pool.root}/usr/share/drainwise/hidden")
    package = Path(f"{pool.root}/usr/share/drainwise/drainwise")
    package.rename(hidden)
    borrow(node, 1, "after", count=3)
    node.until(lambda one: one.lent == 0, 60, "the end of the word's time")
    assert {one.others for one in node.watch(3)} == {(1, 1)}
    end(node, "before")
    node.until(lambda one: one.others == (), 60, "the end of bob's jobs")
    assert {one.others for one in node.watch(8)} == {()}
    hidden.rename(package)
    seen = node.until(lambda one: one.others == (1, 1), 60, "the cron is back")
    seen += node.watch(3)
    assert max(sum(one.others) for one in seen) == 2
    started = {ad.integer("NumJobStarts") for ad in pool.history('Owner == "bob"', ["NumJobStarts"])}
    assert started == {1}, "a borrower was ended"


def begins_anew(node: Node) -> None:
    """A startd that is restarted lends nothing before it has read the word of the run that it starts then."""
    end(node, "after")
    node.until(lambda one: one.others == (), 60, "the end of bob's last jobs")
    [before] = node.pool.slots("JobStart isnt undefined", ["JobStart"])
    node.is_restarting = True  # until it answers, a look shows nobody
    node.pool.run(["condor_restart", "-fast", "-startd"], node="node1")

    def is_another_run() -> bool:
        found = node.pool.slots("RemoteOwner isnt undefined && JobStart isnt undefined", ["JobStart", "Cpus"])
        return any(ad.integer("Cpus") == CORES and ad.integer("JobStart") > before.integer("JobStart") for ad in found)

    seen = node.until(lambda one: one.pilots == (), 60, "the end of all jobs")
    seen += node.until(lambda _: is_another_run(), 180, "the pilot's next run")
    node.is_restarting = False
    borrow(node, 1, "anew", count=3)
    seen += node.until(lambda one: one.lent == 2 and one.others == (1, 1), 60, "jobs on what it has returned")
    seen += node.watch(3)
    assert max(sum(one.pilots) + sum(one.others) - one.lent for one in seen) == CORES
