"""The update hook: what the batch system decided about a slot reaches the pilot, and only while it stands."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.htcondor.node.order_list import ENDLESS
from drainwise.htcondor.node.update_hook import JITTER, job_deadline, ordered_deadline, slot_deadline
from drainwise.pilotad.site_ad import SiteAd
from made_up_node import PYTHON, Job, Node, Programs, make_directory, run_as, write
from real_daemons.waiting import wait_for

pytestmark = pytest.mark.daemons  # it runs real hooks as a job's user

# What does not depend on the layout of the directories is tried in one of them.
ONE_LAYOUT = pytest.mark.parametrize("node", ["since 25.4"], indirect=True)
USER = 54321
NOW = 1795249000
RUNNING: dict[str, str | int | float | bool] = {
    "Activity": "Busy",
    "State": "Claimed",
    "GlobalJobId": "central#7.0#1795240000",
    "JobStart": 1795241000,
    "MyCurrentTime": NOW,
    "RetirementTimeRemaining": 3600,
}
times = st.integers(NOW - 10_000, NOW + 100_000)


# ---- the decision ----


def test_a_busy_slot_has_no_deadline() -> None:
    """Retirement time that is left over is no order."""
    assert slot_deadline(RUNNING, NOW) is None


def test_an_order_is_the_deadline() -> None:
    """The list of the node names this run among others; its deadline comes before the countdown."""
    orders = f"central#6.0#1@2={NOW} central#7.0#1795240000@1795241000={NOW + 600} x#1@2=3"
    slot = {**RUNNING, "PilotReclaimOrders": orders, "Activity": "Retiring", "RetirementTimeRemaining": 597}
    assert slot_deadline(slot, NOW) == NOW + 600


@pytest.mark.parametrize("activity", ["Busy", "Retiring"])
@pytest.mark.parametrize("deadline", [NOW - 10_000, NOW + 60, NOW + 10**6])
def test_a_list_of_orders_that_somebody_set_is_not_obeyed(activity: str, deadline: int) -> None:
    """With WRITE at the startd anybody can set that attribute: only a slot that retires has a deadline, and its own."""
    orders = f"central#7.0#1795240000@1795241000={deadline}"
    slot = {**RUNNING, "PilotReclaimOrders": orders, "Activity": activity, "RetirementTimeRemaining": 3600}
    assert slot_deadline(slot, NOW) == (NOW + 3600 if activity == "Retiring" else None)
    hidden = {**slot, "PilotReclaimOrders": ""}
    assert slot_deadline(hidden, NOW) == slot_deadline(slot, NOW), "nor does hiding the list help"


@pytest.mark.parametrize(
    ("activity", "left", "deadline"),
    [("Busy", 0, None), ("Retiring", ENDLESS - 5000, None), ("Retiring", 300, NOW + 300)],
)
def test_an_order_that_was_withdrawn_says_nothing(activity: str, left: int, deadline: int | None) -> None:
    """Though the slot still retires; one that somebody else drains by now has that deadline."""
    orders = f"central#7.0#1795240000@1795241000={NOW + 600} central#7.0#1795240000@1795241000=0"
    slot = {**RUNNING, "Activity": activity, "RetirementTimeRemaining": left}
    assert slot_deadline({**slot, "PilotReclaimOrders": orders}, NOW) == deadline
    assert job_deadline({**slot, "PilotReclaimOrders": orders}, SiteAd(True, NOW + 600), NOW) == deadline


@pytest.mark.parametrize("left", [ENDLESS - 5000, 2**31 - 5001])
@pytest.mark.parametrize("said", [None, NOW + 600])
def test_a_retirement_without_an_end_is_no_deadline(left: int, said: int | None) -> None:
    """A startd that waits for its last job (condor_restart -peaceful) retires its slots for 68 years.

    An order that its pilot knows of stands meanwhile; nobody is told of one then, as its list is what users may set.
    """
    orders = f"central#7.0#1795240000@1795241000={NOW + 600}"
    slot = {**RUNNING, "Activity": "Retiring", "RetirementTimeRemaining": left}
    assert slot_deadline(slot, NOW) is None
    notice = None if said is None else SiteAd(True, said)
    assert job_deadline(slot, notice, NOW) is None
    assert job_deadline({**slot, "PilotReclaimOrders": orders}, notice, NOW) == said
    assert job_deadline({**slot, "PilotReclaimOrders": orders}, SiteAd(True, NOW + 601), NOW) is None
    assert job_deadline({**slot, "PilotReclaimOrders": orders}, SiteAd(False, NOW + 600), NOW) is None


@pytest.mark.parametrize(
    "orders",
    [
        "",
        f"central#7.0#1795240000@1795241001={NOW}",
        f"central#7.0#1795240000={NOW}",
        f"entral#7.0#1795240000@1795241000={NOW}",
        "central#7.0#1795240000@1795241000=soon",
        "central#7.0#1795240000@1795241000=",
        "central#7.0#1795240000@1795241000=-5",
        "central#7.0#1795240000@1795241000=" + "9" * 13,
        "central#7.0#1795240000@1795241000=\u0661",
        f"central#7.0#1795240000@1795241000\t={NOW}",
        "central#7.0#1795240000@1795241000=12345678",
    ],
)
def test_an_order_for_another_run_is_none(orders: str) -> None:
    """HOSTILE 36, 50: another run of the same job, another job, a deadline that is no time."""
    assert ordered_deadline({**RUNNING, "PilotReclaimOrders": orders}) is None


def test_no_order_for_a_slot_without_a_run() -> None:
    """Between two jobs the slot's ad names none."""
    slot = {"PilotReclaimOrders": f"None@None={NOW} @={NOW}", "Activity": "Idle", "State": "Claimed"}
    assert ordered_deadline({**slot, "GlobalJobId": ""}) is None


