"""An order to one run as Slurm's commands get it: programs that answer as those of one running job, and record."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from drainwise.facts.errors import (
    ActionRefused,
    OrderUnanswered,
    PoolError,
    PoolUnreachable,
    RightsRefused,
    RunEnded,
)
from drainwise.slurm.jobs.commands import SlurmCommands
from drainwise.slurm.jobs.job import SlurmJob
from drainwise.slurm.jobs.values import ENDLESS_MINUTES
from drainwise.slurm.pool.orders import SlurmOrders

T0 = 1795270000
GRANTED, DEADLINE = T0 + 36_000, T0 + 20_001
RUN = f"12@{T0}"
RECORD = f"drainwise: ordered to end by {DEADLINE} (lease of {RUN} until {GRANTED}): wanted"
WRITTEN = f"sacctmgr --immediate modify job where jobid=12 set SystemComment={RECORD}"
SET = f"scontrol update JobId=12 EndTime=uts{DEADLINE}"
JOB = {"number": "12", "array": "12", "task": "N/A", "het": "0", "state": "RUNNING", "start": str(T0), "requeue": "1"}

# The end of the job is in a file, which `scontrol update` changes; without it there is no job.
GONE = "rm {bin}/end"
PROGRAMS = {
    "squeue": "[ ! -e {bin}/end ] || echo "
    "'{number}|{array}|{task}|{het}|{state}|{start}|'$(cat {bin}/end)'|1|{requeue}|1|0|5|10:00:00|'",
    "scontrol": 'case "$3" in EndTime=uts*) echo "${{3#EndTime=uts}}" > {bin}/end;; esac',
    "scancel": GONE,
    "sacctmgr": "",
    "sacct": 'case "$*" in "--allocations --duplicates --noheader --parsable2 --jobs="*" --format=SystemComment")'
    " cat {bin}/record;; esac",
}
Given = Callable[[], "list[str]"]


def programs(bin_dir: Path, job: Mapping[str, str] = JOB, **others: str) -> tuple[SlurmOrders, Given]:
    """Write the programs; others: texts that take the place of theirs. Return the orders, and what changed anything."""
    (bin_dir / "end").write_text(f"{GRANTED}\n")
    (bin_dir / "record").touch()
    (bin_dir / "given").touch()
    for name, text in {**PROGRAMS, **others}.items():
        file = bin_dir / name
        is_question = name in {"squeue", "sacct"}
        noted = "" if is_question else f'echo "{name} $*" >> {bin_dir}/given\n'
        file.write_text(f"#!/bin/sh\n{noted}{text.format(bin=bin_dir, **job)}\n")
        file.chmod(0o755)
    return SlurmOrders(SlurmCommands(str(bin_dir))), lambda: (bin_dir / "given").read_text().splitlines()


def test_an_order_is_recorded_with_what_the_lease_was_and_then_given(tmp_path: Path) -> None:
    orders, given = programs(tmp_path)
    assert orders.shorten(RUN, DEADLINE, "wanted").end == DEADLINE
    assert given() == [WRITTEN, SET]


def test_a_nearer_order_records_the_lease_as_it_was_granted(tmp_path: Path) -> None:
    """Not as the first order left it, to which a withdrawal would go back."""
    orders, given = programs(tmp_path)
    (tmp_path / "end").write_text(f"{DEADLINE + 5000}\n")
    (tmp_path / "record").write_text(f"{RECORD.replace(str(DEADLINE), str(DEADLINE + 5000))}\n")
    orders.shorten(RUN, DEADLINE, "wanted")
    assert given() == [WRITTEN, SET]


def test_a_task_of_an_array_is_meant_by_its_own_number(tmp_path: Path) -> None:
    """The record of the array's number is that of all its tasks: it stays as it is."""
    task = {**JOB, "number": "17", "task": "3"}
    orders, given = programs(tmp_path, task)
    orders.shorten(f"12_3@{T0}", DEADLINE, "wanted")
    of_array = [line.replace("jobid=12 ", "jobid=17 ").replace("12@", "12_3@") for line in (WRITTEN, SET)]
    assert given() == [line.replace("JobId=12 ", "JobId=12_3 ") for line in of_array]
    orders, given = programs(tmp_path, {**task, "number": "12"})
    (tmp_path / "given").write_text("")
    orders.shorten(f"12_3@{T0}", DEADLINE, "wanted")
    assert given() == [SET.replace("=12 ", "=12_3 ")]


