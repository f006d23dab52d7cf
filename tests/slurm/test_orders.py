"""Orders to one run: names, the end that is set, and the words that are recorded."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.errors import ActionRefused, PoolUnreachable
from drainwise.slurm.orders import granted_in, is_shortened, plain, sooner_end, steps_to
from drainwise.slurm.run import label_and_start, run_name, states_in

from .recorded_cluster import START, VERSIONS, recorded

T0 = 1795270000


@pytest.mark.parametrize("label", ["17", "4294967295", "12_3"])
def test_a_run_is_named_by_its_job_and_start(label: str) -> None:
    assert label_and_start(run_name(label, T0)) == (label, T0)


@pytest.mark.parametrize(
    "run",
    [
        "",
        "17",
        "17@",
        f"17@{T0} ",
        f"17;reboot@{T0}",
        f"-1@{T0}",
        f"12_@{T0}",
        f"12+1@{T0}",
        f"12,13@{T0}",
        f"१७@{T0}",
        f"ALL@{T0}",
    ],
)
def test_what_is_no_run_is_refused(run: str) -> None:
    """HOSTILE 44: a list, a component or a word for all jobs would reach more than one."""
    with pytest.raises(ActionRefused):
        label_and_start(run)


@pytest.mark.parametrize("version", VERSIONS)
def test_recorded_lines_of_runs(version: str) -> None:
    """The typed fields of each kind of job."""
    states = {state.number: state for state in states_in(recorded(version, "runs.txt").decode())}
    start = START[version]
    one, asked, endless = states[1], states[2], states[3]
    assert (one.label, one.state, one.start, one.end, one.nodes, one.array) == (
        "1",
        "RUNNING",
        start,
        start + 3600,
        1,
        0,
    )
    assert asked.end == start + 732
    assert endless.end is None
    assert (states[11].label, states[11].array, states[4].label) == ("4_1", 4, "4_2")
    assert states[5].nodes == 2
    assert states[8].het
    assert states[9].het
    assert (states[6].state, states[6].restarts) == ("COMPLETING", 1)
    assert all(state.can_requeue for state in states.values())


@pytest.mark.parametrize("line", ["x", "17", "17|17|N/A|N/A|RUNNING|1|2|1|1|1|0|", "a|b|c|d|e|f|g|h|i|j|k|l|"])
def test_a_line_that_is_no_job_is_half_an_answer(line: str) -> None:
    with pytest.raises(PoolUnreachable):
        states_in(line)


@given(st.integers(1, 10**7), st.integers(1, 10**7))
def test_a_shortened_lease_is_seen_to_be_shortened_and_never_ends_later(rest: int, lease: int) -> None:
    """Whatever the deadline: at most two seconds before it, never after it, and no lease of that length."""
    end, deadline = T0 + lease, T0 + rest
    if deadline > end:
        with pytest.raises(ActionRefused):
            sooner_end(T0, end, deadline)
        return
    sooner = sooner_end(T0, end, deadline)
    assert deadline - 2 <= sooner <= deadline
    assert sooner < end
    # What Slurm makes of the time limit: the whole minutes that the lease needs now.
    assert is_shortened(T0, sooner, -(-(sooner - T0) // 60))


@pytest.mark.parametrize("limit", [1, 60, 1440])
def test_an_ordinary_lease_is_not_shortened(limit: int) -> None:
    assert not is_shortened(T0, T0 + limit * 60, limit)
    assert not is_shortened(T0, T0 + 31536000, None)


@given(st.text())
def test_a_reason_is_plain_words(text: str) -> None:
    """HOSTILE 41 to 45: no line break, quote, sign of a shell, or what sacctmgr would take for another setting."""
    words = plain(text)
    assert words.isascii()
    assert words == "" or words.isprintable()
    assert not set(words) & set("\"'\\|=`$\n\r\t")


@given(st.integers(0, 10**6), st.integers(-600, 600))
def test_an_end_is_reached_without_a_change_of_the_limit(lease: int, beyond: int) -> None:
    """By Slurm's own rule for a new end, as it was measured; and never past what was wanted."""
    end, limit = T0 + lease, 100
    wanted = end + beyond
    for step in steps_to(end, wanted):
        assert min(end, wanted) <= step <= max(end, wanted)
        limit += int((step - end + 30) / 60)
        end = step
    assert (end, limit) == (wanted, 100)


@pytest.mark.parametrize(
    ("comment", "granted"),
    [
        (f"drainwise: asked to be gone by 1795271000 (lease of 12_3@{T0} until 1795290000): bob waits", (1795290000,)),
        (f"drainwise: asked to be gone by 1795271000 (lease of 12_3@{T0} until none): bob waits", (None,)),
        (f"drainwise: asked to be gone by 1795271000 (lease of 12_3@{T0 + 1} until 1795290000): bob waits", None),
        (f"drainwise: asked to be gone by 1795271000 (lease of 12_4@{T0} until 1795290000): bob waits", None),
        (f"x drainwise: asked to be gone by 1795271000 (lease of 12_3@{T0} until 1795290000): bob waits", None),
        ("drainwise: asked to be gone by 1795271000: bob waits", None),
        (f"drainwise: not asked to leave any more: x (lease of 12_3@{T0} until 1795290000)", None),
        ("", None),
    ],
)
def test_what_a_lease_was_is_read_of_that_run_alone(comment: str, granted: tuple[int | None] | None) -> None:
    assert granted_in(comment, f"12_3@{T0}", 1795271000) == granted
    assert granted_in(plain(comment), f"12_3@{T0}", 1795271000) == granted


@pytest.mark.parametrize(("end", "granted"), [(1795270999, None), (1795271000, (None,)), (1795271001, (None,))])
def test_who_shortened_a_lease_after_us_is_not_overruled(end: int, granted: tuple[int | None] | None) -> None:
    """An order is taken back, not what an administrator has decided since."""
    comment = f"drainwise: asked to be gone by 1795271000 (lease of 17@{T0} until none): bob waits"
    assert granted_in(comment, f"17@{T0}", end) == granted
