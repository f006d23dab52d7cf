"""Record what a real Slurm answers, for the tests of parsers: one folder of files per version.

usage: PYTHONPATH=scripts python -m slurm_cluster.record RELEASE DIRECTORY     (as root)

The cluster is put into a situation with a job of every kind that a reader may meet; the same commands are then asked of
every version. What tells of the recording machine is replaced.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time
from collections.abc import Sequence

from real_daemons.site import USERS
from slurm_cluster.cluster import SlurmCluster
from slurm_cluster.layout import ACCOUNTS, Account, Qos
from slurm_cluster.record_hooks import hooks

REPORT = '{"drainwise":1,"job_start":1795268805,"used":6.5,"waste":{"drain":120.0,"kill":null},"by":"pilot"}'
NAMES = ("two\nlines", 'it\'s "quoted"; $(x) `y` \\', "Mül—lér|pipe,comma=é", '"]; X = 1; [', " blanks  and\ttab ")
_CONFIG = """\
Licenses=matlab:1
PartitionName=short Nodes=node1 MaxTime=5 State=UP
PartitionName=closed Nodes=node3 State=DOWN
"""
_QOS = (Qos("pilots", ("Priority=10", "Preempt=normal")), Qos("single", ("MaxJobsPerUser=1",)))
_FIELDS = "%A|%i|%u|%a|%q|%P|%C|%D|%N|%S|%e|%L|%l|%Q|%r|%j"
_SACCT = "JobID,JobIDRaw,User,Account,QOS,State,ExitCode,Start,End,Timelimit,NodeList,AllocCPUS,Comment,AdminComment"
_SSHARE = "Account,User,NormShares,RawUsage,EffectvUsage,LevelFS"

TEXTS: dict[str, Sequence[str]] = {
    "squeue.json": ("squeue", "--json"),
    "squeue-running.txt": ("squeue", "-h", "-t", "R", "-o", _FIELDS),
    "squeue-pending.txt": ("squeue", "-h", "-r", "-t", "PD", "-o", _FIELDS),
    "squeue-cores.txt": ("squeue", "-h", "-t", "R", "-o", "%a %u %C"),
    "scontrol-show-job.txt": ("scontrol", "-o", "show", "job"),
    "scontrol-show-node.txt": ("scontrol", "-o", "show", "node"),
    "scontrol-show-partition.txt": ("scontrol", "-o", "show", "partition"),
    "scontrol-show-config.txt": ("scontrol", "show", "config"),
    "scontrol-show-assoc_mgr.txt": ("scontrol", "-o", "show", "assoc_mgr", "flags=assoc"),
    "scontrol-show-hostnames.txt": ("scontrol", "show", "hostnames", "central,node[1-2,4],wn[098-101]"),
    "sinfo.json": ("sinfo", "--json"),
    "sshare.txt": ("sshare", "-a", "-n", "-P", "-o", _SSHARE),
    "sacct.txt": ("sacct", "-a", "-D", "-X", "-n", "-P", "-o", _SACCT),
    "sacctmgr-show-assoc.txt": ("sacctmgr", "-n", "-P", "show", "assoc", "format=Account,User,Share,GrpTRES,QOS"),
    "sacctmgr-show-qos.txt": ("sacctmgr", "-n", "-P", "show", "qos", "format=Name,Priority,Preempt,PreemptMode,Flags"),
}
SINCE_24_11: dict[str, Sequence[str]] = {
    "scontrol-show-job.json": ("scontrol", "show", "job", "--json"),
    "sshare.json": ("sshare", "-a", "--json"),
    "squeue-of-node1.json": ("squeue", "-w", "node1", "--json"),
}


class Situation:
    """The cluster as it is put up, and the jobs by what they stand for."""

    def __init__(self, cluster: SlurmCluster) -> None:
        self.cluster = cluster
        self.jobs: dict[str, int] = {}

    def job(self, name: str, user: str, *options: str, script: str = "exec sleep 3000") -> int:
        """Submit what is called `name`."""
        number = self.cluster.submit(script, user, [f"--job-name={name}", *options])
        self.jobs[name] = number
        return number

    def ended(self, *names: str) -> None:
        """Wait until these jobs have ended."""
        for name in names:
            self.cluster.wait_for(lambda: self.state(name) not in ("PENDING", "RUNNING", "COMPLETING"), 120, name)  # noqa: B023 - used at once

    def state(self, name: str) -> str:
        """State of a job of ours."""
        return self.cluster.job(self.jobs[name]).state

    def root(self, *argv: str) -> None:
        """A command of the administrator."""
        self.cluster.run(argv)


def put_up(site: Situation) -> None:
    """Jobs that run, wait for every common reason, and have ended in every common way."""
    site.root("sacctmgr", "-i", "modify", "account", "small", "set", "GrpTRES=cpu=1")
    site.job("timeout", "alice", "--time=1")
    site.job("failed", "bob", script="exit 3")
    site.job("completed", "bob", "--comment=done; |well|", script="true")
    site.job("pilot", "alice", "--cpus-per-task=4", "--qos=pilots", "--time=2:00:00", "--mem=6000")
    site.job("array", "alice", "--array=0-3%2")
    site.job("mixed", "bob", "--cpus-per-task=2", ":", "--nodes=2", "--ntasks-per-node=2")
    site.job("uneven", "alice", "--nodes=3", "--ntasks=5", "--mem-per-cpu=500")
    for name in NAMES:
        site.job(name, "bob", f"--comment={name}")
    site.job("license", "alice", "--licenses=matlab:1")
    site.job("small", "alice", "--account=small")
    site.job("single", "bob", "--qos=single")
    site.job("suspended", "bob")
    site.job("requeued", "alice")
    site.job("started again", "alice")
    site.job("cancelled", "alice")
    site.job("deaf", "bob", script="trap '' TERM; while :; do sleep 0.1; done")
    site.cluster.wait_for(lambda: site.state("deaf") == "RUNNING", 60, "the last of the running jobs")
    site.ended("failed", "completed")


def make_wait(site: Situation) -> None:
    """A waiting job for each common reason; the others are asked to change."""
    tomorrow = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(time.time() + 86400))
    reserve = ("ReservationName=later", f"StartTime={tomorrow}", "Duration=60", "Nodes=node2", "Users=bob")
    site.root("scontrol", "create", *reserve)
    site.root("scontrol", "update", "NodeName=node4", "State=DRAIN", "Reason=disk; |broken|")
    site.job("Resources", "bob", "--nodes=3", "--exclusive")
    site.job("Priority", "alice", "--nodes=3", "--exclusive", "--nice=90000")
    site.job("BeginTime", "alice", "--begin=now+1hour")
    site.job("Dependency", "alice", f"--dependency=afterok:{site.jobs['pilot']}")
    site.job("DependencyNeverSatisfied", "bob", f"--dependency=afterok:{site.jobs['failed']}")
    site.job("JobHeldUser", "alice", "--hold")
    site.job("JobHeldAdmin", "bob", "--hold")
    site.root("scontrol", "hold", str(site.jobs["JobHeldAdmin"]))
    site.job("PartitionTimeLimit", "bob", "--partition=short", "--time=10")
    site.job("PartitionDown", "bob", "--partition=closed")
    site.job("AssocGrpCpuLimit", "alice", "--account=small")
    site.job("QOSMaxJobsPerUserLimit", "bob", "--qos=single")
    site.job("Licenses", "alice", "--licenses=matlab:1")
    site.job("ReqNodeNotAvail", "bob", "--nodelist=node4", "--exclusive")
    site.job("Reservation", "bob", "--reservation=later")


def report_and_end(site: Situation) -> None:
    """Reports on jobs that then run on under a shorter lease, are requeued, are cancelled."""
    for name in ("pilot", "requeued", "started again", "cancelled"):
        site.root("scontrol", "update", f"JobId={site.jobs[name]}", f"AdminComment={REPORT}")
    site.root("scontrol", "update", f"JobId={site.jobs['array']}_0", f"AdminComment={REPORT}")
    for name in ("pilot", "requeued"):
        site.root("scontrol", "update", f"JobId={site.jobs[name]}", f"EndTime=uts{int(time.time()) + 1500}")
    again = str(site.jobs["started again"])
    site.root("scontrol", "requeue", again)
    site.cluster.wait_for(lambda: site.state("started again") == "PENDING", 30, "the job to wait again")
    site.root("scontrol", "update", f"JobId={again}", "StartTime=now")
    site.root("scancel", str(site.jobs["cancelled"]))
    site.root("scontrol", "suspend", str(site.jobs["suspended"]))
    site.ended("timeout", "cancelled", "suspended")
    site.cluster.wait_for(lambda: min(usage(site)) > 60, 130, "usage, which is computed once a minute")
    site.root("scontrol", "requeue", str(site.jobs["requeued"]))
    site.cluster.wait_for(lambda: site.state("requeued") == "PENDING", 30, "the job to wait again")


def usage(site: Situation) -> list[int]:
    """Core-seconds that each user's association has used, the administrator's aside."""
    lines = site.cluster.run(["sshare", "-a", "-n", "-P", "-o", "User,RawUsage"]).stdout.splitlines()
    return [int(used) for user, used in (line.strip().split("|") for line in lines) if user in USERS]


def answers(site: Situation) -> dict[str, str]:
    """File name → what each command prints; the last job is ending meanwhile."""
    commands = {**TEXTS, **(SINCE_24_11 if site.cluster.version >= (24, 11, 0) else {})}
    site.root("scancel", str(site.jobs["deaf"]))
    found = {name: site.cluster.run(argv).stdout for name, argv in commands.items()}
    epoch = {"SLURM_TIME_FORMAT": "%s"}
    for name in ("squeue-running.txt", "scontrol-show-job.txt"):
        found[name.replace(".txt", "-epoch.txt")] = site.cluster.run(TEXTS[name], environment=epoch).stdout
    found["scontrol-listpids.txt"] = site.cluster.run(["scontrol", "listpids"], node="node1").stdout
    found["jobs.json"] = json.dumps(site.jobs, indent=1, ensure_ascii=False) + "\n"
    return found


def refusals(site: Situation) -> str:
    """What is said when something is wrong: a list of commands with code, output and errors, as JSON."""
    pilot = site.jobs["pilot"]
    wrong: list[tuple[str, list[str]]] = [
        ("root", ["scontrol", "update", "JobId=99999", "AdminComment=x"]),
        ("root", ["scontrol", "update", f"JobId={site.jobs['failed']}", "AdminComment=x"]),
        ("alice", ["scontrol", "update", f"JobId={pilot}", "AdminComment=x"]),
        ("bob", ["scontrol", "update", f"JobId={pilot}", "EndTime=now+60"]),
        ("root", ["scontrol", "update", f"JobId={pilot}", f"EndTime={int(time.time()) + 600}"]),
        ("root", ["scontrol", "update", f"JobId={pilot}", f"EndTime=uts{int(time.time()) - 600}"]),
        ("root", ["scontrol", "requeue", f"{site.jobs['mixed'] + 1}"]),
        ("root", ["scancel", "99999"]),
        ("root", ["squeue", "-O", "AdminComment"]),
        ("root", ["squeue", "-h", "-j", "99999"]),
        ("root", ["scontrol", "show", "job", "99999"]),
    ]
    said = [_said(site, user, argv) for user, argv in wrong]
    site.cluster.kill_daemon("slurmctld", signal.SIGTERM)
    asked = ["squeue -h", "squeue --json", "sinfo --json", "sshare -n -P", "scontrol ping", "scontrol -o show job"]
    for line in [*asked, f"scontrol update JobId={pilot} AdminComment=x"]:
        said.append({"slurmctld": "dead", **_said(site, "root", line.split())})
    return json.dumps(said, indent=1) + "\n"


def _said(site: Situation, user: str, argv: list[str]) -> dict[str, object]:
    result = site.cluster.run(argv, user=user, check=False)
    return {"user": user, "argv": argv, "code": result.returncode, "stdout": result.stdout, "stderr": result.stderr}


def scrubbed(text: str) -> str:
    """Without the name and kernel of this machine."""
    machine = os.uname()
    text = text.replace(machine.release, "6.1.0").replace(machine.version, "#1 SMP")
    return re.sub(rf"\b{re.escape(machine.nodename)}\b", "host", text)


def main(arguments: list[str]) -> int:
    """`record.py RELEASE DIRECTORY`."""
    if len(arguments) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    release, directory = arguments
    accounts = (*ACCOUNTS, Account("small", 1, ("alice",)))
    with SlurmCluster(nodes=4, cpus=12, release=release, config=_CONFIG, accounts=accounts, qos=_QOS) as cluster:
        files = {"hooks.json": hooks(cluster)}
        site = Situation(cluster)
        put_up(site)
        make_wait(site)
        report_and_end(site)
        files |= answers(site)
        files["refusals.json"] = refusals(site)
    os.makedirs(directory, exist_ok=True)
    for name, text in files.items():
        with open(os.path.join(directory, name), "w", encoding="utf-8", newline="") as file:
            file.write(scrubbed(text))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
