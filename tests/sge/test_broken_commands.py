"""Commands of Grid Engine that hang, fail or print garbage: nothing is taken from them about any job."""

from __future__ import annotations

import os
import pwd
import time
from pathlib import Path

import pytest

from drainwise.facts.errors import ActionRefused, ConfigurationError, PoolFull, PoolUnreachable
from drainwise_launch.backend import DONE, VANISHED, LaunchPlace, Start
from drainwise_launch.choice.resources import Resources
from drainwise_launch.sge.backend import SgeBackend, open_backend
from drainwise_launch.sge.submission import sge_settings

pytestmark = pytest.mark.daemons  # it waits for what never answers

NONE = "echo 'error: job id 7 not found' >&2; exit 1"
GONE = "error: commlib error: got select error (Connection refused)"
NO_QMASTER = f"echo '{GONE}' >&2; echo 'unable to send message to qmaster using port 6444' >&2; exit 1"


OURS = "key;n.state-1"
ME = pwd.getpwuid(os.getuid()).pw_name
TELL = 'echo "$@" >>"$0.told"'


def row(**values: object) -> str:
    """What qstat prints of a job."""
    return "".join(f"<{key}>{value}</{key}>" for key, value in values.items())


def detailed(*jobs: tuple[str, str, str]) -> str:
    """What `qstat -j` prints of these: number, owner, name."""
    rows = [row(JB_job_number=number, JB_owner=owner, JB_job_name=name) for number, owner, name in jobs]
    elements = "".join(f"<element>{one}</element>" for one in rows)
    return f"<detailed_job_info><djob_info>{elements}</djob_info></detailed_job_info>"


def queue(*jobs: tuple[str, str, str, int]) -> str:
    """A qstat that knows these jobs of mine: number, name, letters, priority."""
    rows = [row(JB_job_number=one[0], JB_owner=ME, JB_name=one[1], state=one[2], JB_priority=one[3]) for one in jobs]
    listed = "".join(f"<job_list>{one}</job_list>" for one in rows)
    return listing(listed, detailed(*((one[0], ME, one[1]) for one in jobs)))


def listing(rows: str, details: str = "<unknown_jobs/>") -> str:
    """A qstat that prints these rows for a list, and these details."""
    listed = f"<job_info><queue_info></queue_info><job_info>{rows}</job_info></job_info>"
    return f'case "$*" in *-j*) echo "{details}";; *) echo "{listed}";; esac'


def ended(name: str, owner: str, failed: str = "0") -> str:
    """A qacct that knows how job 7 of this name and owner ended: well, or with a value of `failed`."""
    record = {
        "jobname": name,
        "owner": owner,
        "jobnumber": "7",
        "failed": failed,
        "exit_status": "0",
        "ru_wallclock": "0s",
    }
    return "; ".join(f"echo '{key} {value}'" for key, value in record.items())


def commands(place: Path, **lines: str) -> str:
    """A directory of commands that are lines of sh."""
    given = {"qstat": listing(""), "qacct": NONE, "qsub": "echo 7", "qdel": "true", "qalter": "true", **lines}
    for name, line in given.items():
        (place / name).write_text(f"#!/bin/sh\n{line}\n")
        (place / name).chmod(0o755)
    return str(place)


def backend(place: Path, **lines: str) -> SgeBackend:
    table = {"bin": commands(place, **lines), "root": "/sge", "command_seconds": 1, "accounting_seconds": 0}
    return SgeBackend(sge_settings(table, "", "f"), "key", "state")


def start(resources: Resources = Resources()) -> Start:  # noqa: B008 - it is frozen
    return Start("n", "T1", ("true",), "/", resources, "/dev/null")


@pytest.mark.parametrize(
    "line",
    [
        "exec sleep inf",
        "echo hello",
        "true",
        "echo 7; echo 8",
        "echo '7 jobs'",
        "printf '\\0\\377'",
        "yes",
        NO_QMASTER,
        "echo 'Error reading answer list from qmaster' >&2; exit 1",
        "kill -9 $$",
        "echo 'Unable to initialize environment because of error: directory does not exist: /sge' >&2; exit 1",
    ],
)
def test_a_submit_command_that_gives_no_number_leaves_it_open_whether_the_job_began(tmp_path: Path, line: str) -> None:
    with pytest.raises(PoolUnreachable, match="qsub"):
        backend(tmp_path, qsub=line).start(start())


def test_a_refusal_is_one_with_its_reason(tmp_path: Path) -> None:
    line = "echo 'Unable to run job: unknown resource \"foo\"' >&2; echo Exiting. >&2; exit 1"
    with pytest.raises(ActionRefused, match='unknown resource "foo"'):
        backend(tmp_path, qsub=line).start(start())


