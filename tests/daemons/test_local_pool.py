"""The local batch system as a whole: real daemons and leases, driven as users and the reclaim agent do."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from drainwise.common.process_lock import last_stamp
from drainwise.facts.errors import RunEnded
from drainwise.local.control import start_daemon
from drainwise.local.daemon_lock import LOCK, find_daemon
from drainwise.local.job import ENDED, RUNNING, LocalNode
from drainwise.local.leases import DaemonSettings
from drainwise.pilotad.report import PilotReport
from drainwise.pool.facts import Pilot
from local_batch import ENVIRONMENT, PLUGINS, Batch
from real_daemons.waiting import wait_for

SYSTEM_PYTHON = "/usr/bin/python3"


def test_a_job_has_its_features_its_variables_and_an_end(batch: Batch) -> None:
    batch.start()
    [job_id] = batch.submit("cat $JOBFEATURES/allocated_cpu $MACHINEFEATURES/total_cpu $JOBFEATURES/job_id; exit 7")
    batch.await_state(ENDED, job_id)
    assert (batch.job(job_id).code, batch.job(job_id).note) == (7, "")
    assert (batch.work(job_id) / "out").read_text().split() == ["8", "16", str(job_id)]
    for words in ("features show", "features check"):
        script = f"PYTHONPATH={PLUGINS} {sys.executable} -B -m drainwise {words}"
        [job_id] = batch.submit(script)
        batch.await_state(ENDED, job_id)
        printed = (batch.work(job_id) / "out").read_text()
        assert batch.job(job_id).code == 0 and "wall_limit_secs" in printed, printed


def test_a_job_knows_its_machine_as_on_a_real_node(batch: Batch) -> None:
    """Every key that a node can know; memory and swap by its cores; what the site says, and slots that change."""
    settings = Path(batch.directory, "node.conf")
    settings.write_text("hs23 = 100\nwall_limit_secs = 500\ngrace_secs = 60\njobslots = 5\n")
    batch.start(nodes=2)
    [job_id] = batch.submit("exec sleep 900", cores=4)
    batch.await_state(RUNNING, job_id)
    places = [batch.work(job_id) / name for name in (".machinefeatures", ".jobfeatures")]
    found = {file.name: file.read_text().strip() for place in places for file in place.iterdir()}
    expected = {
        "total_cpu": "16",
        "jobslots": "5",
        "phys_cores": "16",
        "log_cores": "0",
        "hs06": "100",
        "hs23": "100",
        "hs06_job": "25",
        "grace_secs": "60",
        "wall_limit_secs": "500",
        "max_rss_bytes": str(int(Path("/proc/meminfo").read_text().split()[1]) * 1024 * 4 // 32),
    }
    assert {key: found.get(key) for key in expected} == expected
    assert int(found["scratch_limit_bytes"]) > 0
    slots = places[0] / "jobslots"
    settings.write_text("jobslots = 2\n")
    wait_for(lambda: slots.read_text() == "2\n", what="what the site says by now")
    settings.write_text("jobslots = some\n")
    wait_for(lambda: "jobslots" in batch.log(), what="a line about what is wrong")
    settings.unlink()
    batch.kill_daemon()
    batch.start(nodes=1, cores=24)
    wait_for(lambda: slots.read_text() == "24\n", what="the cores of its node by now")


def test_where_the_state_cannot_be_kept_no_daemon_starts_and_the_reason_is_told(batch: Batch) -> None:
    file = os.path.join(batch.directory, "file")
    Path(file).write_text("")
    for action in ("start", "serve"):
        command = [sys.executable, "-m", "drainwise", "local", action, "--directory", f"{file}/below"]
        ran = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=False, timeout=60)
        said = f"drainwise: {file}/below: the state cannot be kept there: Not a directory; name another"
        assert ran.returncode == 2 and ran.stderr.startswith(said) and ran.stderr.count("\n") == 1


def test_what_is_submitted_while_the_daemon_is_down_is_kept(batch: Batch) -> None:
    batch.start()
    batch.said("local", "stop")
    [job_id] = batch.submit("exit 0")
    [removed] = batch.submit("exit 0")
    batch.said("local", "remove", str(removed))
    batch.start()
    batch.await_state(ENDED, job_id)
    assert batch.job(job_id).code == 0 and batch.job(removed).started == 0


def test_an_account_uses_what_is_free_and_who_is_owed_most_is_served_first(batch: Batch) -> None:
    batch.start()
    first = batch.submit("sleep 1000", cores=8, count=3)
    batch.await_state(RUNNING, *first[:2])
    [bob] = batch.submit("sleep 1000", "bob")
    [pilot] = [one for one in batch.pool.snapshot(int(time.time())).pilots if one.name == str(first[0])]
    batch.pool.give_order(pilot, int(time.time()), "test")
    batch.await_state(RUNNING, bob)
    assert [batch.job(job_id).state for job_id in first] == ["ended", "running", "waiting"]


def test_a_job_larger_than_what_is_free_is_not_starved(batch: Batch) -> None:
    """Small jobs keep coming; the one that needs the whole node starts all the same."""
    batch.account("carol", 16)
    batch.start()
    batch.submit("sleep 0.5", cores=4, wall=600, count=4)
    [large] = batch.submit("exit 0", "carol", cores=16)

    def large_has_ended() -> bool:
        if not any(job.state == "waiting" and job.cores == 4 for job in batch.jobs()):
            batch.submit("sleep 0.5", "bob", cores=4, wall=600, count=4)
        return batch.job(large).state == ENDED

    wait_for(large_has_ended, explain=lambda: batch.said("local", "queue"))


DEAF = "trap 'echo TERM >> heard' TERM; while :; do sleep 0.05; done"


def test_the_wall_limit_is_enforced_with_term_then_kill(batch: Batch) -> None:
    batch.start(kill_wait=1.0)
    [deaf] = batch.submit(DEAF, wall=5)
    [hears] = batch.submit("trap 'exit 3' TERM; while :; do sleep 0.05; done", wall=5)
    batch.await_state(ENDED, deaf, hears)
    assert (batch.job(hears).code, batch.job(deaf).signal) == (3, 9)
    for job_id in (deaf, hears):
        assert "wall limit" in batch.job(job_id).note
    assert (batch.work(deaf) / "heard").read_text() == "TERM\n"
    job = batch.job(deaf)
    assert job.ended is not None and 5.9 <= job.ended - job.started < 25
    assert batch.said("local", "queue", "--all").count("ended by SIGKILL: its wall limit is over") == 1


def test_a_shortened_deadline_is_told_at_once_and_enforced(batch: Batch) -> None:
    batch.start(kill_wait=1.0)
    [job_id] = batch.submit(DEAF)
    wait_for(lambda: len(batch.pool.snapshot(int(time.time())).pilots) == 1, what="a pilot")
    [pilot] = batch.pool.snapshot(int(time.time())).pilots
    deadline = int(time.time()) + 8
    batch.pool.give_order(pilot, deadline, "bob waits")
    work = batch.work(job_id)
    site_ad, shutdown = (
        work / ".site.ad",
        [work / ".machinefeatures/shutdowntime", work / ".jobfeatures/shutdowntime_job"],
    )
    # The site's word comes first: who sees the others has it.
    wait_for(lambda: all(file.exists() for file in (site_ad, *shutdown)), what="the site's word")
    assert max(file.stat().st_mtime for file in (site_ad, *shutdown)) < deadline - 1
    assert site_ad.read_text() == f"VACATE_DESIRED = True\nPAYLOAD_DEADLINE = {deadline}\n"
    assert [file.read_text() for file in shutdown] == [f"{deadline}\n"] * 2
    batch.await_state(ENDED, job_id)
    job = batch.job(job_id)
    assert (job.signal, job.note) == (9, "its deadline has come")
    assert job.ended is not None and deadline + 0.9 <= job.ended < deadline + 20


def test_an_order_that_is_withdrawn_leaves_the_lease_as_it_was_and_the_pilot_is_told(batch: Batch) -> None:
    """It runs on over the deadline; withdrawn again, nothing happens; asked again, it goes."""
    batch.start(kill_wait=1.0)
    [job_id] = batch.submit("sleep 1000")
    batch.await_state(RUNNING, job_id)
    [pilot] = batch.pool.snapshot(int(time.time())).pilots
    deadline = int(time.time()) + 12
    batch.pool.give_order(pilot, deadline, "bob waits")
    files = [
        batch.work(job_id) / name
        for name in (".site.ad", ".machinefeatures/shutdowntime", ".jobfeatures/shutdowntime_job")
    ]
    wait_for(lambda: all(file.exists() for file in files), what="the site's word")
    [asked] = batch.pool.snapshot(int(time.time())).pilots
    batch.pool.withdraw_order(asked, "bob has left")
    wait_for(lambda: not any(file.exists() for file in files), what="no word any more")
    [free] = batch.pool.snapshot(int(time.time())).pilots
    assert (free.deadline, free.leaving, free.lease_end) == (None, False, pilot.lease_end)
    stamps = f"{batch.directory}/{LOCK}"
    wait_for(lambda: (last_stamp(stamps) or 0) > deadline + 1, what="a round of the daemon after the deadline")
    assert batch.job(job_id).state == RUNNING
    batch.pool.withdraw_order(free, "once more")
    batch.pool.give_order(free, int(time.time()), "carol waits")
    batch.await_state(ENDED, job_id)
    with pytest.raises(RunEnded, match="does not run any more"):
        batch.pool.withdraw_order(free, "too late")


BURN = "end=$(($(date +%s) + 2)); while [ $(date +%s) -lt $end ]; do :; done"


def test_the_end_of_a_run_tells_who_ended_it_and_what_it_used(batch: Batch) -> None:
    """One left by itself, one was ended at its deadline; the CPU time is that of all its processes."""
    batch.start(kill_wait=1.0)
    [burns] = batch.submit(f"sh -c '{BURN}' & (sh -c '{BURN}' &) ; wait; sleep 0.5")
    [sleeps] = batch.submit("sleep 1000")
    batch.await_state(RUNNING, sleeps)
    wait_for(lambda: len(batch.pool.snapshot(int(time.time())).pilots) == 2, what="two pilots")
    runs = {pilot.name: pilot for pilot in batch.pool.snapshot(int(time.time())).pilots}
    names = [pilot.run for pilot in runs.values()]
    assert batch.pool.endings([runs[str(sleeps)].run, "77@1795249000"], int(time.time())) == {}
    deadline = int(time.time()) + 1
    batch.pool.give_order(runs[str(sleeps)], deadline, "bob waits")
    batch.await_state(ENDED, burns, sleeps)
    now = int(time.time())
    endings = batch.pool.endings(names, now)
    left, cut = endings[runs[str(burns)].run], endings[runs[str(sleeps)].run]
    assert (left.vacated, cut.vacated) == (False, True)
    assert cut.ended >= deadline and cut.cpu_seconds is not None and cut.cpu_seconds < 1
    assert left.cpu_seconds is not None and 0.2 < left.cpu_seconds < 8  # two loops of two seconds on a busy machine
    assert runs[str(burns)].started <= left.ended <= now


def test_an_order_for_a_run_that_ended_hits_nobody(batch: Batch) -> None:
    """Attack 50: between plan and order the pilot ends and another one of the same size starts in its place."""
    batch.start()
    [first] = batch.submit("while [ ! -e go ]; do sleep 0.02; done", cores=16)
    wait_for(lambda: len(batch.pool.snapshot(int(time.time())).pilots) == 1, what="a pilot")
    [pilot] = batch.pool.snapshot(int(time.time())).pilots
    [second] = batch.submit("sleep 1000", cores=16)
    (batch.work(first) / "go").touch()
    batch.await_state(RUNNING, second)
    with pytest.raises(RunEnded, match="does not run any more"):
        batch.pool.give_order(pilot, int(time.time()), "reclaim")
    assert batch.job(second).deadline is None and not (batch.work(second) / ".site.ad").exists()


def test_a_word_that_the_job_removed_is_written_again(batch: Batch) -> None:
    """Attack 49."""
    start_daemon(batch.directory, DaemonSettings(repair=0.2), [LocalNode("node1", 16)])
    [job_id] = batch.submit("sleep 1000")
    batch.await_state(RUNNING, job_id)
    [pilot] = batch.pool.snapshot(int(time.time())).pilots
    batch.pool.give_order(pilot, int(time.time()) + 600, "bob waits")
    site_ad = batch.work(job_id) / ".site.ad"
    wait_for(site_ad.exists, what="the site's word")
    site_ad.unlink()
    wait_for(site_ad.exists, what="the site's word again")


def test_a_planned_shutdown_is_told_without_asking_to_drain(batch: Batch) -> None:
    """Who must not see it does not: neither as it starts, nor when it is ordered away."""
    (Path(batch.directory) / "node.conf").write_text("client_alice = user=bob\n")
    batch.start()
    [job_id] = batch.submit("sleep 1000", wall=86_400)
    batch.await_state(RUNNING, job_id)
    file = os.path.join(batch.directory, "shutdowntime")
    when = int(time.time()) + 7200
    command = [sys.executable, "-m", "drainwise", "shutdown", "--file", file, "--at", str(when)]
    subprocess.run(command, env=ENVIRONMENT, check=True, capture_output=True, timeout=60)
    site_ad = batch.work(job_id) / ".site.ad"
    wait_for(site_ad.exists, what="the site's word")
    assert site_ad.read_text() == f"VACATE_DESIRED = False\nPAYLOAD_DEADLINE = {when}\n"
    [other] = batch.submit("sleep 1000", account="bob")
    batch.await_state(RUNNING, other)
    [pilot] = [one for one in batch.pool.snapshot(int(time.time())).pilots if one.name == str(other)]
    batch.pool.give_order(pilot, int(time.time()) + 600, "alice waits")
    notice = batch.work(other) / ".site.ad"
    wait_for(lambda: notice.exists() and "True" in notice.read_text(), what="the order")
    assert list(batch.work(job_id).rglob("shutdowntime")) and not list(batch.work(other).rglob("shutdowntime*"))
    subprocess.run([*command[:-2], "--cancel"], env=ENVIRONMENT, check=True, capture_output=True, timeout=60)
    wait_for(lambda: not site_ad.exists(), what="no word any more")


PILOT = """\
now=$(date +%s)
cat > .pilot.ad.new <<END
LAST_JOB_START = $((now - {age}))
FIRST_EXP_JOB_END = $((now + {left}))
LAST_EXP_JOB_END = $((now + {left}))
LAST_MAX_JOB_END = $((now + {left}))
USED_FRACTION1k = {used}
ADD_UNCOM_TIME1k = 0
ADD_FINAL_EXP_WASTE1k = 0
PRIORITY_FACTOR = 0
CAN_POSTPONE_LAST_JOB = True
END
mv .pilot.ad.new .pilot.ad
while ! grep -qs 'VACATE_DESIRED = True' .site.ad; do sleep 0.05; done
echo drained > drained
"""
SITE = "[reclaim]\nmin_age = 0s\n"


def test_a_pilots_report_appears_in_the_snapshot_and_follows_it(batch: Batch) -> None:
    batch.start()
    [job_id] = batch.submit(PILOT.format(age=10, left=100, used=512))

    def report() -> PilotReport | None:
        pilots = batch.pool.snapshot(int(time.time())).pilots
        return pilots[0].report if pilots else None

    wait_for(report, what="a report")
    found = report()
    assert found is not None and found.used_cpu == 4.0 and found.can_postpone_last_job is True
    ad = batch.work(job_id) / ".pilot.ad"
    ad.write_text(ad.read_text().replace("= 512", "= 1024"))
    wait_for(lambda: (found := report()) is not None and found.used_cpu == 8.0, what="the new report")
    ad.unlink()
    wait_for(lambda: report() is None, what="no report any more")


@pytest.mark.parametrize("kind", ["fifo", "garbage", "directory"])
def test_a_pilot_that_writes_nonsense_is_silent_and_holds_up_nobody(batch: Batch, kind: str) -> None:
    """Attacks 5, 8, 33: one line in the log, and the next pilot's report is there as ever."""
    batch.start()
    make = {"fifo": "mkfifo .pilot.ad", "garbage": "echo 'Start = False' > .pilot.ad", "directory": "mkdir .pilot.ad"}
    [bad] = batch.submit(f"{make[kind]}; sleep 1000")
    [good] = batch.submit(PILOT.format(age=10, left=100, used=512))

    def reports() -> dict[str, object]:
        snapshot = batch.pool.snapshot(int(time.time()))
        return {pilot.name: None if pilot.report is None else pilot.report.used_cpu for pilot in snapshot.pilots}

    wait_for(lambda: reports() == {str(bad): None, str(good): 4.0}, what="the good pilot's report")
    assert kind == "garbage" or batch.log().count(f"report of job {bad}:") == 1


