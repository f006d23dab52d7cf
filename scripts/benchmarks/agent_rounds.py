"""A program: rounds of Slurm's node agent inside a resident process, beside the bare start of the interpreter.

usage: python3 -IS agent_rounds.py LIBRARY RUNTIME_DIR RUNS

Prints JSON: medians in seconds of the interpreter's start, of a round in which every job's report is new, of one in
which none is, and of the start and end of a command that does nothing. slurmctld's answer is there at once, in the form
of the real one: what Slurm and its commands take is not the agent's, and is measured on a real cluster.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from collections.abc import Callable

library, runtime_dir, runs = sys.argv[1], sys.argv[2], int(sys.argv[3])
sys.path.append(library)

from drainwise.common.bounded_command import MOST_OUTPUT, Answer, Running  # noqa: E402
from drainwise.common.service import Faults  # noqa: E402
from drainwise.node.settings import NodeSettings, SettingsFile  # noqa: E402
from drainwise.slurm.jobs.commands import SlurmCommands  # noqa: E402
from drainwise.slurm.node_agent.round import NodeAgent  # noqa: E402

JOB = (
    "JobId={0} JobName=wrap UserId=alice({1}) GroupId=alice({1}) MCS_label=N/A Priority=33333 Nice=0 Account=atlas "
    "QOS=normal JobState=RUNNING Reason=None Dependency=(null) Requeue=1 Restarts=0 BatchFlag=1 Reboot=0 ExitCode=0:0 "
    "RunTime=00:00:04 TimeLimit=02:00:00 TimeMin=N/A SubmitTime={2} EligibleTime={2} AccrueTime={2} StartTime={2} "
    "EndTime={3} Deadline=N/A SuspendTime=None SecsPreSuspend=0 LastSchedEval={2} Scheduler=Backfill Partition=main "
    "AllocNode:Sid=localhost:0 ReqNodeList=(null) ExcNodeList=(null) NodeList=n1 BatchHost=n1 NumNodes=1 NumCPUs=8 "
    "NumTasks=1 CPUs/Task=8 ReqB:S:C:T=0:0:*:* ReqTRES=cpu=8,mem=500M,node=1,billing=8 AllocTRES=cpu=8,mem=500M,node=1,"
    "billing=8 Socks/Node=* NtasksPerN:B:S:C=0:0:*:* CoreSpec=* MinCPUsNode=8 MinMemoryNode=500M MinTmpDiskNode=0 "
    "Features=(null) DelayBoot=00:00:00 OverSubscribe=OK Contiguous=0 Licenses=(null) Network=(null) Command=(null) "
    "WorkDir=/home/alice{4} StdErr=/home/alice/slurm.out StdIn=/dev/null StdOut=/home/alice/slurm.out "
    "TresPerTask=cpu=8 \n"
)


class _Ready(Running):
    """An answer that is there."""

    def __init__(self, text: str) -> None:
        self._text = text

    def answer(self) -> Answer:
        return Answer(0, self._text.encode("ascii"))


class _Slurmctld(SlurmCommands):
    """Answers at once."""

    def __init__(self, uid: int, start: int, end: int) -> None:
        super().__init__()
        self._facts = (uid, start, end)
        self.comments: dict[str, str] = {}

    def start(
        self,
        *_: str,
        seconds: float | None = None,  # noqa: ARG002
        stdin: str = "",
        most: int = MOST_OUTPUT,  # noqa: ARG002
    ) -> Running:
        printed = []
        for line in stdin.splitlines():
            words = line.split(" ")
            if words[0] == "update":
                self.comments[words[1][6:]] = f" {words[2]} "
            printed.append(f"scontrol: {line}\n")
            if words[:2] == ["show", "job"]:
                printed.append(JOB.format(words[2], *self._facts, self.comments.get(words[2], "")))
            elif words[:2] == ["show", "node"]:
                printed.append(f"NodeName={words[2]} CPUAlloc=8 CPUEfctv=512 CPUTot=512 \n")
            elif words[:2] == ["show", "hostnames"]:
                printed.append(f"{words[2]}\n")
        return _Ready("".join(printed))


def seconds(step: Callable[[], object]) -> float:
    """How long one step takes."""
    begin = time.perf_counter()
    step()
    return time.perf_counter() - begin


def interpreter() -> None:
    """The bare start of the interpreter, to its end."""
    pid = os.posix_spawn(sys.executable, [sys.executable, "-I", "-S", "-c", "pass"], {})
    os.waitpid(pid, 0)


def main() -> None:
    """Measure in turn; what each round takes depends on what else the machine does."""
    [node] = [name for name in os.listdir(runtime_dir) if name.isalnum()]
    first = next(name for name in os.listdir(f"{runtime_dir}/{node}") if name.isdigit())
    with open(f"{runtime_dir}/{node}/{first}/.jobfeatures/jobstart_secs", encoding="ascii") as stream:
        start = int(stream.read())
    uid = os.stat(f"{runtime_dir}/{node}/{first}/.jobstatus").st_uid
    said: list[str] = []
    slurmctld = _Slurmctld(uid, start, start + 7200)
    settings = NodeSettings({"runtime_dir": runtime_dir, "shutdown_file": f"{runtime_dir}/none"})
    agent = NodeAgent(SettingsFile("", settings), slurmctld, Faults(said.append))
    now = int(time.time())

    def report(turn: int) -> None:
        for job in filter(str.isdigit, os.listdir(f"{runtime_dir}/{node}")):
            with open(f"{runtime_dir}/{node}/{job}/.jobstatus/used_CPU", "w", encoding="ascii") as stream:
                stream.write(f"{turn % 7 + 1}\n")

    def a_round() -> None:
        agent.round(now)

    def command() -> None:
        SlurmCommands("/bin", 5.0).start("true", stdin="x" * 4096).answer()

    spent: dict[str, list[float]] = {"interpreter": [], "all": [], "nothing": [], "command": []}
    for turn in range(runs + 2):
        report(turn)
        once = {"interpreter": seconds(interpreter), "all": seconds(a_round)}
        a_round()
        once["nothing"], once["command"] = seconds(a_round), seconds(command)
        if turn >= 2:
            for name, value in once.items():
                spent[name].append(value)
    if said:
        sys.exit(f"the agent complained: {said[0]}")
    print(json.dumps({name: statistics.median(values) for name, values in spent.items()}))


main()
