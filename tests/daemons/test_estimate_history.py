"""What real batch systems write of jobs that have ended, read as records: HTCondor's history and Slurm's accounting."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from condor_pool import CondorPool
from drainwise_tasks.estimate.records.formats import read_as
from drainwise_tasks.estimate.records.record import Finished, lines_in
from slurm_cluster import SlurmCluster

pytestmark = [pytest.mark.play, pytest.mark.in_turn("history", "estimate history")]
BURN = "import time\nwhile time.process_time() < 6: pass\n"
SENT, MADE = 300_000, 1_200_000
"""Bytes that a job is sent, and that it makes."""
JOBS = {
    "burn": ("python3 -I -S burn.py", 2, 0),
    "nap": (f"sleep 3; head -c {MADE} /dev/zero > made", 1, 0),
    "fails": ("exit 3", 1, 3),
}
"""Batch name → what it runs, its cores, and its code."""
SUBMIT = """\
executable = run-{name}
batch_name = {name}
request_cpus = {cores}
request_memory = 64
request_disk = 10MB
allowed_execute_duration = 600
should_transfer_files = YES
when_to_transfer_output = ON_EXIT
transfer_input_files = {files}
queue
"""


def read(text: str | bytes, form: str) -> dict[str, Finished]:
    """The records in what a batch system wrote, by the last part of their tasks; the format is told from it."""
    skips: Counter[str] = Counter()
    stream = io.BytesIO(text.encode() if isinstance(text, str) else text)
    found = {job.task: job for job in read_as("auto", lines_in(stream, skips), skips)}
    assert not skips, (form, skips)
    return found


@pytest.fixture(scope="module")
def history_pool(release: str) -> Iterator[CondorPool]:
    """A pool whose nodes look at CPU times every second, and in it three jobs that have ended.

    Of a job that ends before it was looked at for the first time, after a quarter of a minute, HTCondor says 0.
    """
    with CondorPool(nodes=1, release=release, config={"execute": "PROCD_MAX_SNAPSHOT_INTERVAL = 1\n"}) as pool:
        pool.run(["tee", "burn.py"], user="alice", stdin=BURN)
        pool.run(["sh", "-c", f"head -c {SENT} /dev/zero > sent"], user="alice")
        for name, (script, cores, _) in JOBS.items():
            pool.run(["tee", f"run-{name}"], user="alice", stdin=f"#!/bin/sh\n{script}\n")
            pool.submit(SUBMIT.format(name=name, cores=cores, files="burn.py" if name == "burn" else "sent"), "alice")
        pool.wait_for(lambda: len(pool.history("JobStatus == 4", ["ClusterId"])) == len(JOBS), 90, "three jobs")
        yield pool


def test_every_form_of_condor_history_is_the_same_jobs(history_pool: CondorPool) -> None:
    """-json, -jsonl, -long, forwards or not, and the history file itself."""
    forms = (["-json"], ["-jsonl"], ["-long"], ["-json", "-forwards"], ["-long", "-forwards"])
    said = {" ".join(form): history_pool.run(["condor_history", *form]).stdout for form in forms}
    place = history_pool.run(["condor_config_val", "HISTORY"]).stdout.strip()
    file = Path(history_pool.root + place).read_bytes()
    expected = read(file, "file")
    assert set(expected) == {f"alice/{name}" for name in JOBS}
    for form, text in said.items():
        assert read(text, form) == expected, form
    assert list(read(said["-json -forwards"], "")) == list(expected) != list(read(said["-json"], ""))


def test_the_records_are_what_the_jobs_did(history_pool: CondorPool) -> None:
    """Cores, wall and CPU time, memory, what was moved, what they asked for, and which of them failed."""
    found = read(history_pool.run(["condor_history", "-json", "-forwards"]).stdout, "json")
    jobs = {name: found[f"alice/{name}"] for name in JOBS}
    for name, (_, cores, code) in JOBS.items():
        assert (jobs[name].cores, jobs[name].good) == (cores, code == 0), name
        assert jobs[name].requested == 600
    burn, nap = jobs["burn"], jobs["nap"]
    assert burn.cpu_seconds is not None and 2.5 <= burn.cpu_seconds <= 8  # whole seconds, the last one not looked at
    assert burn.seconds >= 6 and 3 <= nap.seconds <= burn.seconds + 60
    assert nap.cpu_seconds is None or nap.cpu_seconds <= 2
    assert burn.memory_bytes is not None and 4e6 < burn.memory_bytes < 64e6
    assert nap.input_bytes is not None and SENT <= nap.input_bytes < SENT + 100_000
    assert nap.output_bytes is not None and MADE <= nap.output_bytes < MADE + 100_000


def test_what_sacct_says_of_jobs_on_the_cluster(slurm: SlurmCluster) -> None:
    """Cores, wall and CPU time, limit, user and name, with the memory of the step; the one that failed."""
    burn = "#!/usr/bin/python3\nimport time\nx = bytearray(b'x') * 50_000_000\nwhile time.process_time() < 3: pass\n"
    ran = slurm.submit(burn, "alice", ["--job-name=burn", "--cpus-per-task=2", "--time=10"])
    failed = slurm.submit("exit 3", "alice", ["--job-name=fails"])
    columns = "JobID,JobName,User,State,Start,End,Elapsed,Timelimit,AllocCPUS,TotalCPU,MaxRSS,MaxDiskRead,MaxDiskWrite"
    command = ["sacct", "--parsable2", f"--jobs={ran},{failed}", f"--format={columns}"]

    def ended() -> bool:
        states = [slurm.accounting(job, "State", "End") for job in (ran, failed)]
        return all(rows and rows[0]["State"] in {"COMPLETED", "FAILED"} for rows in states)

    slurm.wait_for(ended, 90, "two jobs in the accounting")
    found = read(slurm.run(command).stdout, "sacct")
    assert set(found) == {"alice/burn", "alice/fails"}
    job = found["alice/burn"]
    assert (job.good, job.cores, job.requested) == (True, 2, 600.0) and not found["alice/fails"].good
    assert job.cpu_seconds is not None and 2.5 <= job.cpu_seconds <= 5
    assert 3 <= job.seconds < 90
    assert job.memory_bytes is None or job.memory_bytes > 0  # looked at every half a minute: the first look alone
