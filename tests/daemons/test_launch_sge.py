"""`drainwise launch` in a real Grid Engine: 200 jobs, and what goes wrong with one, with qmaster and with us."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator, Mapping
from xml.etree import ElementTree

import pytest

import launch_checks as checks
from launch_on_site import USER, Accounted, LaunchOnSite, job
from real_daemons.furnish import write_file
from real_daemons.traces import host_state, namespace_of, processes_in
from real_daemons.waiting import wait_for
from sge_cluster import SgeCluster

pytestmark = [pytest.mark.play, pytest.mark.in_turn("launch", "Grid Engine")]
FULL_NAME = re.compile(r"[A-Za-z0-9_.-]+;(.+)\.[A-Za-z0-9_-]+")


class GridEngine:
    """See `BatchSystem`."""

    backend = "sge"
    slack = 2.0

    def __init__(self, site: SgeCluster) -> None:
        self.site = site
        self.table: Mapping[str, object] = {
            "bin": "/usr/lib/gridengine",
            "root": "/var/lib/gridengine",
            "cell": "default",
            "cpu_resource": "cpu_r",
            "mem_resource": "mem_r",
            "tmp_resource": "tmp_r",
            "accounting_seconds": 3,
        }

    def queued(self, waiting: bool) -> dict[str, str]:
        said = self.site.run(["qstat", "-r", "-xml", "-u", USER, "-s", "p" if waiting else "r"], check=False).stdout
        found = {}
        for one in ElementTree.fromstring(said).iter("job_list") if said else ():
            match = FULL_NAME.fullmatch(one.findtext("full_job_name", ""))
            if match:
                found[match[1]] = one.findtext("JB_job_number", "")
        return found

    def end(self, number: str) -> None:
        self.site.run(["qdel", number], user=USER)

    def accounted(self) -> list[tuple[str, Accounted]]:
        named = ((FULL_NAME.fullmatch(one["name"]), one) for one in self.site.accounting())
        return [(match[1], Accounted(int(one["number"]), int(one["start"]))) for match, one in named if match]


@pytest.fixture(scope="module")
def launcher(sge: SgeCluster) -> Iterator[LaunchOnSite]:
    made = LaunchOnSite(GridEngine(sge))
    yield made
    made.close()


@pytest.fixture(autouse=True)
def _no_job_left(sge: SgeCluster) -> Iterator[None]:
    yield
    sge.cancel_all()


def test_two_hundred_jobs(launcher: LaunchOnSite) -> None:
    """5 buckets, never more than n_max_queued_jobs of one waiting, begun by pressure; one fails, one is deleted."""
    checks.two_hundred(launcher)


def test_a_job_that_vanishes_is_started_once_more(launcher: LaunchOnSite, sge: SgeCluster) -> None:
    """A waiting job that an administrator deletes is in no accounting of Grid Engine's."""
    blockers = []

    def prepare() -> None:
        blockers.append(sge.submit("sleep 300", "bob", ["-N", "blocker", "-l", "licence=4"]))
        sge.wait_for(lambda: blockers[0] in sge.numbers("r"), 20, "all licences to be in use")

    def lose(number: str) -> None:
        sge.run(["qdel", number])
        sge.run(["qdel", str(blockers[0])])

    checks.vanished(launcher, "licence", prepare, lose)


def test_qmaster_goes_away_and_comes_back(launcher: LaunchOnSite, sge: SgeCluster) -> None:
    """The host learns of it when qmaster is back: one that asks a moment too early asks again after half a minute."""
    execd = str(sge.daemon_pid("sge_execd"))

    def is_frozen() -> bool:
        """Whether the host stands still, and no job is on its way to it: qmaster would wait minutes for such a one."""
        sge.run(["kill", "-STOP", execd])
        listed = ElementTree.fromstring(sge.run(["qstat", "-xml", "-u", USER]).stdout)
        states = {one.text for one in listed.iter("state")}
        if states == {"r"}:
            return True
        sge.run(["kill", "-CONT", execd])
        return False

    def leave() -> None:
        sge.wait_for(is_frozen, 20, "jobs that run while none waits or is on its way")
        sge.kill_daemon("sge_qmaster", signal.SIGKILL)

    def come_back() -> None:
        asked = sge.run(["qstat"], user=USER, check=False)
        assert asked.returncode != 0
        sge.start_daemon("sge_qmaster")
        sge.run(["kill", "-CONT", execd])

    checks.away(launcher, "away", leave, come_back)


def test_qmaster_hangs(launcher: LaunchOnSite, sge: SgeCluster) -> None:
    checks.hangs(launcher, sge.daemon_pid("sge_qmaster"), ["qstat"])


def test_the_next_launcher_takes_up_what_a_killed_one_left(launcher: LaunchOnSite) -> None:
    checks.launcher_killed(launcher)


def test_ctrl_c_ends_what_was_started(launcher: LaunchOnSite) -> None:
    checks.interrupted(launcher)