@pytest.mark.parametrize("whose", ["user (current job count: 1)", "cluster"])
def test_a_limit_on_jobs_that_is_reached_is_no_refusal_for_ever(tmp_path: Path, whose: str) -> None:
    line = f"echo 'Unable to run job: job rejected: only 1 jobs are allowed per {whose}.' >&2; exit 25"
    with pytest.raises(PoolFull, match="only 1 jobs are allowed"):
        backend(tmp_path, qsub=line).start(start())


def test_a_job_grid_engine_cannot_have_is_never_submitted(tmp_path: Path) -> None:
    line = f"touch {tmp_path}/submitted; echo 7"
    with pytest.raises(ActionRefused, match="without blanks"):
        backend(tmp_path, qsub=line).start(start(Resources(others=(("x", "1 slots=9"),))))
    assert not (tmp_path / "submitted").exists()


@pytest.mark.parametrize(
    "line",
    [
        "true",
        "echo hello",
        "echo '<job_info><queue_info></queue_info><job_info>'",
        "exec sleep inf",
        NO_QMASTER,
        "echo '<job_info><job_list><JB_job_number>x</JB_job_number></job_list></job_info>'",
        "echo '<job_info><job_list><JB_job_number>7</JB_job_number></job_list></job_info>'",
        "echo '<unknown_jobs><ST_name>7</ST_name></unknown_jobs>'",
        "echo '<job_info><cluster_queue_summary/></job_info>'",  # a file sge_qstat says `-g c`
        "echo '<!DOCTYPE a [<!ENTITY b \"c\">]><job_info>&b;</job_info>'",
    ],
)
def test_no_answer_of_qstat_lets_a_job_vanish(tmp_path: Path, line: str) -> None:
    with pytest.raises(PoolUnreachable, match="qstat"):
        backend(tmp_path, qstat=line).poll(["7"])


@pytest.mark.parametrize(
    "line",
    [
        "exec sleep inf",
        "echo jobnumber 7",
        NO_QMASTER,
        "echo 'no such cell' >&2; exit 1",
        "echo 'no jobs running since startup'; echo 'error: unable to open /sge/accounting' >&2; exit 1",
        "exec /nowhere/qacct",
    ],
)
def test_no_answer_of_qacct_lets_a_job_vanish(tmp_path: Path, line: str) -> None:
    with pytest.raises(PoolUnreachable, match="qacct"):
        backend(tmp_path, qacct=line).poll(["7"])


def test_a_whole_answer_that_does_not_know_it_does(tmp_path: Path) -> None:
    assert backend(tmp_path).poll(["7"])["7"].state == VANISHED


def test_one_that_a_file_sge_qstat_hides_has_not_vanished(tmp_path: Path) -> None:
    """`-l arch=none` in a user's ~/.sge_qstat and qstat lists none of the user's jobs."""
    hidden = backend(tmp_path, qstat=listing("", detailed(("7", ME, OURS))), qdel=TELL)
    assert hidden.poll(["7"]) == {}
    assert hidden.find(["state-1"]) == {"state-1": "7"}
    hidden.kill(["7"])
    assert (tmp_path / "qdel.told").read_text() == "7\n"
    for another in (("7", ME, "key;n.other-1"), ("7", "bob", OURS)):
        assert backend(tmp_path, qstat=listing("", detailed(another))).poll(["7"])["7"].state == VANISHED


def test_whose_machine_went_down_has_not_failed_but_vanished(tmp_path: Path) -> None:
    told = backend(tmp_path, qacct=ended(OURS, ME, "19  : before writing exit_status")).poll(["7"])["7"]
    assert (told.state, told.why) == (VANISHED, "failed 19: before writing exit_status")


def test_another_job_with_its_number_is_not_it(tmp_path: Path) -> None:
    """Numbers come again after some millions of jobs: a record of years ago is no end of today's job."""
    for name, owner, state in (("other", ME, VANISHED), (OURS, ME, DONE), (OURS, "bob", VANISHED)):
        assert backend(tmp_path, qacct=ended(name, owner)).poll(["7"])["7"].state == state


def test_another_job_with_its_number_is_not_killed(tmp_path: Path) -> None:
    """HOSTILE 48, 50: what an earlier launcher noted may be another job's number by now."""
    there = queue(("7", "key;n.other-1", "r", 0), ("8", OURS, "r", 0), ("9", "mine", "qw", 0))
    backend(tmp_path, qstat=there, qdel=TELL).kill(["7", "8", "9", "10"])
    assert (tmp_path / "qdel.told").read_text() == "8\n"