@given(st.integers(0, 10**6), times)
def test_what_is_left_counts_from_when_the_ad_was_written(left: int, seen: int) -> None:
    """An old ad does not put the deadline off; one from the future does not, either."""
    slot = {**RUNNING, "Activity": "Retiring", "RetirementTimeRemaining": left, "MyCurrentTime": seen}
    assert slot_deadline(slot, NOW) == min(seen, NOW) + left


@pytest.mark.parametrize(
    "change",
    [
        {"State": "Preempting", "Activity": "Vacating"},
        {"Activity": "Retiring", "RetirementTimeRemaining": -5},
        {"Activity": "Retiring", "RetirementTimeRemaining": "soon"},
    ],
)
def test_no_time_left(change: dict[str, str | int | float | bool]) -> None:
    """A slot that is being vacated, or retires without a sound countdown, is wanted now."""
    assert slot_deadline({**RUNNING, **change}, NOW) == NOW


@given(times, times)
def test_a_deadline_that_trembles_is_told_once(deadline: int, said: int) -> None:
    """A countdown read later gives another second: the pilot keeps the first, and a real change gets through."""
    left = max(0, deadline - NOW)
    slot = {**RUNNING, "Activity": "Retiring", "RetirementTimeRemaining": left, "MyCurrentTime": min(deadline, NOW)}
    told = job_deadline(slot, SiteAd(True, said), NOW)
    assert told == (said if abs(said - deadline) <= JITTER else deadline)


@pytest.mark.parametrize("slot", [{}, {"State": "Claimed"}, {"Activity": "Busy"}, {**RUNNING, "State": 7}])
def test_while_the_slots_ad_is_missing_nothing_is_withdrawn(slot: dict[str, str | int | float | bool]) -> None:
    """Half an ad says nothing: an order stands until the slot itself says otherwise."""
    assert job_deadline(slot, SiteAd(True, NOW + 60), NOW) == NOW + 60
    assert job_deadline(slot, SiteAd(False, NOW + 60), NOW) is None
    assert job_deadline(slot, None, NOW) is None


# ---- the real hook ----


@pytest.fixture
def job(node: Node, programs: Programs) -> Job:
    """A running job whose features are made."""
    made = node.start("slot1_1", USER, int(time.time()) - 100)
    assert programs.prepare(made).returncode == 0
    return made


