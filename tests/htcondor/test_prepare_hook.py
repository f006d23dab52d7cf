"""The prepare hook as a real process of the job's user: features made, variables named, and never a job stopped."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import classad2
import pytest

from drainwise.features.check import ERROR, check
from drainwise.features.read import open_features
from drainwise.htcondor.node.prepare_hook import host_side, job_side
from drainwise.node.settings import NodeSettings
from made_up_node import (
    PYTHON,
    Node,
    Programs,
    Ran,
    ad_text,
    contents,
    machine_attributes,
    make_directory,
    run_as,
    write,
)

pytestmark = pytest.mark.daemons  # it runs real hooks as a job's user

if TYPE_CHECKING:
    from drainwise.node.ad_text import Literal

# What does not depend on the layout of the directories is tried in one of them.
ONE_LAYOUT = pytest.mark.parametrize("node", ["since 25.4"], indirect=True)
USER, STRANGER = 54321, 54323
NOW = 1795249000
NAMES = ("MACHINEFEATURES", "JOBFEATURES", "JOBSTATUS")


def environment(ran: Ran) -> str:
    """The job's environment after the starter merged the hook's one line."""
    [line] = ran.stdout.decode("latin-1").splitlines()
    text = classad2.parseOne(line)["Environment"]
    assert isinstance(text, str)
    return text


def cat(uid: int, path: str) -> bool:
    """Whether a process of `uid` can read a file."""
    return run_as(uid, ["/bin/cat", path]).returncode == 0


def one_line(ran: Ran) -> str:
    """The one line that the hook said: short and printable."""
    [line] = ran.stderr.decode("ascii").splitlines()
    assert line.startswith("drainwise: ")
    assert line.isprintable()
    assert len(line) <= 200
    return line


# ---- what a job gets ----


def test_every_key_of_an_eight_core_job(node: Node, programs: Programs) -> None:
    """Both generations of keys, from the slot, the job and the site's settings."""
    job = node.start("slot1_1", USER, NOW, AllowedExecuteDuration=7200)
    ran = programs.prepare(job)
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert contents(f"{job.scratch}/.machinefeatures") == {
        "total_cpu": "24\n",
        "jobslots": "24\n",
        "phys_cores": "32\n",
        "log_cores": "64\n",
        "hs06": "240.5\n",
    }
    assert contents(f"{job.scratch}/.jobfeatures") == {
        "allocated_cpu": "8\n",
        "allocated_CPU": "8\n",
        "hs06_job": "80.166667\n",
        "jobstart_secs": f"{NOW}\n",
        "job_id": f"{job.job_id}\n",
        "wall_limit_secs": "7200\n",
        "wall_limit_secs_lrms": "9000\n",
        "cpu_limit_secs": "57600\n",
        "cpu_limit_secs_lrms": "72000\n",
        "cpufactor_lrms": "1.25\n",
        "max_rss_bytes": f"{16384 << 20}\n",
        "mem_limit_MB": "17179\n",
        "scratch_limit_bytes": "20480000000\n",
        "disk_limit_GB": "20\n",
        "grace_secs_job": "60\n",
    }
    assert contents(f"{job.scratch}/.jobstatus") == {}


KINDS = """\
kind = by-host
host = elsewhere*
hs06 = 1
kind = by-attribute
feature = HasFastDisk, NodeType=rome
hs06 = 480
jobslots = 12
wall_limit_secs = 3600
kind = by-name
host = central-[01-20].pool.test
hs06 = 720
"""


