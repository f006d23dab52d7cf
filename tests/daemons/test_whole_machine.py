"""What whole machines promise to the tests built on them: systemd, the units of Debian's packages, and no trace."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import whole_machine
from real_daemons import obtain, running_sites
from real_daemons.traces import host_state
from real_daemons.waiting import wait_for
from whole_machine import CommandError, DaemonsError, RootUnavailableError, WholeMachines
from whole_machine.recipe import recipe_of

SCRIPTS = str(Path(whole_machine.__file__).parents[1])
SLURM, CONDOR = ("slurmctld", "slurmd"), ("condor",)
SLURM_CONF = """\
ClusterName=test
SlurmctldHost=central
SlurmUser=slurm
StateSaveLocation=/var/lib/slurm/slurmctld
SlurmdSpoolDir=/var/lib/slurm/slurmd
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/linux
MpiDefault=none
SchedulerParameters=batch_sched_delay=0
NodeName=central,node1 CPUs=2 State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES
"""
MODULES, PORTS, ADMINISTRATION, CLOCK = (1 << number for number in (16, 17, 21, 25))  # linux/capability.h
CONDOR_CONF = """\
use ROLE : CentralManager
use ROLE : Submit
use ROLE : Execute
CONDOR_HOST = central.site.test
ENABLE_IPV6 = False
RUNBENCHMARKS = 0
SCHEDD_INTERVAL = 5
NEGOTIATOR_INTERVAL = 5
NEGOTIATOR_CYCLE_DELAY = 2
UPDATE_INTERVAL = 3
"""
CONDOR_JOB = """\
executable = /usr/bin/id
arguments = -un
transfer_executable = False
output = out
log = log
queue
"""
KILLED = f"""
import sys
sys.path.insert(0, {SCRIPTS!r})
from whole_machine import WholeMachines
with WholeMachines(packages={SLURM!r}) as site:
    print(site.control_group, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(scope="module")
def site() -> Iterator[WholeMachines]:
    """Two machines of trixie with Slurm on their disks."""
    with WholeMachines("trixie", SLURM, nodes=1) as running:
        yield running


def is_there(group: str) -> bool:
    """Whether the host has this control group."""
    look = ["unshare", "--mount", "sh", "-ec", "mount -t cgroup2 cgroup2 /mnt; ls /mnt"]
    return group in subprocess.run(look, capture_output=True, text=True, check=True).stdout.split()


def processes_in(group: str) -> list[str]:
    """Those of this machine."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            if f"0::/{group}/" in Path(f"/proc/{name}/cgroup").read_text():
                found.append(name)
        except OSError:  # it has ended
            continue
    return found


# ---- one machine ----


def test_each_machine_is_one_of_its_own_with_systemd_as_process_1(site: WholeMachines) -> None:
    """All of whose units have come up."""
    seen = []
    for name in site.machines:
        said = site.run(["cat", "/proc/1/comm", "/proc/sys/kernel/hostname", "/etc/machine-id"], node=name).stdout
        seen.append(said.split())
        assert site.systemctl("is-system-running", node=name).stdout == "running\n"
        assert site.systemctl("--version", node=name).stdout.startswith("systemd 257 ")
    assert [words[:2] for words in seen] == [["systemd", "central"], ["systemd", "node1"]]
    assert len({words[2] for words in seen}) == 2


def test_a_unit_runs_as_its_user_below_its_limits_and_the_journal_keeps_what_it_says(site: WholeMachines) -> None:
    command = "id -un; hostname; ls -A /tmp; touch /usr/mark || echo refused; cut -d: -f3 /proc/self/cgroup | tail -n 1"
    limits = "User=bob\nProtectSystem=strict\nPrivateTmp=yes\nPrivateDevices=yes\nSlice=own.slice\n"
    unit = f"[Service]\nType=oneshot\n{limits}ExecStart=/bin/sh -c '{command}'\n"
    site.write("/etc/systemd/system/note.service", unit, "node1")
    site.run(["touch", "/tmp/mark"], node="node1")
    site.systemctl("daemon-reload", node="node1")
    site.systemctl("start", "note", node="node1")
    words = ["journalctl", "--unit=note", "--output=cat", "--identifier=sh"]
    site.run(["journalctl", "--sync"], node="node1")
    *said, refusal, refused, group = site.run(words, node="node1").stdout.splitlines()
    assert (said, refused, group) == (["bob", "node1"], "refused", "/own.slice/note.service")
    assert "Read-only file system" in refusal


def test_a_machine_comes_back_from_a_power_cut_with_its_disk(site: WholeMachines) -> None:
    """What is enabled starts again, what was in memory is gone, the other machine stays up."""
    unit = "[Service]\nExecStart=/bin/sleep infinity\n[Install]\nWantedBy=multi-user.target\n"
    site.write("/etc/systemd/system/stays.service", unit)
    site.systemctl("enable", "--now", "stays")
    site.run(["touch", "/srv/disk", "/run/memory"])
    other = site.first_process("node1")
    site.cut_power("central")
    with pytest.raises(CommandError):
        site.run(["true"])
    site.boot("central")
    assert site.systemctl("is-active", "stays").stdout == "active\n"
    assert os.path.exists(site.path("/srv/disk"))
    assert not os.path.exists(site.path("/run/memory"))
    assert site.first_process("node1") == other


def test_a_machine_can_change_neither_settings_nor_clock_modules_and_ports_of_the_host(site: WholeMachines) -> None:
    """Tried by what would change nothing, and by what processes may."""
    for file in ("/proc/sys/vm/swappiness", "/sys/kernel/mm/transparent_hugepage/defrag"):
        same = f'value=$(sed \'s/.*\\[\\(.*\\)\\].*/\\1/\' {file}) && [ "$value" ] && ! (echo "$value" >{file})'
        site.run(["sh", "-ec", same])
    for status in ("/proc/self/status", "/proc/1/status"):
        effective = int(re.findall(r"CapEff:\s*(\w+)", site.run(["cat", status]).stdout)[0], 16)
        assert effective & ADMINISTRATION
        assert not effective & (MODULES | PORTS | CLOCK)


def test_home_is_one_place_for_all_machines(site: WholeMachines) -> None:
    site.run(["sh", "-c", "hostname >from"], user="alice", node="node1")
    assert site.run(["cat", "from"], user="alice").stdout == "node1\n"


def test_what_is_copied_or_written_is_on_one_machine_as_its_owners(site: WholeMachines, tmp_path: Path) -> None:
    (tmp_path / "program").write_text("#!/bin/sh\necho hello\n")
    (tmp_path / "program").chmod(0o700)
    site.copy_in(str(tmp_path), "/opt/copied", "alice", "node1")
    site.write("/opt/written/note", "text\n", "node1", 0o600, "bob")
    assert site.run(["/opt/copied/program"], user="alice", node="node1").stdout == "hello\n"
    assert site.run(["cat", "/opt/written/note"], user="bob", node="node1").stdout == "text\n"
    assert site.run(["cat", "/opt/written/note"], user="alice", node="node1", check=False).returncode != 0
    assert site.run(["ls", "/opt"]).stdout == ""


def test_a_machine_that_does_not_boot_says_why(site: WholeMachines) -> None:
    disk = f"{site.root}/srv/machines/node1/upper"
    site.cut_power("node1")
    for refused in (site.cut_power, site.first_process, lambda name: site.write("/etc/note", "", name)):
        with pytest.raises(DaemonsError, match="node1 is off"):
            refused("node1")
    os.rename(disk, f"{disk}.away")
    try:
        with pytest.raises(
            DaemonsError, match=r"(?s)node1 does not boot.*--- node1\nmount: /srv/machines/node1/root: "
        ):
            site.boot("node1")
    finally:
        os.rename(f"{disk}.away", disk)
        site.boot("node1")
    with pytest.raises(DaemonsError, match="node1 is on"):
        site.boot("node1")


# ---- the units of Debian's packages ----


def test_slurms_own_units_run_a_users_job_on_two_machines(site: WholeMachines) -> None:
    for name in site.machines:
        site.write("/etc/slurm/slurm.conf", SLURM_CONF, name)
        site.write("/etc/slurm/cgroup.conf", "CgroupPlugin=disabled\n", name)
    site.systemctl("start", "munge", "slurmctld", "slurmd")
    site.systemctl("start", "munge", "slurmd", node="node1")
    script = "#!/bin/sh\nid -un\nsrun --ntasks-per-node=1 hostname | sort\n"
    job = site.run(["sbatch", "--parsable", "--nodes=2"], user="alice", stdin=script).stdout.strip()
    site.wait_for(lambda: not site.run(["squeue", "--noheader"]).stdout, 30, "the job's end")
    assert site.run(["cat", f"slurm-{job}.out"], user="alice").stdout.split() == ["alice", "central", "node1"]
    for name, unit in (("central", "slurmctld"), ("node1", "slurmd")):
        assert site.systemctl("is-active", unit, node=name).stdout == "active\n"
        process = site.systemctl("show", "--property=MainPID", "--value", unit, node=name).stdout.strip()
        group = Path(site.path(f"/proc/{process}/cgroup", name)).read_text()
        assert f"/system.slice/{unit}.service" in group


def test_htcondors_own_unit_runs_a_users_job() -> None:
    """On the newest system, sid."""
    try:
        obtain(recipe_of("sid", CONDOR))
    except RootUnavailableError as error:
        pytest.skip(f"no root file system of sid: {error}")
    with WholeMachines("sid", CONDOR) as site:
        assert site.systemctl("is-system-running").stdout == "running\n"
        site.write("/etc/condor/config.d/10-pool", CONDOR_CONF)
        site.systemctl("start", "condor")
        ready = ["condor_status", "-schedd", "-autoformat", "Name"]
        site.wait_for(lambda: "central" in site.run(ready, check=False).stdout, 30, "the schedd")
        site.run(["condor_submit", "-"], user="alice", stdin=CONDOR_JOB)
        site.run(["condor_wait", "-wait", "90", "log"], user="alice", timeout=100)
        assert site.run(["cat", "out"], user="alice").stdout == "alice\n"
        assert site.systemctl("is-active", "condor").stdout == "active\n"


# ---- nothing stays ----


def test_nothing_is_left_of_machines_that_have_ended() -> None:
    """Neither process nor control group, mount, user or file."""
    before = host_state(), running_sites()
    with WholeMachines("trixie", SLURM) as site:
        group = site.control_group
        assert is_there(group)
        assert len(processes_in(group)) > 3
        with pytest.raises(CommandError, match="no-such-unit"):
            site.systemctl("start", "no-such-unit")
    assert (host_state(), running_sites()) == before
    assert not is_there(group)
    assert not processes_in(group)
    with pytest.raises(DaemonsError, match="the WholeMachines is not running"):
        site.systemctl("status")


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGINT])
def test_machines_do_not_outlive_a_program_that_is_killed(ending: signal.Signals) -> None:
    before = host_state()
    with subprocess.Popen(
        [sys.executable, "-c", KILLED], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as owner:
        assert owner.stdout is not None
        group = owner.stdout.readline().strip()
        assert len(processes_in(group)) > 3
        owner.send_signal(ending)
        assert owner.wait(20) == -ending
    wait_for(lambda: not is_there(group), 10, "the end of the control group")
    assert not processes_in(group)
    assert host_state() == before


def test_an_unknown_release_is_refused_before_anything_starts() -> None:
    with pytest.raises(DaemonsError, match="unknown release 'slink'; known: trixie, sid"):
        WholeMachines("slink")
