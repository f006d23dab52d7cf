"""`drainwise launch` in a real pool: 200 jobs, and what goes wrong with one, with the schedd and with us."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

import pytest

import launch_checks as checks
from condor_pool import CondorPool
from launch_on_site import USER, Accounted, LaunchOnSite, job

pytestmark = [pytest.mark.play, pytest.mark.in_turn("launch", "HTCondor")]
ONE_RELEASE = pytest.mark.parametrize("release", ["trixie"], indirect=True)
SPOOL = "/srv/central/spool/condor"
LICENCE = (
    "MACHINE_RESOURCE_licence = 4\nHAS_LICENCE = {}\nSTART = $(HAS_LICENCE) || TARGET.RequestLicence =?= undefined\n"
)
LIMIT = 3


class HTCondor:
    """See `BatchSystem`."""

    backend = "htcondor"
    slack = 6.0  # a negotiation cycle

    def __init__(self, site: CondorPool) -> None:
        self.site = site
        self.table: Mapping[str, object] = {"history_seconds": 3, "check_seconds": 2, "command_seconds": 10}

    def queued(self, waiting: bool) -> dict[str, str]:
        constraint = f"JobStatus == {1 if waiting else 2} && isString(DrainwiseLaunchTag)"
        return {name: f"{number:g}" for name, number, _began in self._named("condor_q", "-allusers", constraint)}

    def end(self, number: str) -> None:
        self.site.run(["condor_rm", number], user=USER)

    def accounted(self) -> list[tuple[str, Accounted]]:
        ended = self._named("condor_history", constraint="isString(DrainwiseLaunchTag)")
        return [(name, Accounted(number, began)) for name, number, began in ended]

    def _named(self, *command: str, constraint: str = "") -> list[tuple[str, float, float]]:
        if not constraint:
            *words, constraint = command
            command = tuple(words)
        fields = ["-af:t", "JobDescription", "ClusterId", "JobStartDate"]
        said = self.site.run([*command, "-constraint", constraint, *fields], check=False).stdout
        found = []
        for line in said.splitlines():
            name, number, began = line.split("\t")
            found.append((name.partition(":")[2], float(number), float(began) if began.isdigit() else 0.0))
        return found


@pytest.fixture(scope="module")
def own_pool(release: str) -> Iterator[CondorPool]:
    with CondorPool(nodes=2, cpus=16, release=release, config={"node2": LICENCE.format(False)}) as running:
        yield running


@pytest.fixture(scope="module")
def launcher(own_pool: CondorPool) -> Iterator[LaunchOnSite]:
    made = LaunchOnSite(HTCondor(own_pool))
    yield made
    made.close()


@pytest.fixture(autouse=True)
def _no_job_left(own_pool: CondorPool) -> Iterator[None]:
    yield
    own_pool.run(["condor_rm", "-all"], check=False)
    own_pool.wait_for(lambda: not own_pool.queue(), 30, "the end of all jobs")


@ONE_RELEASE
def test_two_hundred_jobs(launcher: LaunchOnSite) -> None:
    """5 buckets, never more than n_max_queued_jobs of one idle, begun by pressure; one fails, one is removed."""
    checks.two_hundred(launcher)


@ONE_RELEASE
def test_a_job_that_vanishes_is_started_once_more(launcher: LaunchOnSite, own_pool: CondorPool) -> None:
    """A schedd whose queue is restored from older days knows nothing of younger jobs."""

    def prepare() -> None:
        own_pool.run(["cp", "-a", f"{SPOOL}/job_queue.log", f"{SPOOL}/older"])

    def lose(_number: str) -> None:
        own_pool.run(["condor_off", "-fast", "-daemon", "schedd"])
        schedd_gone(own_pool)
        own_pool.run(["sh", "-c", f"cd {SPOOL} && rm -f job_queue.log* && mv older job_queue.log"])
        own_pool.run(["condor_on", "-daemon", "schedd"])
        own_pool.configure("node2", "60-licence.conf", LICENCE.format(True))
        own_pool.run(["condor_reconfig"], node="node2")

    checks.vanished(launcher, "licence", prepare, lose)


@ONE_RELEASE
def test_the_schedd_goes_away_and_comes_back(launcher: LaunchOnSite, own_pool: CondorPool) -> None:
    def leave() -> None:
        own_pool.run(["condor_off", "-daemon", "schedd"])
        schedd_gone(own_pool)

    checks.away(launcher, "away", leave, lambda: own_pool.run(["condor_on", "-daemon", "schedd"]))


def schedd_gone(pool: CondorPool) -> None:
    pool.wait_for(lambda: pool.run(["pgrep", "-x", "condor_schedd"], check=False).returncode, 20, "the schedd's end")


@ONE_RELEASE
def test_the_schedd_hangs(launcher: LaunchOnSite, own_pool: CondorPool) -> None:
    schedd = own_pool.run(["pgrep", "-x", "condor_schedd"]).stdout.split()
    checks.hangs(launcher, int(schedd[0]), ["condor_q"])


@ONE_RELEASE
def test_the_next_launcher_takes_up_what_a_killed_one_left(launcher: LaunchOnSite) -> None:
    checks.launcher_killed(launcher)


@ONE_RELEASE
def test_ctrl_c_ends_what_was_started(launcher: LaunchOnSite) -> None:
    checks.interrupted(launcher)


@ONE_RELEASE
def test_new_priorities_count_for_those_that_wait(launcher: LaunchOnSite, own_pool: CondorPool) -> None:
    where = 'Machine == "node1.pool.test"'
    text = f"executable = /bin/sleep\narguments = 300\nrequest_cpus = 16\nrequirements = {where}\nqueue\n"
    blocker = own_pool.submit(text, "bob")
    own_pool.wait_for(lambda: own_pool.queue(f"ClusterId == {blocker} && JobStatus == 2"), 30, "all cores to be in use")
    resources: dict[str, object] = {"cpu": 16, "requirements": where}
    checks.reprioritised(launcher, resources, lambda: own_pool.run(["condor_rm", str(blocker)]))


def test_what_a_job_is_told_and_what_htcondor_has_not(launcher: LaunchOnSite, own_pool: CondorPool) -> None:
    """Requirements; names, words and a place with the signs of shells and macros; refused, on hold, run once more."""
    evil = "a'b\"c $(id) `id` ;|&<> $(Cluster) $$(Cpus) x"
    twice = 'test -e "$HOME/once" || { touch "$HOME/once"; exec sleep 300; }'
    jobs = [
        job("wrong", ["true"], requirements="((("),
        job(
            "placed",
            ["sh", "-c", 'grep -h ^Machine "$_CONDOR_MACHINE_AD"'],
            requirements='Machine == "node2.pool.test"',
        ),
        job(evil, ["printf", "%s", evil]),
        job("nowhere", ["no such program"]),
        {**job("held", ["sleep", "100"]), "wall_limit": 1},
        job("twice", ["sh", "-c", twice]),
    ]
    code, _none, said = launcher.launch("text", [job("text", ["true"], colour="red")]).end()
    assert code == 2 and "HTCondor counts its resources" in said
    launched = launcher.launch("it's $(Cluster), #1", jobs)
    own_pool.wait_for(lambda: os.path.exists(f"{own_pool.root}/home/{USER}/once"), 30, "the job to run")
    own_pool.run(["condor_vacate_job", "-fast", launcher.number("twice", waiting=False)], user=USER)
    code, ended, said = launched.end()
    assert code == 1, said
    states = {name: (one["state"], one["code"]) for name, one in ended.items()}
    assert {name: states[name] for name in ("placed", evil, "twice", "nowhere")} == {
        "placed": ("done", 0),
        evil: ("done", 0),
        "twice": ("done", 0),
        "nowhere": ("failed", 127),
    }, ended
    assert [ended[name]["state"] for name in ("wrong", "held")] == ["failed"] * 2
    assert "on hold" in str(ended["held"]["why"])

    def printed(name: str) -> str:
        with open(own_pool.root + str(ended[name]["output"]), encoding="utf-8") as file:
            return file.read()

    assert printed(evil) == evil
    assert '"node2.pool.test"' in printed("placed")
    own_pool.wait_for(lambda: not own_pool.queue(), 20, "the job on hold to be gone")


def test_a_limit_on_jobs_and_a_lost_log(launcher: LaunchOnSite, own_pool: CondorPool) -> None:
    """What the schedd does not take waits and keeps its place, which is said once; without the log the queue tells."""
    own_pool.configure("central", "60-limit.conf", f"MAX_JOBS_PER_OWNER = {LIMIT}\n")
    own_pool.reconfigure("central")  # which waits until the schedd has read it
    state = f"/home/{USER}/limit.json.launch"
    first = job("first", ["sh", "-c", f"rm {state}/htcondor-events.log; exit 5"], expected=1000.0)
    others = [job(f"limited-{place}", ["true"], expected=900.0 - 100 * place) for place in range(5)]
    most = 0

    def look() -> dict[str, str]:
        nonlocal most
        most = max(most, len(own_pool.queue("isString(DrainwiseLaunchTag)", ["ClusterId"])))
        return {}

    try:
        launched = launcher.launch("limit", [*reversed(others), first])
        code, ended, said = launched.end(look)
    finally:
        own_pool.configure("central", "60-limit.conf", "")
        own_pool.run(["condor_reconfig"])
    assert code == 1 and said.count("takes no more jobs") == 1, said
    assert ended.pop("first")["code"] == 5, ended
    assert len(ended) == len(others) and {str(one["state"]) for one in ended.values()} == {"done"}, ended
    assert 1 <= most <= LIMIT
    numbers = {name: record.number for name, record in launcher.system.accounted()}
    assert sorted(ended, key=lambda name: numbers[name]) == [one["name"] for one in others]
