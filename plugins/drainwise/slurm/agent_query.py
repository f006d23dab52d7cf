"""What slurmctld says of a node's jobs: runs of `scontrol` that ask for each by its number, and their answers read.

`squeue` would fetch every job of the cluster, whatever it is told to print: too much for thousands of nodes. `show job`
asks for one. Its output mixes our facts with what users chose (names, paths, comments), line ends included. So each
answer stands between two marks that nobody could foresee, and a fact counts only when its name stands there once: a
user who spells one in his job's name makes his own job unclear, and no other.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from drainwise.errors import PoolUnreachable
from drainwise.slurm.commands import SlurmCommands

ALIVE = frozenset({"CONFIGURING", "RUNNING", "SUSPENDED", "STOPPED", "SIGNALING", "RESIZING"})
"""States in which a job has its cores here."""
RUNNING = "RUNNING"
TOGETHER = 64
"""Questions to one run of scontrol. Slurmctld answers one after the other, and the run has its time limit: where it is
slow, a node with many jobs would never get an answer to all of them."""

_FACTS = frozenset(
    (
        *("JobState", "StartTime", "EndTime", "TimeLimit", "NumNodes", "NumCPUs", "Restarts", "UserId", "NodeList"),
        *("MinMemoryNode", "MinMemoryCPU", "TRES", "AllocTRES"),
    )
)
_USER = re.compile(r"[^\s()]*\((\d{1,10})\)")
_MEMORY = re.compile(r"(\d{1,15}(?:\.\d{1,6})?)([KMGTP]?)")
_LIMIT = re.compile(r"(?:(\d{1,5})-)?(\d{1,3}):(\d\d):(\d\d)")
_TRES_MEMORY = re.compile(r"(?:^|,)mem=([^,]*)")
_UNITS = {"": 1 << 20, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40, "P": 1 << 50}
_CPUS = (re.compile(r" CPUEfctv=(\d{1,6}) "), re.compile(r" CPUTot=(\d{1,6}) "))


@dataclass(frozen=True)
class RunFacts:
    """A job's run as slurmctld has it. Times are UNIX s, `limit` s, memory bytes; None: none, or not known.

    `label` names it to Slurm's commands: the number of an array or of a heterogeneous job alone would mean all its
    parts. `single`: on one node, and no part of a heterogeneous job. `memory`: on all its nodes. `comments`: what may
    be its AdminComment, up to the first blank. `node`: its nodes, as Slurm writes them.
    """

    number: int
    label: str
    single: bool
    uid: int
    state: str
    start: int | None
    end: int | None
    limit: int | None
    restarts: int
    nodes: int
    cores: int | None
    memory: int | None
    memory_per_node: int | None
    memory_per_core: int | None
    comments: tuple[str, ...]
    node: str = ""

    def memory_on_node(self, cores: int | None) -> int | None:
        """The job's memory limit on a node where it has so many cores, bytes."""
        if self.nodes == 1 and self.memory is not None:
            return self.memory
        if self.memory_per_node is not None:
            return self.memory_per_node
        return self.memory_per_core * cores if self.memory_per_core and cores else None


@dataclass(frozen=True)
class Answer:
    """What came of a query: facts by job number; jobs whose facts are not sure; CPUs by node.

    A job that is nowhere here is not known to slurmctld any more.
    """

    facts: dict[str, RunFacts]
    unclear: frozenset[str]
    cpus: dict[str, int]


def ask(commands: SlurmCommands, asked: dict[str, str], nodes: tuple[str, ...] = ()) -> Answer:
    """Ask for the jobs (number → what to ask for, the number itself where nothing better is known), and for the nodes.

    A number that turns out to mean a whole array, or a heterogeneous job, is asked for again by its label; the label
    is what to ask for from then on. Raises PoolUnreachable when slurmctld does not answer, or only in part.
    """
    blocks = _run(commands, asked, nodes)
    again = {job: label for job, block in zip(asked, blocks) if (label := _better_label(block, job, asked[job]))}
    answer = understood(blocks, asked, nodes)
    if not again:
        return answer
    second = understood(_run(commands, again, ()), again)
    unclear = (answer.unclear - again.keys()) | second.unclear
    return Answer({**answer.facts, **second.facts}, unclear, answer.cpus)


def _run(commands: SlurmCommands, asked: dict[str, str], nodes: tuple[str, ...]) -> list[str]:
    """What is answered to each question, the jobs' first."""
    shows = [f"show job {name}" for name in asked.values()] + [f"show node {node}" for node in nodes]
    parts = [shows[first : first + TOGETHER] for first in range(0, len(shows), TOGETHER)]
    return [block for part in parts for block in _answers(commands, part)]


def _answers(commands: SlurmCommands, shows: list[str]) -> list[str]:
    mark = f"m{os.urandom(12).hex()}n"
    # Without --local scontrol asks for the federation before each job: as many calls again.
    answer = commands.start("scontrol", "--oneliner", "--local", stdin=questions(shows, mark)).answer()
    blocks = between_marks(answer.out.decode("utf-8", "replace"), mark, len(shows))
    if blocks is None or (not any("JobId=" in block for block in blocks) and answer.is_none()):
        raise PoolUnreachable(answer.said or "half an answer")
    return blocks