@pytest.mark.parametrize(
    ("slot", "expected"),
    [
        ({}, ("240.5", "24")),
        ({"HasFastDisk": True}, ("480", "12")),
        ({"HasFastDisk": False, "NodeType": "Rome"}, ("480", "12")),
        ({"HasFastDisk": "true", "NodeType": "milan"}, ("480", "12")),
        ({"HasFastDisk": False, "NodeType": "milan", "Machine": "central-07.pool.test"}, ("720", "24")),
        ({"Machine": "central-21.pool.test"}, ("240.5", "24")),
    ],
)
def test_a_node_takes_the_values_of_its_kind(
    node: Node, programs: Programs, slot: dict[str, object], expected: tuple[str, str]
) -> None:
    """One file of settings for all nodes; the slot's ad says which this is, and the update hook goes by it, too."""
    file = Path(programs.settings)
    text = file.read_text()
    job = node.start("slot1_1", USER, int(time.time()))
    write(job.machine_ad, ad_text({**job.slot_attributes(), **slot}), 0)
    try:
        file.write_text(text + KINDS)
        ran = programs.prepare(job)
        assert (ran.returncode, ran.stderr) == (0, b"")
        found = contents(f"{job.scratch}/.machinefeatures")
        assert (found["hs06"].strip(), found["jobslots"].strip()) == expected
        assert (contents(f"{job.scratch}/.jobfeatures")["wall_limit_secs"] == "3600\n") is (expected[1] == "12")
        node.refresh(job, **{**slot, "TotalCpus": 20})
        programs.update(job)
        slots = contents(f"{job.scratch}/.machinefeatures")["jobslots"].strip()
        assert slots == ("12" if expected[1] == "12" else "20")
    finally:
        file.write_text(text)


def test_the_check_is_content(node: Node, programs: Programs) -> None:
    """No rule of the specification is broken by what the hook writes."""
    job = node.start("slot1_1", USER, int(time.time()))
    programs.prepare(job)
    machine, own = (open_features(f"{job.scratch}/{name}") for name in (".machinefeatures", ".jobfeatures"))
    assert [verdict for verdict in check(machine, own, int(time.time())) if verdict.level == ERROR] == []


def test_the_variables_name_the_directories(node: Node, programs: Programs) -> None:
    """Each with the twins that container runtimes pass on."""
    job = node.start("slot1_1", USER, NOW)
    words = environment(programs.prepare(job)).split(" ")
    assert words == [
        f"{prefix}{name}={job.scratch}/.{name.lower()}"
        for name in NAMES
        for prefix in ("", "APPTAINERENV_", "SINGULARITYENV_")
    ]


def test_the_directories_belong_to_the_job(node: Node, programs: Programs) -> None:
    """They are the user's, readable for all who get there, and nothing else is left behind."""
    job = node.start("slot1_1", USER, NOW)
    before = set(os.listdir(job.scratch))
    programs.prepare(job)
    assert set(os.listdir(job.scratch)) - before == {".machinefeatures", ".jobfeatures", ".jobstatus"}
    for name in (".machinefeatures", ".jobfeatures", ".jobstatus"):
        status = os.stat(f"{job.scratch}/{name}")
        assert (status.st_uid, status.st_mode & 0o7777) == (USER, 0o755)


def test_a_planned_shutdown_is_there_from_the_start(node: Node, programs: Programs) -> None:
    """In both directories, with the machine's time."""
    job, planned = node.start("slot1_1", USER, NOW), int(time.time()) + 5000
    shutdown_file = f"{os.path.dirname(programs.settings)}/shutdowntime"
    write(shutdown_file, f"{planned}\n", 0)
    try:
        programs.prepare(job)
    finally:
        os.unlink(shutdown_file)
    assert contents(f"{job.scratch}/.machinefeatures")["shutdowntime"] == f"{planned}\n"
    assert contents(f"{job.scratch}/.jobfeatures")["shutdowntime_job"] == f"{planned}\n"


def test_limits_that_the_site_states_come_before_those_of_the_slot() -> None:
    """The tightest run time counts; a limit that nobody states is unknown."""
    slot: dict[str, Literal] = {"Cpus": 4, "Memory": 1000, "Disk": 2048}
    site = NodeSettings({"wall_limit_secs": "5000", "cpu_limit_secs_per_core": "4000", "scratch_limit_bytes": "2048"})
    found = job_side({"AllowedJobDuration": 6000}, slot, site, NOW)
    assert (found.wall_limit_secs, found.cpu_limit_secs, found.scratch_limit_bytes) == (5000, 16000, 2048)
    found = job_side({}, slot, NodeSettings(), NOW)
    assert (found.wall_limit_secs, found.cpu_limit_secs, found.jobstart_secs) == (None, None, NOW)
    assert found.scratch_limit_bytes == 2048 * 1024
    wide = NodeSettings({"scratch_limit_bytes": "20000000000"})
    assert job_side({}, slot, wide, NOW).scratch_limit_bytes == 2048 * 1024  # the slot's own disk is smaller