@pytest.mark.parametrize("end", ["", f"echo {DEADLINE + 1} > {{bin}}/end", "echo N/A > {bin}/end"])
def test_an_end_that_was_not_taken_is_an_order_without_an_answer(tmp_path: Path, end: str) -> None:
    """slurmctld said yes and shows another end: nobody may count on the cores."""
    orders, given = programs(tmp_path, scontrol=end)
    with pytest.raises(OrderUnanswered, match=f"as its end after it was set to {DEADLINE}") as fault:
        orders.shorten(RUN, DEADLINE, "wanted")
    assert (fault.value.only, given()) == (RUN, [WRITTEN, SET])


@pytest.mark.parametrize(
    ("scontrol", "end"),
    [
        (f"echo {DEADLINE - 60} > {{bin}}/end", DEADLINE - 60),
        (GONE, DEADLINE),
        ("sed -i s/RUNNING/COMPLETING/ {bin}/squeue", DEADLINE),
        (f"sed -i s/{T0}/{T0 + 99}/ {{bin}}/squeue", DEADLINE),
    ],
    ids=["sooner", "gone", "ends", "next run"],
)
def test_a_run_that_ends_sooner_or_has_ended_has_taken_its_order(tmp_path: Path, scontrol: str, end: int) -> None:
    assert programs(tmp_path, scontrol=scontrol)[0].shorten(RUN, DEADLINE, "wanted").end == end


@pytest.mark.parametrize(
    ("scontrol", "fault"),
    [
        ("echo 'Access/permission denied for job 12' >&2; exit 1", RightsRefused),
        ("echo 'Invalid time specified for job 12' >&2; exit 1", ActionRefused),
        ("echo 'Unable to contact slurm controller (connect failure)' >&2; exit 1", OrderUnanswered),
        ("printf '#!/bin/sh\\nexit 1\\n' > {bin}/squeue", OrderUnanswered),
    ],
    ids=["rights", "refused", "silent", "silent afterwards"],
)
def test_an_order_that_fails_says_what_may_have_become_of_it(
    tmp_path: Path, scontrol: str, fault: type[PoolError]
) -> None:
    with pytest.raises(PoolError) as raised:
        programs(tmp_path, scontrol=scontrol)[0].shorten(RUN, DEADLINE, "wanted")
    assert type(raised.value) is fault


@pytest.mark.parametrize(
    ("squeue", "job", "fault"),
    [
        (None, {"start": str(T0 + 1)}, RunEnded),
        (None, {"state": "COMPLETING"}, RunEnded),
        (None, {"state": "PENDING"}, RunEnded),
        (None, {"number": "13", "array": "13"}, RunEnded),
        ("", {}, RunEnded),
        ("echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1", {}, RunEnded),
        ("echo 'Unable to contact slurm controller' >&2; exit 1", {}, PoolUnreachable),
        ("echo 12", {}, PoolUnreachable),
        (None, {"het": "12"}, ActionRefused),
    ],
    ids=["next run", "ends", "waits", "another job", "none", "unknown", "silent", "half a line", "heterogeneous"],
)
@pytest.mark.parametrize("order", ["shorten", "withdraw", "end_now"])
def test_only_the_run_that_was_meant_is_ordered(
    tmp_path: Path, squeue: str | None, job: Mapping[str, str], fault: type[PoolError], order: str
) -> None:
    """HOSTILE 50: neither its next run, nor another job, nor the other parts of a heterogeneous one."""
    orders, given = programs(tmp_path, {**JOB, **job}, **({} if squeue is None else {"squeue": squeue}))
    with pytest.raises(fault):
        getattr(orders, order)(RUN, *((DEADLINE, "wanted") if order == "shorten" else ("wanted",)))
    assert given() == []