def test_of_many_that_have_ended_the_accounting_is_asked_for_what_began_since_they_waited(tmp_path: Path) -> None:
    """Its answer must not grow with all that ever ended: a launch has a million jobs."""
    numbers = [str(number) for number in range(7, 12)]
    waits = queue(*((number, OURS, "qw", 0) for number in numbers))
    many = backend(tmp_path, qstat=waits, qacct=f"{TELL}; {NONE}")
    many.poll(numbers)
    commands(tmp_path, qstat=listing(""), qacct=f"{TELL}; {NONE}")
    many.poll(numbers)
    words = (tmp_path / "qacct.told").read_text().splitlines()[0].split()
    assert words[0] == "-b" and words[2:] == ["-j", "key;*"]
    assert 3600 < time.time() - time.mktime(time.strptime(words[1], "%Y%m%d%H%M.%S")) < 3 * 3600


def test_a_start_that_may_have_been_made_is_looked_for_among_its_owner_s(tmp_path: Path) -> None:
    """Anybody may give a job our job's name, once they have seen it in the queue."""
    assert backend(tmp_path, qacct=ended(OURS, ME)).find(["state-1"]) == {"state-1": "7"}
    assert backend(tmp_path, qacct=ended(OURS, "bob")).find(["state-1"]) == {}


def test_the_next_launcher_puts_in_order_what_an_earlier_one_handed_over(tmp_path: Path) -> None:
    jobs = (("7", OURS, "qw", -3), ("8", f"{OURS}b", "qw", -40), ("9", f"{OURS}c", "hqw", -50))
    taken_up = backend(tmp_path, qstat=queue(*jobs), qalter=TELL)
    taken_up.poll(["7", "8", "9"])
    taken_up.reprioritise({"7": 300.0, "8": 100.0, "9": 200.0})
    assert (tmp_path / "qalter.told").read_text() == "-p -51 7\n"


def test_orders_without_an_answer_are_told(tmp_path: Path) -> None:
    jobs = (("7", OURS, "qw", 0), ("8", OURS, "qw", 0))
    away = backend(tmp_path, qstat=queue(*jobs), qdel=NO_QMASTER, qalter=NO_QMASTER)
    with pytest.raises(PoolUnreachable, match="qdel"):
        away.kill(["7"])
    away.poll(["7", "8"])
    with pytest.raises(PoolUnreachable, match="qalter"):
        away.reprioritise({"7": 5.0, "8": 4.0})


def test_one_that_is_gone_is_no_fault(tmp_path: Path) -> None:
    gone = "echo 'denied: job \"7\" does not exist'; exit 1"
    backend(tmp_path, qstat=queue(("7", OURS, "r", 0)), qdel=gone).kill(["7"])


def test_a_cell_that_does_not_answer_cannot_be_opened(tmp_path: Path) -> None:
    place = LaunchPlace("f", "key", str(tmp_path))
    with pytest.raises(PoolUnreachable):
        open_backend({"bin": commands(tmp_path, qstat=NO_QMASTER), "root": "/s"}, "", place)
    with pytest.raises(PoolUnreachable, match="/nowhere/qstat"):
        open_backend({"bin": "/nowhere", "root": "/s"}, "", place)
    with pytest.raises(ConfigurationError, match="bin"):
        open_backend({}, "", place)


def test_the_commands_are_told_where_grid_engine_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """HOSTILE 46: of the launcher's environment only what Grid Engine needs."""
    monkeypatch.setenv("LD_PRELOAD", "/nowhere.so")
    monkeypatch.setenv("SGE_QMASTER_PORT", "6444")
    monkeypatch.delenv("TZ", raising=False)
    table = {
        "bin": commands(tmp_path, qsub=f"env >{tmp_path}/env; echo 7"),
        "root": "/sge",
        "cell": "c",
        "cluster": "p",
    }
    SgeBackend(sge_settings(table, "", "f"), "key").start(start())
    told = dict(line.split("=", 1) for line in (tmp_path / "env").read_text().splitlines())
    told = {name: value for name, value in told.items() if name not in {"PWD", "OLDPWD", "SHLVL", "_", "HOME"}}
    assert told == {
        "SGE_ROOT": "/sge",
        "SGE_CELL": "c",
        "SGE_CLUSTER": "p",
        "SGE_CLUSTER_NAME": "p",
        "SGE_QMASTER_PORT": "6444",
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
        "LC_ALL": "C",
    }
    assert "LD_PRELOAD" in os.environ