@pytest.mark.parametrize(("physical", "logical", "told"), [(32, 64, (32, 64)), (32, 32, (32, 0))])
def test_cores_of_the_host(physical: int, logical: int, told: tuple[int, int]) -> None:
    """Without hyper-threading the logical cores are 0, the draft's way of saying so."""
    slot: dict[str, Literal] = {"DetectedPhysicalCpus": physical, "DetectedCpus": logical, "TotalCpus": 24.0}
    found = host_side(slot, NodeSettings())
    assert (found.phys_cores, found.log_cores) == told
    assert (found.total_cpu, found.jobslots) == (24, 24)


# ---- the user's environment ----


def test_the_users_own_variables_do_not_count(node: Node, programs: Programs) -> None:
    """HOSTILE 46: MACHINEFEATURES set by the user loses, everything else is kept letter by letter."""
    own = "MACHINEFEATURES=/evil A='two  words' B=it''''s E= C=\\x\\ L=caf\xe9"
    job = node.start("slot1_1", USER, NOW, Environment=own)
    text = environment(programs.prepare(job))
    assert text.startswith(f"{own} ")
    assert text.endswith(f"SINGULARITYENV_JOBSTATUS={job.scratch}/.jobstatus")
    assert text.index("MACHINEFEATURES=/evil") < text.index(f" MACHINEFEATURES={job.scratch}")


@ONE_LAYOUT
def test_the_old_syntax_too(node: Node, programs: Programs) -> None:
    """A job of an old submitter keeps its variables."""
    job = node.start("slot1_1", USER, NOW, Env="A=1|B=two words", EnvDelim="|")
    assert environment(programs.prepare(job)).startswith("A=1 'B=two words' MACHINEFEATURES=")


@ONE_LAYOUT
@pytest.mark.parametrize(
    "line", ['Environment = strcat("A=", "1")', "Environment = undefined", 'Env = "A=1" + "B=2"', 'Environment = "']
)
def test_an_environment_that_is_no_string(node: Node, programs: Programs, line: str) -> None:
    """HOSTILE 33: nothing is printed, so the job keeps what it has; the directories are there all the same."""
    job = node.start("slot1_1", USER, NOW)
    ran = programs.prepare(job, f"{job.stdin}{line}\n")
    assert (ran.returncode, ran.stdout) == (0, b"")
    assert "not a string" in one_line(ran)
    assert os.path.exists(f"{job.scratch}/.jobfeatures/allocated_cpu")


@ONE_LAYOUT
def test_a_large_environment_is_printed_whole(node: Node, programs: Programs) -> None:
    """More than a pipe holds."""
    job = node.start("slot1_1", USER, NOW, Environment="BIG=" + "x" * 1_000_000)
    text = environment(programs.prepare(job))
    assert text.startswith("BIG=" + "x" * 1_000_000 + " MACHINEFEATURES=")


@ONE_LAYOUT
def test_an_ad_over_the_limit_is_not_read_in_half(node: Node, programs: Programs) -> None:
    """HOSTILE 20: half an ad might lack the environment, and printing ours would then lose the user's."""
    job = node.start("slot1_1", USER, NOW, Environment="BIG=" + "x" * (4 << 20))
    ran = programs.prepare(job)
    assert (ran.returncode, ran.stdout) == (0, b"")
    assert "File too large" in one_line(ran)


# ---- the way in for the cron ----


def test_only_the_daemons_user_gets_in(node: Node, programs: Programs) -> None:
    """It reads a report by name; the job's directory stays closed for everyone else."""
    job = node.start("slot1_1", USER, NOW)
    programs.prepare(job)
    write(f"{job.scratch}/.pilot.ad", "report\n", USER)
    assert cat(node.daemon, f"{job.scratch}/.pilot.ad")
    assert not cat(STRANGER, f"{job.scratch}/.pilot.ad")
    assert os.stat(job.scratch).st_mode & 0o007 == 0


