"""What qsub is told: exact amounts under the site's names, hard and soft options, nothing by accident."""

from __future__ import annotations

import re

import pytest

from drainwise_launch.backend import Start
from drainwise_launch.choice.resources import Amount, Resources
from drainwise_launch.job_script import job_script
from drainwise_launch.sge.submission import MOVED_CODES, SgeSettings, qsub_arguments, true_code, unfit

PLAIN = SgeSettings("/usr/bin", "/sge")
NAMED = SgeSettings("/usr/bin", "/sge", cpu_resource="cpu_r", mem_resource="mem_r", tmp_resource="tmp_r")


def start(resources: Resources = Resources(), wall_limit: int = 0) -> Start:  # noqa: B008 - it is frozen
    return Start("n:1", "T1", ("true",), "/", resources, "/dev/null", wall_limit=wall_limit)


def told(settings: SgeSettings, job: Start, priority: int = 0) -> str:
    return " ".join(qsub_arguments(settings, "key:", job, priority))


def test_amounts_go_under_the_names_the_site_gave() -> None:
    """The document's example: cpu_resource = cpu_r and cpu = 2 make `-l cpu_r=2`."""
    said = told(NAMED, start(Resources(2, 10, 100, (("licence", 1), ("matlab", "r2020")))))
    assert said.endswith("-l cpu_r=2 -l mem_r=10 -l tmp_r=100 -l licence=1 -l matlab=r2020")


def test_without_names_only_what_the_job_names_is_asked_for() -> None:
    said = told(PLAIN, start(Resources(2, 10, 100, (("x", 3),))))
    assert said.endswith("-l x=3") and said.count("-l ") == 1


def test_what_is_zero_is_not_asked_for() -> None:
    assert told(NAMED, start()).count("-l ") == 1  # cpu alone


def test_hard_and_soft_options_stand_last_each_behind_its_switch() -> None:
    others = (("hard", "-q 'long q' -l arch=lx*"), ("soft", "-l fast=1"))
    arguments = qsub_arguments(PLAIN, "key:", start(Resources(others=others)), 0)
    assert arguments[-8:] == ["-hard", "-q", "long q", "-l", "arch=lx*", "-soft", "-l", "fast=1"]
    assert unfit(Resources(others=others)) == ""


def test_priority_and_wall_limit() -> None:
    assert told(PLAIN, start(wall_limit=90), -7).endswith("-p -7 -hard -l h_rt=90")


def test_the_name_has_the_tag_and_the_script_no_directives() -> None:
    arguments = qsub_arguments(PLAIN, "key:", start(), 0)
    assert arguments[arguments.index("-N") + 1] == "key;n;1.T1"
    assert arguments[arguments.index("-C") + 1] == ""
    assert "-r" in arguments and arguments[arguments.index("-r") + 1] == "n"


def test_what_a_file_sge_request_says_for_others_is_withdrawn() -> None:
    """HOSTILE 46: `-b y` there would have no script read, `-sync y` would have qsub wait for the job."""
    assert {"-b n", "-now n", "-sync n", "-p 0", "-hard"} <= set(re.findall("-[a-z]+(?: [n0])?", told(PLAIN, start())))


@pytest.mark.parametrize("code", [0, 1, 98, 99, 100, 101, 137, 255])
def test_the_true_exit_code_comes_back(code: int) -> None:
    assert true_code(MOVED_CODES.get(code, code)) == code
    assert 'case "$code" in 99) exit 227;; 100) exit 228;; esac' in job_script(start(), MOVED_CODES)


@pytest.mark.parametrize(
    "other",
    [
        ("x", "a b"),
        ("x", "1,slots=100"),
        ("hard", "'"),
        ("hard", "long.q"),
        ("hard", "-q long.q -N other"),
        ("soft", "-t 1-1000"),
        ("hard", "-sync y"),
        ("hard", "-q long.q /home/me/other.sh"),
        ("hard", "-q long.q -- x"),
        ("hard", "-q"),
        ("hard", "-pe mpi"),
        ("hard", "-l -N other"),
        ("hard", "-clear"),
        ("hard", "-V"),
        ("hard", "-v LD_PRELOAD=x"),
        ("hard", "-soft -l x=1"),
        ("soft", ""),
        ("hard", 5),
    ],
)
def test_what_would_make_another_job_of_it_is_refused(other: tuple[str, Amount]) -> None:
    assert other[0] in unfit(Resources(others=(other,)))


@pytest.mark.parametrize(
    "options", ["-pe 'mpi*' -8 -R y", "-binding env linear:2 -P cms", "-binding linear -h", "-A x"]
)
def test_options_that_leave_it_the_same_job_are_its_own_affair(options: str) -> None:
    assert unfit(Resources(others=(("hard", options),))) == ""


def test_what_grid_engine_alone_can_know_is_left_to_it() -> None:
    assert unfit(Resources(10_000, 1 << 40, 0, (("nobody_knows", 3), ("arch", "lx-*|!sol")))) == ""