def test_status_plan_and_reclaim_work_end_to_end(batch: Batch, tmp_path: Path) -> None:
    """Bob gets his cores, and exactly the pilots that the plan named are ordered to end."""
    batch.account("alice", 8)
    batch.account("bob", 16)
    batch.start(cores=32)
    site = tmp_path / "site.ini"
    site.write_text(SITE)
    options = ("--pool", "local", "--site", str(site))
    ids = [batch.submit(PILOT.format(age=10, left=600, used=used), wall=9000)[0] for used in (1024, 128, 512, 256)]
    batch.await_state(RUNNING, *ids)
    bobs = batch.submit("sleep 1000", "bob", count=2)
    wait_for(lambda: all(pilot.report for pilot in batch.pool.snapshot(int(time.time())).pilots), what="four reports")
    shown = batch.said("status", *options)
    assert all(re.search(rf"^{job_id} ", shown, re.MULTILINE) for job_id in ids), shown
    plan = json.loads(batch.said("plan", *options, "--json"))
    planned = {order["name"] for user in plan["users"] for order in user["orders"]}
    assert planned == {str(ids[0]), str(ids[1])} and plan["cores"]["deficit"] == 16
    dry = json.loads(batch.said("reclaim", "--once", *options, "--json"))
    assert dry["dry_run"] and all(batch.job(job_id).deadline is None for job_id in ids)
    batch.said("reclaim", "--once", "--act", *options, "--journal", str(tmp_path / "journal"))
    batch.await_state(RUNNING, *bobs)
    asked = {str(job_id) for job_id in ids if batch.job(job_id).deadline is not None}
    assert asked == planned
    for job_id in ids:
        drained = (batch.work(job_id) / "drained").exists()
        assert drained == (str(job_id) in planned)
        assert batch.job(job_id).state == (ENDED if drained else RUNNING)
    again = json.loads(batch.said("reclaim", "--once", "--act", *options, "--json"))
    assert again["acts"] == []