def test_the_way_in_does_not_depend_on_the_job_ad(node: Node, programs: Programs) -> None:
    """A job that gets no variables can still report."""
    job = node.start("slot1_1", USER, NOW)
    programs.prepare(job, "Environment = undefined\n")
    write(f"{job.scratch}/.pilot.ad", "report\n", USER)
    assert cat(node.daemon, f"{job.scratch}/.pilot.ad")


def test_where_root_owns_the_directory_of_all_jobs(node: Node, programs: Programs) -> None:
    """Before 25.4 nothing then tells who the daemon's user is: that is said, and the job has all the rest."""
    job = node.start("slot1_1", USER, NOW)
    os.chown(node.execute, 0, 0)
    ran = programs.prepare(job)
    assert "JOBFEATURES=" in environment(ran)
    if node.since_25_4:
        assert ran.stderr == b""
    else:
        assert "belongs to root" in one_line(ran)
    assert os.stat(job.scratch).st_mode & 0o777 == (0o710 if node.since_25_4 else 0o700)


def test_a_pool_without_root_needs_no_access_list(node: Node, programs: Programs) -> None:
    """There the daemon's user and the job's are one."""
    job = node.start("slot1_1", node.daemon, NOW)
    assert programs.prepare(job).stderr == b""
    assert os.stat(job.scratch).st_mode & 0o777 == 0o700


# ---- what is not as it should be ----


@pytest.mark.parametrize("missing", ["variable", "file"])
def test_without_a_machine_ad(node: Node, programs: Programs, missing: str) -> None:
    """What only the slot knows is left out, the rest is written."""
    job = node.start("slot1_1", USER, NOW)
    if missing == "file":
        os.unlink(job.machine_ad)
    variables = job.environment()
    if missing == "variable":
        del variables["_CONDOR_MACHINE_AD"]
    ran = programs.run("prepare-hook", [], USER, variables, job.stdin.encode(), "/")
    assert ran.returncode == 0
    assert "no machine ad" in one_line(ran)
    assert "JOBFEATURES=" in environment(ran)
    found = contents(f"{job.scratch}/.jobfeatures")
    assert found["jobstart_secs"] == f"{NOW}\n"
    assert "allocated_cpu" not in found


@ONE_LAYOUT
def test_without_a_scratch_directory(node: Node, programs: Programs) -> None:
    """Nothing can be done, and the job runs."""
    job = node.start("slot1_1", USER, NOW)
    for variables in ({}, {**job.environment(), "_CONDOR_SCRATCH_DIR": "/nonexistent/dir_1"}):
        ran = programs.run("prepare-hook", [], USER, variables, job.stdin.encode(), "/")
        assert (ran.returncode, ran.stdout) == (0, b"")
        one_line(ran)


@ONE_LAYOUT
@pytest.mark.parametrize("stdin", ["", "\n", "Environment", "\0" * 1000, "x" * 100_000])
def test_a_job_ad_that_is_none(node: Node, programs: Programs, stdin: str) -> None:
    """HOSTILE 21, 23, 24: features from the slot alone."""
    job = node.start("slot1_1", USER, NOW)
    ran = programs.prepare(job, stdin)
    assert ran.returncode == 0
    assert "JOBFEATURES=" in environment(ran)
    assert contents(f"{job.scratch}/.jobfeatures")["allocated_cpu"] == "8\n"


@ONE_LAYOUT
@pytest.mark.parametrize("text", [None, "hs06 = fast\n", "\0\xff"])
def test_settings_that_are_missing_or_wrong(node: Node, programs: Programs, text: str | None) -> None:
    """One line names the file; the values of the slot are written, those of the site are not."""
    job = node.start("slot1_1", USER, NOW)
    settings = f"{node.base}/node.conf"
    if text is not None:
        write(settings, text, 0)
    ran = run_as(USER, hook_program(programs, settings), job.environment(), job.stdin.encode())
    assert ran.returncode == 0
    assert "node.conf" in one_line(ran)
    assert contents(f"{job.scratch}/.jobfeatures")["allocated_cpu"] == "8\n"
    assert "hs06" not in contents(f"{job.scratch}/.machinefeatures")


