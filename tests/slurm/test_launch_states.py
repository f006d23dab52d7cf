"""How jobs fare, out of lines that squeue and sacct of real clusters printed."""

from __future__ import annotations

import pytest

from drainwise.errors import PoolUnreachable
from drainwise.launch.backend import DONE, RUNNING, WAITING, State
from drainwise.slurm.launch_states import accounted_in, names_in, queued_in

# Of 24.11.5 and, where both codes stand in one number, of 22.05.8.
QUEUE = """\
2|FAILED|0:9|RaisedSignal:9(Killed)|1795291638|1795291638|
5|FAILED|0:1|BadConstraints|1795291636|1795291636|
1|FAILED|3:0|NonZeroExitCode|1795291638|1795291640|
4|PENDING|0:0|Resources|1795298880|1795302480|
3|PENDING|0:0|PartitionConfig|N/A|N/A|
8|RUNNING|0:0|None|1795291638|1795295238|
9|COMPLETING|0:0|None|1795291638|1795295238|
12|FAILED|9|JobLaunchFailure|1795291713|1795291713|
13|FAILED|768|NonZeroExitCode|1795291713|1795291714|
14|COMPLETED|0:0|None|1795291713|1795291716|
15|CANCELLED|0:15|None|1795291713|1795291716|
16|TIMEOUT|0:0|TimeLimit|1795291713|1795291716|
"""
ACCOUNTING = """\
1|FAILED|3:0|2|00:01.500
2|FAILED|0:9|0|00:00:00
3|CANCELLED by 1001|0:0|0|00:00:00
4|PENDING|0:0|0|00:00:00
6|COMPLETED|0:0|61|01:02:03
"""


def test_what_slurmctld_says() -> None:
    states = {number: one.as_state() for number, one in queued_in(QUEUE).items()}
    assert states == {
        "2": State(DONE, 137, 0.0),
        "5": State(DONE, 129, 0.0, why="no nodes as it asks for (BadConstraints)"),
        "1": State(DONE, 3, 2.0),
        "4": State(WAITING),
        "3": State(WAITING, why="PartitionConfig"),
        "8": State(RUNNING),
        "9": State(RUNNING),
        "12": State(DONE, 137, 0.0),
        "13": State(DONE, 3, 1.0),
        "14": State(DONE, 0, 3.0),
        "15": State(DONE, 143, 3.0, why="CANCELLED"),
        "16": State(DONE, 1, 3.0, why="TIMEOUT"),
    }


def test_what_the_accounting_says() -> None:
    records = accounted_in(ACCOUNTING)
    assert [number for number, one in records.items() if one.ended] == ["1", "2", "3", "6"]
    assert records["1"].as_state() == State(DONE, 3, 2.0, 1.5)
    assert records["3"].as_state() == State(DONE, 1, 0.0, why="CANCELLED")
    assert records["6"].as_state() == State(DONE, 0, 61.0, 3723.0)


@pytest.mark.parametrize("line", ["garbage", "1|RUNNING", "x|RUNNING|0:0|None|1|2|", "1|<html>|0:0|None|1|2|", "|" * 6])
def test_garbage_of_squeue_is_half_an_answer(line: str) -> None:
    with pytest.raises(PoolUnreachable, match="squeue"):
        queued_in(QUEUE + line)


@pytest.mark.parametrize("line", ["garbage", "1|FAILED|3:0|2", "x|FAILED|3:0|2|0", "1|f|3:0|2|0"])
def test_garbage_of_sacct_is_half_an_answer(line: str) -> None:
    with pytest.raises(PoolUnreachable, match="sacct"):
        accounted_in(ACCOUNTING + line)


def test_names_may_have_any_sign() -> None:
    assert names_in("7|a|b\nx\n8|c.T\n") == [("7", "a|b"), ("8", "c.T")]
