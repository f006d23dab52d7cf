"""Find the daemons of batch systems and of drainwise that run on this machine, with their age."""

from __future__ import annotations

import os
from collections.abc import Iterator

from drainwise.common.processes import read_proc
from drainwise.doctor.facts import RunningProcess

_DAEMONS = {
    *("condor_master", "condor_startd", "condor_schedd", "condor_collector", "condor_negotiator"),
    *("slurmd", "slurmctld", "slurmdbd"),
}
_LONGEST_COMM = 15
AGENT, NODE_AGENT, SERVER = "drainwise-agent", "drainwise-node-agent", "drainwise-features"
_OURS = {AGENT: (b"reclaim", b"--loop"), SERVER: (b"features", b"serve")}


def running_processes(proc: str = "/proc") -> Iterator[RunningProcess]:
    """Look at each process of this machine that this user sees; children of a daemon with its name count once.

    proc: where the kernel shows them.
    """
    now = float(read_proc(f"{proc}/uptime").split()[0])
    tick = os.sysconf("SC_CLK_TCK")
    oldest: dict[str, RunningProcess] = {}
    for number in filter(str.isdigit, os.listdir(proc)):
        try:
            name = name_of(read_proc(f"{proc}/{number}/comm"), read_proc(f"{proc}/{number}/cmdline", 1 << 16))
            if not name:
                continue
            # Behind the name, which may hold anything: the state is the first field, the start the twentieth.
            fields = read_proc(f"{proc}/{number}/stat").rpartition(b")")[2].split()
            one = RunningProcess(name, int(number), max(0, int(now - int(fields[19]) / tick)))
        except (OSError, ValueError, IndexError):
            continue  # it has gone
        if name not in oldest or one.age > oldest[name].age:
            oldest[name] = one
    yield from sorted(oldest.values(), key=lambda one: one.name)


def name_of(comm: bytes, command_line: bytes) -> str:
    """Return the daemon's name by what the kernel says of a process; "" for any other process."""
    comm_name = comm.decode("ascii", "replace").strip()
    for name in _DAEMONS:
        if name[:_LONGEST_COMM] == comm_name:
            return name
    words = command_line.split(b"\0")
    if any(word.endswith(b"/drainwise/slurm-agent") for word in words[:4]):
        return NODE_AGENT
    if not any(word.rpartition(b"/")[2] == b"drainwise" for word in words[:6]):
        return ""
    return next((name for name, those in _OURS.items() if all(one in words for one in those)), "")