def hook_program(programs: Programs, settings: str, before: str = "") -> list[str]:
    """The hook as it is installed, with other settings or something done before."""
    library = f"{os.path.dirname(programs.directory)}/library"
    text = f"import sys; sys.path.append({library!r})\n{before}\n"
    text += f"from drainwise.htcondor.node.prepare_hook import main; main({settings!r})"
    return [PYTHON, "-I", "-S", "-c", text]


@ONE_LAYOUT
def test_a_wait_without_end_is_ended(node: Node, programs: Programs) -> None:
    """Standard input that is never closed: the hook gives up in time and with 0, else the job would wait for ever."""
    job = node.start("slot1_1", USER, NOW)
    hurry = "import drainwise.node.hook as hook; hook.TIME_LIMIT = 0.3"
    read_end, write_end = os.pipe()
    try:
        ran = run_as(USER, hook_program(programs, programs.settings, hurry), job.environment(), read_end)
    finally:
        os.close(read_end)
        os.close(write_end)
    assert ran.returncode == 0
    assert "given up" in one_line(ran)


@ONE_LAYOUT
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_descriptors(node: Node, programs: Programs, closed: str) -> None:
    """None of them makes the hook fail, and no file of ours is taken for one of them."""
    job = node.start("slot1_1", USER, NOW)
    command = ["/bin/sh", "-c", f'exec "$0" {closed}', f"{programs.directory}/prepare-hook"]
    ran = run_as(USER, command, job.environment(), job.stdin.encode())
    assert ran.returncode == 0
    assert contents(f"{job.scratch}/.jobfeatures")["allocated_cpu"] == "8\n"
    assert all(
        text.endswith("\n") and text.count("\n") == 1 for text in contents(f"{job.scratch}/.jobfeatures").values()
    )


@ONE_LAYOUT
def test_no_space_left(node: Node, programs: Programs) -> None:
    """HOSTILE 27: what cannot be written whole is not there at all, is not named, and the job runs."""
    job = node.start("slot1_1", USER, NOW)
    command = ["/usr/bin/prlimit", "--fsize=0", f"{programs.directory}/prepare-hook"]
    ran = run_as(USER, command, job.environment(), job.stdin.encode())
    assert ran.returncode == 0
    assert not os.path.exists(f"{job.scratch}/.jobfeatures")
    words = environment(ran).split(" ")
    assert f"JOBSTATUS={job.scratch}/.jobstatus" in words
    assert not [word for word in words if "JOBFEATURES" in word or "MACHINEFEATURES" in word]
    assert b".jobfeatures" in ran.stderr