def test_stop_leaves_leases_and_stop_kill_leaves_nothing(batch: Batch) -> None:
    batch.start()
    [job_id] = batch.submit("setsid sleep 1000 & sleep 1000")
    [waits] = batch.submit("true", cores=16)
    batch.await_state(RUNNING, job_id)
    assert "1 leases go on" in batch.said("local", "stop")
    assert find_daemon(batch.directory) is None and not batch.empty()
    assert "no daemon ran; 1 leases were ended" in batch.said("local", "stop", "--kill")
    assert batch.empty()
    assert (batch.job(job_id).state, batch.job(waits).state) == (ENDED, "waiting")
    assert {path.name for path in Path(batch.directory).iterdir()} == {
        "daemon.lock",
        "daemon.log",
        "leases",
        "state.db",
    }
    assert processes_about(batch.directory) == []


def processes_about(directory: str) -> list[bytes]:
    """Command lines of living processes that name this directory."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            line = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            continue
        if directory.encode() in line:
            found.append(line)
    return found


@pytest.mark.parametrize("options", [(), ("--kill-leases",)])
def test_ctrl_c_stops_the_daemon_and_ends_leases_only_when_asked_to(batch: Batch, options: tuple[str, ...]) -> None:
    command = [sys.executable, "-m", "drainwise", "local", "serve", "--foreground", "--nodes", "1x16", *options]
    daemon = subprocess.Popen(
        [*command, "--directory", batch.directory], env=ENVIRONMENT, stderr=subprocess.PIPE, text=True
    )
    [job_id] = batch.submit("sleep 1000")
    batch.await_state(RUNNING, job_id)
    daemon.send_signal(signal.SIGINT)
    said = daemon.communicate(timeout=30)[1]
    assert daemon.returncode == 0 and f"job {job_id} of alice started" in said
    assert find_daemon(batch.directory) is None
    assert batch.job(job_id).state == (ENDED if options else RUNNING)
    assert batch.empty() == bool(options)


def test_the_reference_pilot_drains_when_it_is_ordered_and_loses_no_payload(batch: Batch) -> None:
    batch.start()
    queue = Path(batch.directory) / "payloads"
    queue.mkdir()
    for number in range(6):
        payload = {"cores": 2, "command": ["sleep", "300"], "expected": 300, "maximum": 400}
        (queue / f"p{number}.json").write_text(json.dumps(payload))
    pilot_run = f"PYTHONPATH={PLUGINS} exec {sys.executable} -B -m drainwise pilot run"
    [job_id] = batch.submit(f"{pilot_run} --queue {queue} --margin 6 --poll 0.2 --kill-wait 1", wall=3600)

    def pilot() -> Pilot:
        [found] = batch.pool.snapshot(int(time.time())).pilots
        return found

    batch.await_state(RUNNING, job_id)
    wait_for(lambda: (report := pilot().report) is not None and report.used_cpu == 8.0, what="eight cores in use")
    deadline = int(time.time()) + 12
    batch.pool.give_order(pilot(), deadline, "bob waits")
    wait_for(lambda: (report := pilot().report) is not None and report.can_postpone_last_job is False, what="it drains")
    batch.await_state(ENDED, job_id)
    job = batch.job(job_id)
    assert (job.code, job.note) == (0, "") and job.ended is not None and job.ended <= deadline
    assert sorted(path.name for path in queue.glob("*.json")) == [f"p{number}.json" for number in range(6)]


def test_a_lease_shrinks_and_grows_and_its_cores_go_to_who_waits(batch: Batch) -> None:
    """Three of a pilot's 8 cores go to bob when their payloads have ended, and the other payloads never notice; the
    pilot has them again when bob's job is gone, and not before. A daemon that died in between finds all of it again.
    """
    batch.start(cores=8)
    queue = Path(batch.directory) / "payloads"
    queue.mkdir()
    for number in range(16):
        waits = f"until [ -e {batch.directory}/end-{number:02} ]; do sleep 0.2; done"
        payload = {"command": waits, "expected": 300, "maximum": 3000, "priority": -number}
        (queue / f"p{number:02}.json").write_text(json.dumps(payload))
    pilot_run = f"PYTHONPATH={PLUGINS} exec {sys.executable} -B -m drainwise pilot run"
    [job_id] = batch.submit(f"{pilot_run} --queue {queue} --poll 0.2", wall=3600)

    def holds() -> tuple[int, float]:
        """The cores that the pilot holds, and those that it uses."""
        [found] = [one for one in batch.pool.snapshot(int(time.time())).pilots if one.name == str(job_id)]
        return found.cores, -1 if found.report is None or found.report.used_cpu is None else found.report.used_cpu

    def end(*numbers: int) -> None:
        for number in numbers:
            Path(batch.directory, f"end-{number:02}").touch()

    def log() -> str:
        return (batch.work(job_id) / "err").read_text()

    batch.await_state(RUNNING, job_id)
    wait_for(lambda: holds() == (8, 8), what="eight cores in use")
    [bob] = batch.submit("exec sleep 3000", "bob", cores=3)
    batch.said("local", "return", str(job_id), "--cores", "3", "--within", "1h")
    wait_for(lambda: "asks to have returned 3 of 8 cores" in log(), what="the pilot knows what is asked")
    end(0, 1)
    wait_for(lambda: holds() == (6, 6), what="two cores returned, none filled again")
    assert batch.job(bob).state == "waiting"
    end(2)
    batch.await_state(RUNNING, bob)
    accounts = {one.name: one.cores_in_use for one in batch.pool.snapshot(int(time.time())).accounts}
    assert (holds(), accounts["alice"], accounts["bob"]) == ((5, 5), 5, 3)
    assert "5 of 8" in batch.said("local", "queue")
    end(3)
    wait_for(lambda: "p08" in (queue / "records.jsonl").read_text(), what="what is not asked for is filled again")
    batch.kill_daemon()
    batch.start(cores=8)
    wait_for(lambda: holds() == (5, 5), what="the daemon knows what was returned")
    batch.said("local", "return", str(job_id), "--cores", "0")
    wait_for(lambda: "returned 0 of 8 cores, payloads may use 5" in log(), what="the first step")
    site_ad = batch.work(job_id) / ".site.ad"
    end(4, 5)
    wait_for(lambda: "p10" in (queue / "records.jsonl").read_text(), what="two more payloads")
    wait_for(
        lambda: "RETURN_SEEN" in site_ad.read_text() and "HELD_CORES = 3" in site_ad.read_text(), what="bob holds three"
    )
    wait_for(lambda: "5 of 8" not in batch.said("local", "queue"), what="it has all of them again by its own word")
    wait_for(lambda: holds() == (5, 5), what="it uses five, and waits for the others")
    assert batch.job(bob).state == RUNNING and "payloads may use 8" not in log()
    batch.said("local", "remove", str(bob))
    wait_for(lambda: holds() == (8, 8), what="the second step")
    assert "payloads may use 8 of 8 cores again" in log()
    with pytest.raises(AssertionError, match="expected 0 to 7"):
        batch.said("local", "return", str(job_id), "--cores", "8")


def test_an_idle_daemon_sleeps(batch: Batch) -> None:
    """Less than ten CPU seconds in an hour, measured over some seconds."""
    pid = batch.start()

    def cpu() -> float:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    before, begin = cpu(), time.monotonic()
    wait_for(lambda: time.monotonic() - begin > 8, what="eight seconds")
    assert (cpu() - before) / 8 * 3600 < 10


@pytest.mark.skipif(not os.access(SYSTEM_PYTHON, os.X_OK), reason=f"needs {SYSTEM_PYTHON}")
def test_it_works_with_a_bare_interpreter(batch: Batch) -> None:
    """The standard library is enough: no site-packages, no variables."""
    program = f"import sys; sys.path.append({PLUGINS!r}); from drainwise.cli.main import main; sys.exit(main())"

    def bare(*words: str) -> str:
        command = [SYSTEM_PYTHON, "-I", "-S", "-B", "-c", program, *words, "--directory", batch.directory]
        ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    bare("local", "start", "--nodes", "1x8")
    command = [SYSTEM_PYTHON, "-I", "-S", "-B", "-c", program, "local", "submit", "--account", "alice"]
    command += ["--directory", batch.directory, "--", "sh", "-c", "exit 4"]
    assert subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout == "1\n"
    batch.await_state(ENDED, 1)
    assert "ended with 4" in bare("local", "queue", "--all")
    bare("local", "stop", "--kill")