def test_a_deadline_after_the_end_of_the_lease_is_no_order(tmp_path: Path) -> None:
    orders, given = programs(tmp_path)
    with pytest.raises(ActionRefused, match="cannot move it later"):
        orders.shorten(RUN, GRANTED + 1, "wanted")
    assert given() == []


@pytest.mark.parametrize(
    ("requeue", "can", "order"),
    [(True, "1", "scontrol requeue 12"), (False, "1", "scancel 12"), (True, "0", "scancel 12")],
)
def test_a_run_that_ends_now_waits_again_where_all_let_it(tmp_path: Path, requeue: bool, can: str, order: str) -> None:
    orders, given = programs(tmp_path, {**JOB, "requeue": can}, scontrol=GONE)
    orders.end_now(RUN, "wanted", requeue)
    assert [line.partition(" jobid")[0] for line in given()] == ["sacctmgr --immediate modify job where", order]


def test_a_record_is_short(tmp_path: Path) -> None:
    orders, given = programs(tmp_path, scontrol=GONE)
    orders.end_now(RUN, "x" * 500)
    assert given()[0].partition("SystemComment=")[2] == "drainwise: to end now: ".ljust(200, "x")


def test_a_run_is_requeued_with_the_limit_that_it_was_granted(tmp_path: Path) -> None:
    """Its limit first; known from its record, or while the accounting does not answer, from the order."""
    goes = f'case "$*" in *EndTime*) echo {DEADLINE} > {{bin}}/end;; requeue*) {GONE};; esac'
    asked = ["scontrol update JobId=12 TimeLimit=600", "scontrol requeue 12"]
    silent = "echo 'sacct: error: Connection refused' >&2; exit 1"
    orders, given = programs(tmp_path, scontrol=goes, scancel="", sacct="")
    orders.shorten(RUN, DEADLINE, "wanted")
    (tmp_path / "sacct").write_text(f"#!/bin/sh\n{silent}\n")
    orders.warn(RUN)
    orders.requeue(RUN)
    assert given() == [WRITTEN, SET, "scancel --signal=TERM 12", *asked]
    (tmp_path / "given").unlink()
    orders, given = programs(tmp_path, scontrol=goes, scancel="")
    (tmp_path / "end").write_text(f"{DEADLINE}\n")
    (tmp_path / "record").write_text(f"{RECORD}\n")
    orders.requeue(RUN)
    assert given() == asked


@pytest.mark.parametrize(("requeue", "record", "why"), [("1", "", "who shortened it"), ("0", RECORD, "its owner")])
@pytest.mark.parametrize("what", ["warn", "requeue"])
def test_no_run_is_requeued_that_no_order_shortened_or_whose_owner_does_not_let_it(
    tmp_path: Path, requeue: str, record: str, why: str, what: str
) -> None:
    """An owner who shortens a lease means it to end."""
    orders, given = programs(tmp_path, {**JOB, "requeue": requeue})
    (tmp_path / "end").write_text(f"{DEADLINE}\n")
    (tmp_path / "record").write_text(f"{record}\n")
    with pytest.raises(ActionRefused, match=why):
        getattr(orders, what)(RUN)
    assert given() == []


def test_a_run_that_goes_on_after_it_was_ended_has_not_answered(tmp_path: Path) -> None:
    with pytest.raises(OrderUnanswered, match="still runs after the order to end"):
        programs(tmp_path, scontrol="")[0].end_now(RUN, "wanted")


REQUEUED = SlurmJob(12, states=frozenset({"PENDING"}), start=None, limit=334, restarts=1, cores=8)