@ONE_LAYOUT
def test_two_at_once(node: Node, programs: Programs) -> None:
    """HOSTILE 52: both end well and the directories are whole."""
    job = node.start("slot1_1", USER, NOW)
    running = [
        subprocess.Popen(
            [f"{programs.directory}/prepare-hook"],
            user=USER,
            group=USER,
            extra_groups=[],
            env=job.environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        for _ in range(4)
    ]
    answers = [hook.communicate(job.stdin.encode(), timeout=60)[0] for hook in running]
    assert {hook.returncode for hook in running} == {0}
    assert len(set(answers)) == 1
    assert len(contents(f"{job.scratch}/.jobfeatures")) == 15
    assert {name for name in os.listdir(job.scratch) if name.startswith("..")} == set()


@ONE_LAYOUT
def test_the_slots_own_values_are_not_believed_blindly(node: Node, programs: Programs) -> None:
    """HOSTILE 36: numbers out of range cost their key and are said."""
    job = node.start("slot1_1", USER, NOW)
    odd = {**machine_attributes("slot1_1", 8), "Cpus": -8, "Memory": 10**30, "TotalCpus": "1e309", "Disk": True}
    write(job.machine_ad, ad_text({**odd, "TotalCpus": 0}), USER)
    ran = programs.prepare(job)
    assert ran.returncode == 0
    assert set(contents(f"{job.scratch}/.jobfeatures")).isdisjoint({"allocated_cpu", "max_rss_bytes", "disk_limit_GB"})
    assert "total_cpu=0" in one_line(ran)


# ---- squatters ----


def squat(path: str, kind: str, elsewhere: str) -> None:
    """Put what transferred input could put in a directory's place."""
    if kind == "link to a directory":
        os.symlink(elsewhere, path)
    elif kind == "dangling link":
        os.symlink(f"{elsewhere}/none", path)
    elif kind == "file":
        write(path, "evil\n", USER)
    elif kind == "FIFO":
        os.mkfifo(path)
        os.chown(path, USER, USER)


@ONE_LAYOUT
@pytest.mark.parametrize("kind", ["link to a directory", "dangling link", "file", "FIFO"])
def test_what_stands_in_a_directorys_place_is_left_alone(node: Node, programs: Programs, kind: str) -> None:
    """HOSTILE 1, 5, 47: it is not followed, not named, and the other directories are made."""
    job, elsewhere = node.start("slot1_1", USER, NOW), f"{node.base}/elsewhere"
    make_directory(elsewhere, 0o755, USER)
    squat(f"{job.scratch}/.jobfeatures", kind, elsewhere)
    ran = programs.prepare(job)
    assert ran.returncode == 0
    assert ".jobfeatures" in one_line(ran)
    assert os.listdir(elsewhere) == []
    words = environment(ran).split(" ")
    assert f"MACHINEFEATURES={job.scratch}/.machinefeatures" in words
    assert not [word for word in words if word.partition("=")[0].endswith("JOBFEATURES")]


@ONE_LAYOUT
def test_a_directory_with_squatted_keys(node: Node, programs: Programs) -> None:
    """HOSTILE 47: links, FIFOs and directories under the names of keys are replaced, what they lead to is not."""
    job = node.start("slot1_1", USER, NOW)
    place, victim = f"{job.scratch}/.jobfeatures", f"{node.base}/victim"
    write(victim, "precious\n", USER)
    make_directory(place, 0o000, USER)
    os.symlink(victim, f"{place}/allocated_cpu")
    os.link(victim, f"{place}/job_id")
    os.mkfifo(f"{place}/hs06_job")
    make_directory(f"{place}/wall_limit_secs", 0o000, USER)
    ran = programs.prepare(job)
    assert (ran.returncode, ran.stderr) == (0, b"")
    found = contents(place)
    assert (found["allocated_cpu"], found["job_id"]) == ("8\n", f"{job.job_id}\n")
    assert found["wall_limit_secs"] == "86400\n"
    with open(victim, encoding="ascii") as stream:
        assert stream.read() == "precious\n"


@ONE_LAYOUT
@pytest.mark.parametrize("name", ["posix", "drainwise", "sitecustomize", "errno"])
def test_the_users_python_is_not_run(node: Node, programs: Programs, name: str) -> None:
    """HOSTILE 46: no module in the job's directory, on PYTHONPATH or PYTHONHOME is loaded, no program on PATH run."""
    job, evil = node.start("slot1_1", USER, NOW), f"{node.base}/evil"
    make_directory(evil, 0o755, USER)
    for place in (evil, job.scratch):
        write(f"{place}/{name}.py", f"open({node.base + '/evil/ran'!r}, 'w')\nraise SystemExit(3)\n", USER)
        write(f"{place}/python3", "#!/bin/sh\nexit 3\n", USER)
        os.chmod(f"{place}/python3", 0o755)
    ran = programs.prepare(
        job,
        PYTHONPATH=evil,
        PYTHONHOME=evil,
        PYTHONSTARTUP=f"{evil}/{name}.py",
        PYTHONINSPECT="1",
        PYTHONWARNINGS="error",
        PATH=evil,
        IFS="/",
        BASH_ENV=f"{evil}/{name}.py",
    )
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert not os.path.exists(f"{evil}/ran")
    assert "JOBFEATURES=" in environment(ran)
