"""How jobs fare, out of lines that squeue and sacct of real clusters printed."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from drainwise.facts.errors import PoolUnreachable
from drainwise_launch.backend import DONE, RUNNING, VANISHED, WAITING, JobState
from drainwise_launch.slurm import states
from drainwise_launch.slurm.states import accounted_in, by_tag, native_of, number_of, queued_in

# Of 24.11.5 and, where both codes stand in one number, of 22.05.8.
QUEUE = """\
2|FAILED|0:9|0:00|RaisedSignal:9(Killed)|night:b.T2|
5|FAILED|0:1|0:00|BadConstraints|night:e.T5|
1|FAILED|3:0|0:02|NonZeroExitCode|night:a.T1|
4|PENDING|0:0|0:00|Resources|night:d.T4|
3|PENDING|0:0|0:00|PartitionConfig|night:c.T3|
8|RUNNING|0:0|1:02:03|None|night:h.T8|
9|COMPLETING|0:0|2-00:00:01|None|night:i.T9|
12|FAILED|9|0:00|JobLaunchFailure|night:l.T12|
13|FAILED|768|0:01|NonZeroExitCode|night:m.T13|
14|COMPLETED|0:0|0:03|None|night:n.T14|
15|CANCELLED|0:15|0:03|None|night:o.T15|
16|TIMEOUT|0:0|0:03|TimeLimit|night:p.T16|
"""
ACCOUNTING = """\
1|FAILED|3:0|2|00:01.500|night:a.T1|
2|FAILED|0:9|0|00:00:00|night:b.T2|
3|CANCELLED by 1001|0:0|0|00:00:00|night:c.T3|
4|PENDING|0:0|0|00:00:00|night:d.T4|
6|COMPLETED|0:0|61|01:02:03|night:f.T6|
"""


def test_what_slurmctld_says() -> None:
    assert queued_in(QUEUE) == {
        "2.T2": JobState(DONE, 137, 0.0),
        "5.T5": JobState(DONE, 129, 0.0, why="no nodes as it asks for (BadConstraints)"),
        "1.T1": JobState(DONE, 3, 2.0),
        "4.T4": JobState(WAITING),
        "3.T3": JobState(WAITING, why="PartitionConfig"),
        "8.T8": JobState(RUNNING, wall=3723.0),
        "9.T9": JobState(RUNNING, wall=172801.0),
        "12.T12": JobState(DONE, 137, 0.0, why="JobLaunchFailure"),
        "13.T13": JobState(DONE, 3, 1.0),
        "14.T14": JobState(DONE, 0, 3.0),
        "15.T15": JobState(DONE, 143, 3.0, why="CANCELLED"),
        "16.T16": JobState(DONE, 1, 3.0, why="TIMEOUT"),
    }


# All that job_state_string() of Slurm 22.05 to 26.05 can say, and what it says of a state that it does not know.
WAITS = ("PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "RESV_DEL_HOLD")
RUNS = (
    *("RUNNING", "COMPLETING", "CONFIGURING", "SUSPENDED", "STOPPED", "STAGE_OUT", "SIGNALING", "RESIZING"),
    *("?", "SOMETHING_NEW"),
)
LOST = ("NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "REVOKED")
ENDED = ("CANCELLED", "TIMEOUT", "DEADLINE", "OUT_OF_MEMORY", "FAILED", "COMPLETED")


@pytest.mark.parametrize("state", [*WAITS, *RUNS, *LOST, *ENDED])
def test_every_state_is_one_of_ours(state: str) -> None:
    """What nobody knows yet has not ended: a job must not fail for it."""
    (one,) = queued_in(f"7|{state}|0:0|0:01|None|n.T|\n").values()
    if state in WAITS:
        assert one.state == WAITING
    elif state in RUNS:
        assert one.state == RUNNING
    elif state in LOST:
        assert one.has_ended
        assert one == JobState(VANISHED, wall=1.0, why=state)
    else:
        told = one
        assert told.state == DONE
        assert (told.code == 0) == (state == "COMPLETED")
        assert told.why == ("" if state in {"COMPLETED", "FAILED"} else state)


@pytest.mark.parametrize("reason", ["JobHeldUser", "JobHeldAdmin", "launch failed requeued held"])
def test_what_is_held_waits_and_says_so(reason: str) -> None:
    (one,) = queued_in(f"7|PENDING|0:0|0:00|{reason}|n.T|\n").values()
    assert one == JobState(WAITING, why=reason)


def test_what_the_accounting_says() -> None:
    records = accounted_in(ACCOUNTING)
    assert [native for native, one in records.items() if one.has_ended] == ["1.T1", "2.T2", "3.T3", "6.T6"]
    assert records["1.T1"] == JobState(DONE, 3, 2.0, 1.5)
    assert records["3.T3"] == JobState(DONE, 1, 0.0, why="CANCELLED")
    assert records["6.T6"] == JobState(DONE, 0, 61.0, 3723.0)


@pytest.mark.parametrize(
    "line",
    ["garbage", "garbage\n", "1|RUNNING", "x|RUNNING|0:0|1|None|n.T|\n", "1|<html>|0:0|1|None|n.T|\n", "|" * 6 + "\n"],
)
def test_garbage_is_no_answer(line: str) -> None:
    with pytest.raises(PoolUnreachable, match="squeue"):
        queued_in(QUEUE + line)
    with pytest.raises(PoolUnreachable, match="sacct"):
        accounted_in(ACCOUNTING + line)


@given(st.integers(1, len(QUEUE) - 1) | st.sampled_from([at for at in range(1, len(QUEUE)) if QUEUE[at - 1] == "\n"]))
def test_an_answer_that_is_cut_is_seen_to_be_one_unless_at_the_end_of_a_job(length: int) -> None:
    if QUEUE[length - 1] == "\n":
        assert set(queued_in(QUEUE[:length])) < set(queued_in(QUEUE))
    else:
        with pytest.raises(PoolUnreachable, match="incomplete answer"):
            queued_in(QUEUE[:length])


@given(st.text(max_size=40))
@example("a|\nb")
@example("a\nb")
def test_other_jobs_of_this_user_may_be_called_anything(name: str) -> None:
    found = queued_in(f"3|RUNNING|0:0|1:00|None|{name}|\n" + QUEUE)
    assert found.items() >= queued_in(QUEUE).items()


def test_a_number_that_was_given_anew_is_another_job() -> None:
    """HOSTILE 48: slurmctld was restored from an older state, or has come to its largest number."""
    assert "1.T1" not in queued_in("1|RUNNING|0:0|1:00|None|night:z.T99|\n")
    assert accounted_in(ACCOUNTING + "1|COMPLETED|0:0|9|00:09.000|other|\n")["1.T1"].code == 3


def test_a_job_is_found_by_its_tag_and_its_first_component() -> None:
    jobs = [
        native_of("12", "T"),
        native_of("9", "T"),
        native_of("10", "T"),
        native_of("3", "other"),
        native_of("4", ""),
    ]
    assert by_tag(jobs, {"T", "none"}) == {"T": "9.T"}
    assert number_of("9.T") == "9"


def test_slurm_is_asked_for_fields_that_it_has() -> None:
    """Names of squeue(1) and sacct(1): one that Slurm does not know is refused, or makes lines that are no jobs."""
    (queue,) = (word for word in states.QUEUE if word.startswith("--Format="))
    assert re.findall(r"(\w+):\|", queue) == ["JobID", "State", "exit_code", "TimeUsed", "Reason", "Name"]
    (accounting,) = (word for word in states.ACCOUNTING if word.startswith("--format="))
    fields = "JobIDRaw,State,ExitCode,ElapsedRaw,TotalCPU,JobName%250"
    assert accounting == f"--format={fields}"