@pytest.mark.parametrize(
    ("job", "until", "limit"),
    [
        (REQUEUED, str(GRANTED), "600"),
        (replace(REQUEUED, limit=333), str(GRANTED), "600"),
        (replace(REQUEUED, limit=343), str(GRANTED), "600"),
        (replace(REQUEUED, limit=4294441727), "none", "UNLIMITED"),
        (replace(REQUEUED, limit=ENDLESS_MINUTES), "none", "UNLIMITED"),
        (replace(REQUEUED, states=frozenset({"RUNNING"}), start=T0 + 999, end=T0 + 21_039), str(GRANTED), "600"),
    ],
)
def test_a_job_that_was_requeued_gets_its_limit_back_once(
    tmp_path: Path, job: SlurmJob, until: str, limit: str
) -> None:
    """Waiting or in a later run: the record of the run that had the order says what was granted."""
    orders, given = programs(tmp_path)
    (tmp_path / "record").write_text(f"{RECORD.replace(str(GRANTED), until)}\n\n")
    [done] = orders.give_limits_back([job])
    assert limit in done
    assert given() == [f"scontrol update JobId=12 TimeLimit={limit}"]
    assert orders.give_limits_back([job]) == []


@pytest.mark.parametrize(
    "job",
    [
        replace(REQUEUED, restarts=0),
        replace(REQUEUED, limit=600),
        replace(REQUEUED, limit=100),  # its owner or root has set it since
        replace(REQUEUED, limit=332),  # a minute less than orders leave, or ten minutes more
        replace(REQUEUED, limit=344),
        replace(REQUEUED, limit=500),
        replace(REQUEUED, number=13),
        replace(REQUEUED, array=12),
        replace(REQUEUED, states=frozenset({"RUNNING"}), start=T0 + 999, end=T0 + 1000),  # this run has an order
    ],
)
def test_no_other_limit_is_touched(tmp_path: Path, job: SlurmJob) -> None:
    orders, given = programs(tmp_path)
    (tmp_path / "record").write_text(f"{RECORD}\n")
    assert orders.give_limits_back([job]) == []
    assert given() == []


def test_in_each_cycle_few_records_are_asked_for_and_each_of_them_once(tmp_path: Path) -> None:
    orders, _ = programs(tmp_path, sacct='echo "$5" >> {bin}/asked')
    jobs = [replace(REQUEUED, number=number) for number in range(1, 71)]
    for _ in range(3):
        assert orders.give_limits_back(jobs) == []
    asked = [line.partition("=")[2].split(",") for line in (tmp_path / "asked").read_text().splitlines()]
    assert asked == [[str(number) for number in some] for some in (range(1, 65), range(65, 71))]


def test_a_limit_that_is_refused_keeps_no_other_job_from_its_own(tmp_path: Path) -> None:
    refuses = 'case "$2" in JobId=12) echo "Job update not available right now" >&2; exit 1;; esac'
    orders, given = programs(tmp_path, scontrol=refuses)
    (tmp_path / "record").write_text(f"{RECORD}\n{RECORD.replace('12@', '13@')}\n")
    [done] = orders.give_limits_back([REQUEUED, replace(REQUEUED, number=13)])
    assert done.startswith("13 has the time limit back")
    again = "scontrol update JobId=12 TimeLimit=600"
    assert given() == [again, "scontrol update JobId=13 TimeLimit=600"]
    assert orders.give_limits_back([REQUEUED]) == []
    assert given()[2:] == [again], "it is tried again in the next cycle"


def test_limits_are_given_back_when_the_accounting_answers_again(tmp_path: Path) -> None:
    orders, given = programs(tmp_path, sacct="echo 'sacct: error: Connection refused' >&2; exit 1")
    assert orders.give_limits_back([REQUEUED]) == []
    (tmp_path / "record").write_text(f"{RECORD}\n")
    (tmp_path / "sacct").write_text(f"#!/bin/sh\ncat {tmp_path}/record\n")
    assert len(orders.give_limits_back([REQUEUED])) == 1
    assert given() == ["scontrol update JobId=12 TimeLimit=600"]


def test_a_lease_that_somebody_made_longer_since_is_left(tmp_path: Path) -> None:
    """Its end is after our deadline and fits its time limit; one that was suspended ends after the limit."""
    orders, given = programs(tmp_path)
    (tmp_path / "record").write_text(f"{RECORD}\n")
    (tmp_path / "end").write_text(f"{DEADLINE + 900}\n")
    assert orders.withdraw(RUN, "not wanted").end == DEADLINE + 900
    assert given() == []