def _better_label(block: str, job: str, asked: str) -> str:
    """By what to ask for a job whose number alone means more than it; "" where nothing better is known."""
    if "ArrayJobId=" not in block and "HetJobId=" not in block:
        return ""
    number, label, _ = _names(block)
    is_leader = label.startswith((f"{job}_", f"{job}+"))
    return label if number == int(job) and is_leader and label != asked else ""


def questions(shows: list[str], mark: str) -> str:
    """The lines for scontrol's standard input; `show hostnames` prints a mark without asking anybody."""
    lines = [line for number, show in enumerate(shows) for line in (f"show hostnames {mark}{number}", show)]
    return "\n".join([*lines, f"show hostnames {mark}{len(shows)}", ""])


def between_marks(text: str, mark: str, count: int) -> list[str] | None:
    """What stands behind each of the first `count` marks; None when a mark is missing: half an answer.

    A mark stands there twice, in the line that was read and in its answer, or once where scontrol does not repeat what
    it reads.
    """
    pieces: dict[str, str] = {}
    for part in text.split(mark)[1:]:
        number, _, rest = part.partition("\n")
        pieces[number] = pieces.get(number, "") + rest
    names = [str(number) for number in range(count + 1)]
    return [pieces[name] for name in names[:-1]] if all(name in pieces for name in names) else None


def understood(blocks: list[str], asked: dict[str, str], nodes: tuple[str, ...] = ()) -> Answer:
    """The blocks of the jobs, then those of the nodes, as facts. Pure."""
    facts, unclear, cpus = {}, set(), {}
    for job, block in zip(asked, blocks):
        if "JobId=" in block:
            found = facts_in(block, int(job))
            if found is None:
                unclear.add(job)
            else:
                facts[job] = found
    for node, block in zip(nodes, blocks[len(asked) :]):
        match = next((match for pattern in _CPUS if (match := pattern.search(block))), None)
        if match is not None and int(match[1]):
            cpus[node] = int(match[1])
    return Answer(facts, frozenset(unclear), cpus)


def _names(block: str) -> tuple[int, str, bool]:
    """The first job's number and label, and whether it is part of a heterogeneous job: before any word of a user's."""
    head = block[block.find("JobId=") :].partition(" JobName=")[0]
    words = dict(word.partition("=")[::2] for word in head.split(" "))
    number = _whole(words.get("JobId"))
    if number is None:
        return 0, "", False
    array, task = _whole(words.get("ArrayJobId")), _whole(words.get("ArrayTaskId"))
    het, offset = _whole(words.get("HetJobId")), _whole(words.get("HetJobOffset"))
    if array is not None and task is not None:
        return number, f"{array}_{task}", False
    if het is not None and offset is not None:
        return number, f"{het}+{offset}", True
    return number, str(number), "HetJobId" in words


def facts_in(block: str, job: int) -> RunFacts | None:
    """The facts of `job` in its block; None when a name is missing, stands there twice, or has no sense."""
    found: dict[str, str] = {}
    for word in block.split():
        name, _, value = word.partition("=")
        if name in _FACTS:
            if name in found:
                return None
            found[name] = value
    number, label, het = _names(block)
    user, nodes = _USER.fullmatch(found.get("UserId", "")), _whole(found.get("NumNodes", "").partition("-")[0])
    restarts = _whole(found.get("Restarts"))
    if number != job or user is None or nodes is None or restarts is None or "JobState" not in found:
        return None
    tres = _TRES_MEMORY.search(found.get("AllocTRES", found.get("TRES", "")))
    return RunFacts(
        number=number,
        label=label,
        single=nodes == 1 and not het,
        uid=int(user[1]),
        state=found["JobState"],
        start=_whole(found.get("StartTime")),
        end=_whole(found.get("EndTime")),
        limit=_seconds(found.get("TimeLimit", "")),
        restarts=restarts,
        nodes=nodes,
        cores=_whole(found.get("NumCPUs")),
        memory=bytes_of(tres[1]) if tres else None,
        memory_per_node=bytes_of(found.get("MinMemoryNode", "")),
        memory_per_core=bytes_of(found.get("MinMemoryCPU", "")),
        comments=_comments(block),
        node=found.get("NodeList", ""),
    )


def _comments(block: str) -> tuple[str, ...]:
    """What may be the job's AdminComment, to its first blank; one that begins with a blank is a blank.

    Slurm puts two blanks behind a comment: two at once are an empty one.
    """
    before, *parts = block.split("AdminComment=")
    found = []
    for part in parts:
        if before[-1:].isspace():
            is_blank = part[:1].isspace() and not part[1:2].isspace()
            found.append(part[:1] if is_blank else part[:1].strip() and part.split(None, 1)[0])
        before = part
    return tuple(found)


def _whole(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) <= 12 else None


def _seconds(limit: str) -> int | None:
    """`1-02:03:04` in seconds; None for UNLIMITED, and for what an order makes of that: thousands of years."""
    match = _LIMIT.fullmatch(limit)
    if match is None:
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def bytes_of(text: str) -> int | None:
    """`500M`, `1.50G` in bytes; None for 0, which is no limit."""
    match = _MEMORY.fullmatch(text)
    return int(float(match[1]) * _UNITS[match[2]]) or None if match else None