def told(job: Job) -> dict[str, str]:
    """What stands in the three channels to the pilot."""
    found = {}
    for name in (".site.ad", ".machinefeatures/shutdowntime", ".jobfeatures/shutdowntime_job"):
        if os.path.isfile(f"{job.scratch}/{name}"):
            with open(f"{job.scratch}/{name}", encoding="ascii") as stream:
                found[name] = stream.read()
    return found


def asked(deadline: int, vacate: bool = True) -> dict[str, str]:
    """All three channels naming one deadline."""
    return {
        ".site.ad": f"VACATE_DESIRED = {vacate}\nPAYLOAD_DEADLINE = {deadline}\n",
        ".machinefeatures/shutdowntime": f"{deadline}\n",
        ".jobfeatures/shutdowntime_job": f"{deadline}\n",
    }


def order(job: Job, deadline: int) -> dict[str, object]:
    """What the slot's ad says under an order."""
    now = int(time.time())
    left = {"MyCurrentTime": now, "RetirementTimeRemaining": max(0, deadline - now)}
    return {"PilotReclaimOrders": f"{job.job_id}@{job.started}={deadline}", "Activity": "Retiring", **left}


def test_an_order_comes_changes_and_goes(node: Node, programs: Programs, job: Job) -> None:
    """All channels follow, and nothing is left when nobody asks any more."""
    first, second = int(time.time()) + 600, int(time.time()) + 300
    for change, expected in (
        ({}, {}),
        (order(job, first), asked(first)),
        (order(job, first), asked(first)),
        (order(job, second), asked(second)),
        ({}, {}),
    ):
        node.refresh(job, **change)
        ran = programs.update(job)
        assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"", b"")
        assert told(job) == expected


def test_the_last_entry_of_a_run_is_the_one_that_counts(node: Node, programs: Programs, job: Job) -> None:
    """An order whose withdrawal follows is none, though its slot still retires; one that follows a withdrawal is."""
    deadline = int(time.time()) + 600
    run, endless = f"{job.job_id}@{job.started}", {"RetirementTimeRemaining": ENDLESS - 1000}
    for orders, left, expected in (
        (f"{run}={deadline} {run}=0", endless, {}),
        (f"{run}={deadline - 60} {run}=0 {run}={deadline}", {}, asked(deadline)),
        (f"{run}={deadline - 60} {run}={deadline} {run}=0", endless, {}),
        (f"{run}=0 {run}={deadline}", {}, asked(deadline)),
    ):
        node.refresh(job, **{**order(job, deadline), "PilotReclaimOrders": orders, **left})
        ran = programs.update(job)
        assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"", b"")
        assert told(job) == expected


@ONE_LAYOUT
def test_an_order_that_stands_is_not_written_again(node: Node, programs: Programs, job: Job) -> None:
    """The files' mtimes are the time of the order."""
    node.refresh(job, **order(job, int(time.time()) + 600))
    programs.update(job)
    before = {name: os.stat(f"{job.scratch}/{name}").st_mtime_ns for name in told(job)}
    programs.update(job)
    assert {name: os.stat(f"{job.scratch}/{name}").st_mtime_ns for name in told(job)} == before


@ONE_LAYOUT
def test_a_deadline_that_has_passed_stays_an_order(node: Node, programs: Programs, job: Job) -> None:
    """The shutdown files exist only while their time lies ahead; `.site.ad` still says to go."""
    past = int(time.time()) - 5
    node.refresh(job, **order(job, past))
    programs.update(job)
    assert told(job) == {".site.ad": asked(past)[".site.ad"]}