GIVES = """\
case "$3" in
EndTime=uts*) echo "${{3#EndTime=uts}}" > {bin}/end;;
TimeLimit=UNLIMITED) echo N/A > {bin}/end;;
TimeLimit=*) echo $(({start} + ${{3#TimeLimit=}} * 60)) > {bin}/end;;
esac"""
TAKEN_BACK = "sacctmgr --immediate modify job where jobid=12 set SystemComment=drainwise: order withdrawn: not wanted"


@pytest.mark.parametrize(
    ("until", "end", "given"),
    [
        (str(GRANTED), GRANTED, ["TimeLimit=600"]),
        (str(GRANTED + 20), GRANTED + 20, ["TimeLimit=600", f"EndTime=uts{GRANTED + 20}"]),
        ("none", None, ["TimeLimit=UNLIMITED"]),
    ],
)
def test_a_withdrawn_order_gives_limit_and_end_back(
    tmp_path: Path, until: str, end: int | None, given: list[str]
) -> None:
    """As the record of this run says, whatever else is recorded; then that is written down."""
    orders, gave = programs(tmp_path, scontrol=GIVES)
    (tmp_path / "end").write_text(f"{DEADLINE}\n")
    record = RECORD.replace(str(GRANTED), until)
    (tmp_path / "record").write_text(f"\nsomebody's\n{RECORD.replace('12@', '13@')}\n{record}\n")
    assert orders.withdraw(RUN, "not wanted").end == end
    assert gave() == [*(f"scontrol update JobId=12 {one}" for one in given), TAKEN_BACK]


def test_an_order_that_slurmctld_does_not_take_back_is_one_without_an_answer(tmp_path: Path) -> None:
    near = GRANTED - 20
    orders, gave = programs(tmp_path, scontrol=f'case "$3" in TimeLimit=*) echo {near} > {{bin}}/end;; esac')
    (tmp_path / "end").write_text(f"{DEADLINE}\n")
    (tmp_path / "record").write_text(f"{RECORD}\n")
    with pytest.raises(OrderUnanswered, match=f"has {near} as its end after it was set to {GRANTED}") as fault:
        orders.withdraw(RUN, "not wanted")
    assert fault.value.only == RUN and TAKEN_BACK not in gave()


def test_what_has_no_order_is_left_as_it_is(tmp_path: Path) -> None:
    """The accounting is not even asked: it may be gone."""
    orders, gave = programs(tmp_path, sacct="echo 'sacct: error: Connection refused' >&2; exit 1")
    for end in (str(GRANTED), "N/A"):
        (tmp_path / "end").write_text(f"{end}\n")
        orders.withdraw(RUN, "not wanted")
    assert gave() == []


def test_the_lease_of_an_arrays_first_task_is_known_to_who_shortened_it(tmp_path: Path) -> None:
    """Its record is that of all tasks, and says nothing of one."""
    task, run = {**JOB, "task": "3"}, f"12_3@{T0}"
    orders, gave = programs(tmp_path, task, scontrol=GIVES)
    orders.shorten(run, DEADLINE, "wanted")
    with pytest.raises(ActionRefused, match="is shared by an array"):
        SlurmOrders(SlurmCommands(str(tmp_path))).withdraw(run, "not wanted")
    assert orders.withdraw(run, "not wanted").end == GRANTED
    assert gave() == [f"scontrol update JobId=12_3 {one}" for one in (f"EndTime=uts{DEADLINE}", "TimeLimit=600")]


def test_a_run_of_several_parts_is_ordered_where_that_reaches_them_all(tmp_path: Path) -> None:
    orders, gave = programs(tmp_path, {**JOB, "het": "12"})
    orders.as_one = {RUN}
    orders.shorten(RUN, DEADLINE, "wanted")
    assert gave() == [WRITTEN, SET]