def test_new_priorities_count_for_those_that_wait(launcher: LaunchOnSite, sge: SgeCluster) -> None:
    blocker = sge.submit("sleep 300", "bob", ["-N", "blocker", "-l", "cpu_r=16"])
    sge.wait_for(lambda: blocker in sge.numbers("r"), 20, "all cores to be in use")
    checks.reprioritised(launcher, {"cpu": 16}, lambda: sge.run(["qdel", str(blocker)]))


def test_what_grid_engine_has_not_is_refused_and_what_it_will_not_start_is_told(
    launcher: LaunchOnSite, sge: SgeCluster
) -> None:
    """An unknown resource; names and words with shell characters; exit codes that Grid Engine takes for orders."""
    evil = "a'b\"c $(id) `id` ;|&<> #$ -N x"
    lines = "\n#$ -t 1-3\n#$ -q nowhere\n"
    jobs = [
        job("unknown", ["true"], licences=1),
        job("ninety-nine", ["sh", "-c", "exit 99"]),
        job("hundred", ["sh", "-c", "exit 100"]),
        job("nowhere", ["no such program"]),
        job(evil, ["printf", "%s", evil + lines]),
        {**job("no directory", ["true"]), "cwd": "/nowhere"},
        job("soft", ["true"], hard="-q main -l arch=lx*", soft="-l arch=none"),
    ]
    code, ended, said = launcher.launch("odd", jobs).end()
    assert code == 1, said
    assert {name: (one["state"], one["code"]) for name, one in ended.items() if name != "unknown"} == {
        "ninety-nine": ("failed", 99),
        "hundred": ("failed", 100),
        "nowhere": ("failed", 127),
        evil: ("done", 0),
        "no directory": ("failed", 125),
        "soft": ("done", 0),
    }
    assert ended["unknown"]["state"] == "failed" and 'unknown resource "licences"' in str(ended["unknown"]["why"])
    with open(sge.root + str(ended[evil]["output"]), encoding="utf-8") as file:
        assert file.read() == evil + lines


def test_a_user_s_own_files_for_the_commands_make_no_other_jobs_and_hide_none(
    launcher: LaunchOnSite, sge: SgeCluster
) -> None:
    """What qsub is to do by ~/.sge_request, and what qstat hides by ~/.sge_qstat: a job still runs once."""
    before = len(launcher.system.accounted())
    files = {".sge_request": "-b y -now y -p -9 -soft -l arch=none", ".sge_qstat": "-l arch=none"}
    for name, line in files.items():
        write_file(sge.root, f"/home/{USER}/{name}", line + "\n")
    try:
        jobs = [job("longer", ["sleep", "4"]), job("after", ["true"], after=["longer"])]
        code, ended, said = launcher.launch("hidden", jobs).end()
    finally:
        sge.run(["rm", *(f"/home/{USER}/{name}" for name in files)])
    assert code == 0 and not said, (ended, said)
    launcher.done(before + 2)
    assert len(launcher.system.accounted()) == before + 2


def test_a_limit_on_jobs_that_is_reached_delays_them(launcher: LaunchOnSite, sge: SgeCluster) -> None:
    before = len(launcher.system.accounted())
    sge.configure({"max_u_jobs": "2"})
    try:
        code, ended, said = launcher.launch("full", [job(f"full-{place}", ["true"]) for place in range(5)]).end()
    finally:
        sge.configure({"max_u_jobs": "0"})
    assert code == 0 and said.count("2 jobs are allowed per user") == 1, (ended, said)
    launcher.done(before + 5)
    assert len(launcher.system.accounted()) == before + 5


def test_a_job_in_error_is_cleared_away(launcher: LaunchOnSite, sge: SgeCluster) -> None:
    """Grid Engine keeps a job that its prolog refuses in the queue until somebody clears it: it has failed."""
    write_file(sge.root, "/srv/refuse", "#!/bin/sh\nexit 100\n", 0o755)
    sge.run(["qconf", "-mattr", "queue", "prolog", "/srv/refuse", "main"])
    try:
        code, ended, said = launcher.launch("error", [job("stuck", ["true"])]).end()
    finally:
        sge.run(["qconf", "-mattr", "queue", "prolog", "NONE", "main"])
    assert code == 1, said
    assert ended["stuck"]["code"] == 126 and "error state (Eqw): " in str(ended["stuck"]["why"])
    assert str(ended["stuck"]["why"]).endswith("exit_status of prolog = 100")
    sge.wait_for(lambda: not sge.numbers(), 20, "the job in error to be gone")


def test_a_cell_leaves_nothing_behind() -> None:
    """One of its own beside the shared one: after its end no process, mount, user or file of it is there."""
    before = host_state()
    with SgeCluster(slots=1) as cell:
        namespaces = {namespace_of(cell.pid, kind) for kind in ("pid", "mnt")}
        number = cell.submit("sleep 300", "alice")
        cell.wait_for(lambda: number in cell.numbers("r"), 20, "a job to run")
        assert len(processes_in(namespaces)) > 4
    wait_for(lambda: not processes_in(namespaces), 10, "the end of the cell's processes")
    assert host_state() == before
