"""An execute node made up of plain directories: $(EXECUTE) with jobs as HTCondor lays them out, without any daemon.

For the tests of what runs on a node and for the measurements: hooks and cron run there as real processes of real users.
Standard library only.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from drainwise.slurm.node.job_tree import own_mounts
from real_daemons.waiting import wait_for

PYTHON = "/usr/bin/python3"
HOST = "node1.pool.test"
Ran = subprocess.CompletedProcess[bytes]
PROGRAMS = {"prepare-hook": "prepare_hook", "update-hook": "update_hook", "pilot-cron": "startd_cron"}

_PROGRAM = """\
#!{python} -IS
import gc
import sys

gc.disable()
sys.path.append({library!r})
from drainwise.htcondor.node.{module} import main

sys.exit(main({argument}))
"""

PILOT_AD = """\
LAST_JOB_START = {now}
FIRST_EXP_JOB_END = {first}
LAST_EXP_JOB_END = {last}
LAST_MAX_JOB_END = {last_max}
USED_FRACTION1k = 768
ADD_UNCOM_TIME1k = 46080
ADD_FINAL_EXP_WASTE1k = 7680000
PRIORITY_FACTOR = 3
CAN_POSTPONE_LAST_JOB = True
"""


def pilot_ad(now: int) -> str:
    """A sound report of a pilot whose payloads started at `now` (UNIX seconds)."""
    return PILOT_AD.format(now=now, first=now + 7000, last=now + 13000, last_max=now + 41000)


@contextlib.contextmanager
def public_directory(below: str | None = None) -> Iterator[str]:
    """A temporary directory that other users may enter."""
    path = tempfile.mkdtemp(prefix="drainwise-", dir=below)
    try:
        os.chmod(path, 0o755)  # noqa: S103 - the job's user and the daemon's go there
        yield path
    finally:
        for place in own_mounts(os.path.realpath(path)):  # what Slurm's prolog mounts for a job
            subprocess.run(["umount", "--lazy", place], check=True)
        shutil.rmtree(path, ignore_errors=True)


def run_as(
    uid: int, argv: list[str], environment: Mapping[str, str] | None = None, stdin: bytes | int = b"", cwd: str = "/"
) -> Ran:
    """Run a program as `uid`, as a child of this process, with this environment alone; `stdin` is content or a file."""
    content, stream = (stdin, None) if isinstance(stdin, bytes) else (None, stdin)
    return subprocess.run(
        argv,
        user=uid,
        group=uid,
        extra_groups=[],
        env=dict(environment or {}),
        capture_output=True,
        cwd=cwd,
        timeout=60,
        check=False,
        input=content,
        stdin=stream,
    )


@dataclass(frozen=True)
class Programs:
    """The three programs as a site has them installed, with the path of the node's settings."""

    directory: str
    settings: str

    def run(self, name: str, argv: list[str], uid: int, environment: Mapping[str, str], stdin: bytes, cwd: str) -> Ran:
        """Run one of them as `uid`, as a child of this process."""
        return run_as(uid, [f"{self.directory}/{name}", *argv], environment, stdin, cwd)

    def prepare(self, job: Job, stdin: str | None = None, **more: str) -> Ran:
        """The prepare hook, as the job's user; `stdin` instead of the job's ad, `more` variables."""
        given = (job.stdin if stdin is None else stdin).encode("latin-1")
        return self.run("prepare-hook", [], job.uid, {**job.environment(), **more}, given, job.scratch)

    def update(self, job: Job, **more: str) -> Ran:
        """The update hook, as the job's user."""
        return self.run("update-hook", [], job.uid, {**job.environment(), **more}, b"", job.scratch)

    def cron(self, node: Node) -> Ran:
        """One round of the cron, as HTCondor's own user."""
        return self.run("pilot-cron", node.cron_arguments(self.settings), node.daemon, {}, b"", "/")


def install_library(package: str, library: str) -> None:
    """Put the package there, byte-compiled."""
    shutil.copytree(package, f"{library}/drainwise", ignore=shutil.ignore_patterns("__pycache__"))
    subprocess.run([PYTHON, "-m", "compileall", "-q", library], check=True)


