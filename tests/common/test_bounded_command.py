"""Commands that hang, print without end, leave children behind or do not read: nothing holds the launcher."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from drainwise.common.bounded_command import Running
from drainwise.facts.errors import PoolUnreachable
from real_daemons.waiting import wait_for

pytestmark = pytest.mark.daemons  # it runs real processes

PATH = {"PATH": "/usr/bin:/bin"}
LARGE = 500_000


def test_what_goes_in_and_what_comes_out_may_be_larger_than_a_pipe() -> None:
    answer = Running(["/bin/sh", "-c", "cat; echo why >&2; exit 3"], PATH, 10, "x" * LARGE).answer()
    assert (answer.code, answer.out, answer.said) == (3, b"x" * LARGE, "why")


def test_a_command_that_does_not_read_still_answers() -> None:
    assert Running(["/bin/echo", "42"], PATH, 10, "x" * LARGE).answer().text == "42\n"


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("exec sleep inf", id="hangs"),
        pytest.param("exec >&- 2>&-; sleep inf", id="closes its outputs and hangs"),
        pytest.param("trap '' TERM INT; sleep inf; sleep inf", id="does not want to end"),
        pytest.param("sleep inf & echo 42", id="leaves a child that holds its pipes"),
        pytest.param("while :; do echo x; sleep 0.01; done", id="prints slowly, for ever"),
    ],
)
def test_its_time_is_bounded_and_nothing_of_it_stays(line: str, tmp_path: Path) -> None:
    with pytest.raises(PoolUnreachable, match=r"sh did not answer within 0\.3 s"):
        Running(["/bin/sh", "-c", f"echo $$ >{tmp_path}/pid; {line}"], PATH, 0.3).answer()
    group = int((tmp_path / "pid").read_text())
    # Killed is not yet gone: the kernel may need a moment.
    wait_for(lambda: not [path for path in Path("/proc").glob("[0-9]*/stat") if _group_of(path) == group], 10, "an end")


def _group_of(stat: Path) -> int:
    try:
        words = stat.read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return 0 if words[0] == "Z" else int(words[2])


def test_it_may_not_fill_the_memory() -> None:
    with pytest.raises(PoolUnreachable, match="printed more than 1 MiB"):
        Running(["/bin/sh", "-c", "yes"], PATH, 20, most=1 << 20).answer()


def test_what_it_complains_of_without_end_costs_no_memory() -> None:
    """Millions of words on its stderr, and still an answer."""
    answer = Running(["/bin/sh", "-c", "yes no | head -c 60000000 >&2; echo 42"], PATH, 20).answer()
    assert (answer.code, answer.text) == (0, "42\n") and answer.said.startswith("no no no ") and len(answer.said) == 200
    assert len(answer.whole) <= 1 << 20


def test_its_code_is_told_where_the_parent_ignored_its_children() -> None:
    """SIGCHLD is inherited; ignored, every child would seem to end with 0."""
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        assert Running(["/bin/sh", "-c", "exit 7"], PATH, 10).answer().code == 7
    finally:
        signal.signal(signal.SIGCHLD, before)


def test_one_that_is_not_there_is_named() -> None:
    with pytest.raises(PoolUnreachable, match="/nowhere/qsub cannot be run: No such file"):
        Running(["/nowhere/qsub"], PATH, 1).answer()


def test_what_it_complains_of_is_one_printable_line() -> None:
    """HOSTILE 41: escape sequences and newlines do not reach a terminal or a log."""
    answer = Running(["/bin/sh", "-c", r"printf 'a\033[31m\nb\r\n%0999d' 1 >&2; kill -9 $$"], PATH, 5).answer()
    assert answer.code == -9
    assert answer.complaint.startswith("a[31m b 000") and len(answer.complaint) == 200