@ONE_LAYOUT
def test_job_slots_follow_a_reconfiguration(node: Node, programs: Programs, job: Job) -> None:
    """Draft row 2.3: a dynamic value; the site's own number counts, else the CPUs that the startd has by now."""
    file, slots = Path(programs.settings), Path(job.scratch, ".machinefeatures", "jobslots")
    text, before = file.read_text(), slots.read_text()

    def after(settings: str, **slot: object) -> str:
        file.write_text(settings)
        node.refresh(job, **slot)
        ran = programs.update(job)
        assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"", b"")
        return slots.read_text()

    try:
        assert after(text, TotalCpus=12) == "12\n"
        assert after(f"{text}jobslots = 6\n", TotalCpus=12) == "6\n"
        assert after(text, TotalCpus="unknown") == "6\n", "nobody knows better"
        assert after(text, TotalCpus=-1) == "6\n"
        assert after(text, TotalCpus=int(before)) == before
        seen = os.stat(slots).st_mtime_ns
        assert after(text, TotalCpus=int(before)) == before
        assert os.stat(slots).st_mtime_ns == seen, "what is right is not written again"
        slots.unlink()
        assert after(text, TotalCpus=12) == "12\n"
    finally:
        file.write_text(text)


def test_a_planned_shutdown_comes_and_goes(node: Node, programs: Programs, job: Job) -> None:
    """It shortens the lease without asking to drain now; with an order the earlier of both counts."""
    shutdown_file, now = f"{os.path.dirname(programs.settings)}/shutdowntime", int(time.time())
    write(shutdown_file, f"{now + 900}\n", 0)
    try:
        programs.update(job)
        assert told(job) == asked(now + 900, vacate=False)
        node.refresh(job, **order(job, now + 600))
        programs.update(job)
        assert told(job) == asked(now + 600)
        node.refresh(job, **order(job, now + 1200))
        programs.update(job)
        assert told(job) == asked(now + 900)
    finally:
        os.unlink(shutdown_file)
    node.refresh(job)
    programs.update(job)
    assert told(job) == {}


def test_no_end_is_told_that_lies_behind_the_leases(node: Node, programs: Programs, job: Job) -> None:
    """Neither of a shutdown nor of a slot that retires for longer: the job's own limit ends it before."""
    shutdown_file, end = f"{os.path.dirname(programs.settings)}/shutdowntime", job.started + 1800
    with open(f"{job.scratch}/.job.ad", "a", encoding="ascii") as ad:
        ad.write("AllowedJobDuration = 1800\n")
    node.refresh(job, **order(job, end + 600))
    programs.update(job)
    assert told(job) == asked(end)
    node.refresh(job)
    write(shutdown_file, f"{end + 900}\n", 0)
    try:
        programs.update(job)
        assert told(job) == asked(end, vacate=False)
    finally:
        os.unlink(shutdown_file)


def test_before_the_prepare_hook_has_run(node: Node, programs: Programs) -> None:
    """HTCondor's first call comes that early: nothing is made, nothing is said."""
    job = node.start("slot1_1", USER, int(time.time()))
    os.unlink(job.update_ad)
    before = sorted(os.listdir(job.scratch))
    ran = programs.run("update-hook", [], USER, job.environment(), b"", "/")
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert sorted(os.listdir(job.scratch)) == before


def test_a_job_that_removed_its_features(node: Node, programs: Programs, job: Job) -> None:
    """HOSTILE 49: it gets no half of them back, but its order; what it deletes or forges is written again."""
    deadline = int(time.time()) + 600
    for name in (".machinefeatures", ".jobfeatures"):
        os.rename(f"{job.scratch}/{name}", f"{job.scratch}/gone{name}")
    node.refresh(job, **order(job, deadline))
    for forgery in (None, "VACATE_DESIRED = False\n", "\0" * 100):
        if forgery is None:
            assert not os.path.exists(f"{job.scratch}/.site.ad")
        else:
            write(f"{job.scratch}/.site.ad", forgery, USER)
        ran = programs.update(job)
        assert (ran.returncode, ran.stderr) == (0, b"")
        assert told(job) == {".site.ad": asked(deadline)[".site.ad"]}


@ONE_LAYOUT
@pytest.mark.parametrize("kind", ["link", "FIFO", "directory"])
def test_what_stands_in_the_site_ads_place(node: Node, programs: Programs, job: Job, kind: str) -> None:
    """HOSTILE 1, 5, 8, 49: a link, FIFO or directory of that name is replaced, not followed nor waited for."""
    victim, place, deadline = f"{node.base}/victim", f"{job.scratch}/.site.ad", int(time.time()) + 600
    write(victim, "precious\n", USER)
    if kind == "link":
        os.symlink(victim, place)
    elif kind == "FIFO":
        os.mkfifo(place)
    else:
        make_directory(place, 0o755, USER)
    node.refresh(job, **order(job, deadline))
    assert programs.update(job).returncode == 0
    assert told(job) == asked(deadline)
    with open(victim, encoding="ascii") as stream:
        assert stream.read() == "precious\n"