def install(package: str, base: str, settings: str, installed: str = "") -> Programs:
    """Put the package and the three programs below `base`, and the node's settings.

    installed: where `install_library` has put the package already; a link leads there.
    """
    library, directory, file = f"{base}/library", f"{base}/libexec", f"{base}/node.conf"
    if installed:
        os.symlink(installed, library)
    else:
        install_library(package, library)
    os.mkdir(directory)
    for name, module in PROGRAMS.items():
        argument = "sys.argv[1:]" if name == "pilot-cron" else repr(file)
        with open(f"{directory}/{name}", "w", encoding="utf-8") as stream:
            stream.write(_PROGRAM.format(python=PYTHON, library=library, module=module, argument=argument))
        os.chmod(f"{directory}/{name}", 0o755)  # noqa: S103 - the jobs' users run it
    for path, text in ((file, settings), (f"{directory}/hooks.conf", "")):
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(text)
    return Programs(directory, file)


def ad_text(attributes: Mapping[str, object]) -> str:
    """A ClassAd in its long form: sorted lines `Name = value`; strings are quoted, other values stand as they are."""
    lines = []
    for name, value in sorted(attributes.items(), key=lambda pair: pair[0].lower()):
        shown = '"' + value.replace('"', '\\"') + '"' if isinstance(value, str) else str(value)
        lines.append(f"{name} = {shown}\n")
    return "".join(lines)


def machine_attributes(slot: str, cores: int) -> dict[str, object]:
    """What the starter says of a slot, padded to the some 170 attributes and 6 kB of a real ad."""
    attributes: dict[str, object] = {
        "Activity": "Idle",
        "Cpus": cores,
        "DetectedCpus": 64,
        "DetectedPhysicalCpus": 32,
        "Disk": 20_000_000,
        "Memory": 2048 * cores,
        "MyType": "Machine",
        "Name": f"{slot}@{HOST}",
        "State": "Claimed",
        "TotalCpus": 24.0,
    }
    filler = {f"Attribute{number:03}": "x" * 18 for number in range(160)}
    return {**filler, **attributes}


def job_attributes(job_id: str, started: int, more: Mapping[str, object]) -> dict[str, object]:
    """What the starter says of a job."""
    attributes: dict[str, object] = {
        "Cmd": "/bin/sleep",
        "GlobalJobId": job_id,
        "JobCurrentStartDate": started,
        "MyType": "Job",
        "Owner": "alice",
    }
    filler = {f"Attribute{number:03}": "x" * 18 for number in range(80)}
    return {**filler, **attributes, **more}


def contents(directory: str) -> dict[str, str]:
    """Return what stands in each file of a features directory."""
    found = {}
    for name in os.listdir(directory):
        with open(f"{directory}/{name}", encoding="ascii") as stream:
            found[name] = stream.read()
    return found


def write(path: str, text: str, uid: int) -> None:
    """A file of mode 0644 that belongs to `uid`, put in place by rename."""
    with open(f"{path}.tmp", "w", encoding="latin-1", newline="\n") as stream:
        stream.write(text)
    os.chmod(f"{path}.tmp", 0o644)
    os.chown(f"{path}.tmp", uid, uid)
    os.rename(f"{path}.tmp", path)


def make_directory(path: str, mode: int, uid: int) -> None:
    """A directory of this mode that belongs to `uid`."""
    os.mkdir(path)
    os.chmod(path, mode)
    os.chown(path, uid, uid)


def wait_for_command_line(pid: int) -> None:
    """Wait until a new process shows its command line: the kernel fills it in a moment after the exec."""
    wait_for(lambda: Path(f"/proc/{pid}/cmdline").read_bytes(), what=f"the command line of process {pid}")


@dataclass(frozen=True)
class Job:
    """One job on the node: `scratch` is its directory, `machine_ad` and `update_ad` where its slot's ads lie."""

    uid: int
    slot: str
    cores: int
    job_id: str
    started: int
    scratch: str
    machine_ad: str
    update_ad: str
    stdin: str

    def slot_attributes(self, **changes: object) -> dict[str, object]:
        """The slot's ad while the job runs."""
        running = {"Activity": "Busy", "GlobalJobId": self.job_id, "JobStart": self.started}
        return {**machine_attributes(self.slot, self.cores), **running, **changes}

    def environment(self) -> dict[str, str]:
        """What the starter gives a hook."""
        return {
            "_CONDOR_SCRATCH_DIR": self.scratch,
            "_CONDOR_MACHINE_AD": self.machine_ad,
            "_CONDOR_JOB_AD": f"{self.scratch}/.job.ad",
            "_CONDOR_SLOT": self.slot,
            "PATH": "/usr/bin:/bin",
        }


@dataclass
class Node:
    """$(EXECUTE) below `base`, in the layout before or since 25.4; this process plays the startd.

    `daemon` is the uid of HTCondor's own user. Needs root. `close` ends the posing starters.
    """

    base: str
    since_25_4: bool
    daemon: int
    _starters: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def __post_init__(self) -> None:
        make_directory(self.execute, 0o755, self.daemon)
        make_directory(f"{self.base}/log", 0o755, self.daemon)

    @property
    def execute(self) -> str:
        """Path of $(EXECUTE)."""
        return f"{self.base}/execute"

    @property
    def state(self) -> str:
        """Path of the cron's state file."""
        return f"{self.base}/log/.drainwise-cron"

    def close(self) -> None:
        """End the posing starters."""
        for starter in self._starters:
            starter.kill()
            starter.wait()
            if starter.stdin is not None:
                starter.stdin.close()
        self._starters.clear()

    def pose_starter(self, slot: str) -> int:
        """A child of this process with a starter's command line; returns its pid."""
        line = ["condor_starter", "-c", "read wait", "sh", "-f", "-local-name", "slot_type_1", "-a", slot, "central"]
        starter = subprocess.Popen(line, executable="/bin/sh", stdin=subprocess.PIPE)
        self._starters.append(starter)
        wait_for_command_line(starter.pid)
        return starter.pid

    def start(
        self,
        slot: str,
        uid: int,
        started: int,
        cores: int = 8,
        job_id: str | None = None,
        pid: int | None = None,
        **job_ad: object,
    ) -> Job:
        """Lay out a job as the starter does before it calls the prepare hook; `job_ad` are more attributes of the job.

        A starter is posed unless its `pid` is given.
        """
        pid = self.pose_starter(slot) if pid is None else pid
        job_id = job_id or f"central.pool.test#{pid}.0#{started}"
        top = f"{self.execute}/dir_{pid}"
        if self.since_25_4:
            make_directory(top, 0o755, self.daemon)
            make_directory(f"{top}/htcondor", 0o755, self.daemon)
            make_directory(f"{top}/scratch", 0o700, uid)
        else:
            make_directory(top, 0o700, uid)
        scratch = f"{top}/scratch" if self.since_25_4 else top
        update_ad = f"{top}/htcondor/.update.ad" if self.since_25_4 else f"{top}/.update.ad"
        stdin = ad_text(job_attributes(job_id, started, job_ad))
        job = Job(uid, slot, cores, job_id, started, scratch, f"{scratch}/.machine.ad", update_ad, stdin)
        ads_owner = uid if self.since_25_4 else self.daemon
        write(job.machine_ad, ad_text(machine_attributes(slot, cores)), ads_owner)
        write(f"{scratch}/.job.ad", stdin, ads_owner)
        self.refresh(job)
        return job

    def refresh(self, job: Job, **changes: object) -> None:
        """Write the slot's ad anew, as the startd does, with `changes`."""
        write(job.update_ad, ad_text(job.slot_attributes(**changes)), self.daemon if self.since_25_4 else job.uid)

    def cron_arguments(self, settings: str) -> list[str]:
        """The arguments of the cron."""
        return ["--execute", self.execute, "--state", self.state, "--settings", settings]