@pytest.mark.parametrize("text", ["", 'Activity = "Reti', 'State = "Claimed"\n', "x" * 5_000_000])
def test_half_a_slot_ad_takes_no_order_back(node: Node, programs: Programs, job: Job, text: str) -> None:
    """HOSTILE 17, 20, 25: what was said stands until a whole ad says otherwise."""
    deadline = int(time.time()) + 600
    node.refresh(job, **order(job, deadline))
    programs.update(job)
    write(job.update_ad, text, node.daemon if node.since_25_4 else USER)
    ran = programs.update(job)
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert told(job) == asked(deadline)


def test_another_users_ad_beside_the_job_is_not_read(node: Node, programs: Programs, job: Job) -> None:
    """HOSTILE 11: in the older layout the place of the newer one's ad lies in the directory of all jobs."""
    if not node.since_25_4:
        make_directory(f"{node.execute}/htcondor", 0o755, 54322)
        write(f"{node.execute}/htcondor/.update.ad", 'State = "Preempting"\nActivity = "Vacating"\n', 54322)
    else:
        write(f"{job.scratch}/.update.ad", 'State = "Preempting"\nActivity = "Vacating"\n', USER)
    programs.update(job)
    assert told(job) == {}


@ONE_LAYOUT
def test_closed_descriptors(node: Node, programs: Programs, job: Job) -> None:
    """The starter runs this hook with 1 and 2 closed: no file that it writes is mistaken for them."""
    make_directory(f"{job.scratch}/.jobfeatures/shutdowntime_job", 0o755, USER)
    write(f"{job.scratch}/.jobfeatures/shutdowntime_job/full", "x", USER)
    deadline = int(time.time()) + 600
    node.refresh(job, **order(job, deadline))
    ran = programs.run("update-hook", [], USER, job.environment(), b"", "/")
    assert ran.returncode == 0
    assert b"shutdowntime_job" in ran.stderr
    command = ["/bin/sh", "-c", 'exec "$0" >&- 2>&-', f"{programs.directory}/update-hook"]
    closed = run_as(USER, command, job.environment())
    assert closed.returncode == 0
    assert told(job)[".site.ad"] == asked(deadline)[".site.ad"]
    assert told(job)[".machinefeatures/shutdowntime"] == f"{deadline}\n"


# The hook, which its user stops when it is about to write.
_STOPS = """
import os, signal, sys
from drainwise.htcondor.node import update_hook
update_hook.give_notice = lambda *_: os.kill(os.getpid(), signal.SIGSTOP)
update_hook.main(sys.argv[1])
"""


def test_hooks_that_their_user_stops_do_not_pile_up(node: Node, programs: Programs, job: Job) -> None:
    """The next ones end at once and say why; when the stopped one is gone, the next does its work."""
    deadline = int(time.time()) + 600
    node.refresh(job, **order(job, deadline))
    library = {"PYTHONPATH": f"{os.path.dirname(programs.directory)}/library"}
    first = subprocess.Popen(
        [PYTHON, "-c", _STOPS, programs.settings],
        user=USER,
        group=USER,
        extra_groups=[],
        env={**job.environment(), **library},
        cwd=job.scratch,
    )
    try:
        stat = Path(f"/proc/{first.pid}/stat")
        wait_for(lambda: stat.read_text().rpartition(")")[2].split()[0] == "T", what="it is stopped")
        for _ in range(2):
            ran = programs.update(job)
            assert (ran.returncode, ran.stderr) == (
                0,
                b"drainwise: an update hook of this job is still at work, or stopped: this one does nothing\n",
            )
        assert told(job) == {}
    finally:
        first.kill()
        first.wait()
    assert programs.update(job).stderr == b""
    assert told(job) == asked(deadline)
