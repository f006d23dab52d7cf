"""Ask for a node's own jobs, each by its number, by `scontrol show job`; read the answers.

`squeue` would fetch every job of the cluster, whatever it should print: too much for thousands of nodes. `show job`
asks for one. Its output mixes our facts with what users chose (names, paths, comments), line ends included. So each
answer stands between two marks that nobody could foresee, and a fact counts only when its name stands there once: a
user who spells one in his job's name makes his own job unclear, and no other.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from drainwise.facts.errors import PoolUnreachable
from drainwise.slurm.jobs.commands import SlurmCommands, is_no_answer
from drainwise.slurm.jobs.job import MOST_TEXT, SlurmJob
from drainwise.slurm.jobs.values import bytes_of, mebibytes_in, memory_in, minutes_in, states_of, whole

TOGETHER = 64
"""Questions to one run of scontrol. Slurmctld answers one after the other, and the run has its time limit: where it is
slow, a node with many jobs would never get an answer to all of them."""

_FACTS = frozenset(
    (
        *("JobState", "StartTime", "EndTime", "TimeLimit", "NumNodes", "NumCPUs", "Restarts", "UserId", "NodeList"),
        *("MinMemoryNode", "MinMemoryCPU", "MinTmpDiskNode", "TRES", "AllocTRES", "Account", "Partition"),
    )
)
_NAME, _OWNER, _COMMENT = " JobName=", " UserId=", " Comment="
_AFTER_COMMENT = re.compile(" (?:AdminComment|SystemComment|StdErr)=")
_USER = re.compile(r"([^\s()]*)\((\d{1,10})\)")
_FEATURES = re.compile(r" ActiveFeatures=([A-Za-z0-9_.:,=-]{1,4000}) ")
_EXTRA = re.compile(r" Extra=(\S+)")
_CPUS = (re.compile(r" CPUEfctv=(\d{1,6}) "), re.compile(r" CPUTot=(\d{1,6}) "))


@dataclass(frozen=True)
class JobAnswer:
    """The answer to a query: jobs by number; the numbers of those whose facts are not sure; of known nodes CPUs,
    features, and what stands in Extra.

    slurmctld does not know any more what is in none of these.
    """

    jobs: dict[str, SlurmJob]
    unclear: frozenset[str]
    cpus: dict[str, int]
    features: dict[str, tuple[str, ...]] = field(default_factory=dict)
    extras: dict[str, str] = field(default_factory=dict)


def ask(commands: SlurmCommands, asked: dict[str, str], nodes: tuple[str, ...] = ()) -> JobAnswer:
    """Ask for the jobs (number → what to ask for, the number itself where nothing better is known), and for the nodes.

    A number that turns out to mean a whole array, or a heterogeneous job, is asked for again by its label; the label
    is what to ask for from then on. Raises PoolUnreachable when slurmctld does not answer, or only in part.
    """
    shows = (*(f"show job {name}" for name in asked.values()), *(f"show node {node}" for node in nodes))
    blocks = answers(commands, shows)
    again = {job: label for job, block in zip(asked, blocks) if (label := _better_label(block, job, asked[job]))}
    answer = understood(blocks, asked, nodes)
    if not again:
        return answer
    second = understood(answers(commands, [f"show job {name}" for name in again.values()]), again)
    unclear = (answer.unclear - again.keys()) | second.unclear
    return JobAnswer({**answer.jobs, **second.jobs}, unclear, answer.cpus, answer.features, answer.extras)


def answers(commands: SlurmCommands, shows: Sequence[str], *options: str) -> list[str]:
    """Return the answer to each line, such as `show job 17`; options: more of scontrol's. Raises PoolUnreachable."""
    parts = [shows[first : first + TOGETHER] for first in range(0, len(shows), TOGETHER)]
    return [block for part in parts for block in _answers(commands, part, options)]


def _answers(commands: SlurmCommands, shows: Sequence[str], options: tuple[str, ...]) -> list[str]:
    mark = f"m{os.urandom(12).hex()}n"
    # Without --local scontrol asks for the federation before each job: as many calls again.
    answer = commands.start("scontrol", "--oneliner", "--local", *options, stdin=questions(shows, mark)).answer()
    blocks = between_marks(answer.text, mark, len(shows))
    if blocks is None or (not any("JobId=" in block for block in blocks) and is_no_answer(answer)):
        raise PoolUnreachable(answer.said or "incomplete answer")
    return blocks


def _better_label(block: str, job: str, asked: str) -> str:
    """Return by what to ask for a job whose number alone means more than it; "" where nothing better is known."""
    names = _names(block) if "ArrayJobId=" in block or "HetJobId=" in block else None
    if names is None or names.number != int(job):
        return ""
    label = names.label
    return label if label.startswith((f"{job}_", f"{job}+")) and label != asked else ""


def questions(shows: Sequence[str], mark: str) -> str:
    """Return the lines for scontrol's standard input; `show hostnames` prints a mark without asking anybody."""
    lines = [line for number, show in enumerate(shows) for line in (f"show hostnames {mark}{number}", show)]
    return "\n".join([*lines, f"show hostnames {mark}{len(shows)}", ""])


def between_marks(text: str, mark: str, count: int) -> list[str] | None:
    """Return the text behind each of the first `count` marks; None when a mark is missing: incomplete answer.

    A mark stands there twice, in the line that was read and in its answer, or once where scontrol does not repeat what
    it reads.
    """
    pieces: dict[str, str] = {}
    for part in text.split(mark)[1:]:
        number, _, rest = part.partition("\n")
        pieces[number] = pieces.get(number, "") + rest
    names = [str(number) for number in range(count + 1)]
    return [pieces[name] for name in names[:-1]] if all(name in pieces for name in names) else None


def understood(blocks: list[str], asked: dict[str, str], nodes: tuple[str, ...] = ()) -> JobAnswer:
    """Read the blocks of the jobs, then those of the nodes."""
    jobs, unclear, cpus, features, extras = {}, set(), {}, {}, {}
    for job, block in zip(asked, blocks):
        if "JobId=" in block:
            found = job_in(block, int(job))
            if found is None:
                unclear.add(job)
            else:
                jobs[job] = found
    for node, block in zip(nodes, blocks[len(asked) :]):
        match = next((match for pattern in _CPUS if (match := pattern.search(block))), None)
        if match is not None and int(match[1]):
            cpus[node] = int(match[1])
            extra = _EXTRA.search(block)
            extras[node] = "" if extra is None else extra[1]
        named = _FEATURES.search(block)
        if named is not None:
            features[node] = tuple(named[1].split(","))
    return JobAnswer(jobs, frozenset(unclear), cpus, features, extras)


def _names(block: str) -> SlurmJob | None:
    """Read by which numbers the first job is known, which stand before any text of a user's; no other facts."""
    head = block[block.find("JobId=") :].partition(" JobName=")[0]
    words = {name: whole(value) for name, _, value in (word.partition("=") for word in head.split(" "))}
    number, array, task = words.get("JobId"), words.get("ArrayJobId"), words.get("ArrayTaskId")
    if number is None:
        return None
    if array is not None and task is not None:
        return SlurmJob(number, array, task)
    het = words.get("HetJobId") or 0 if "HetJobId" in words else None
    return SlurmJob(number, het=het, het_offset=words.get("HetJobOffset"))


def job_in(block: str, job: int) -> SlurmJob | None:
    """Read `job` out of its block; None when a fact is missing, stands there twice, or has no sense."""
    found: dict[str, str] = {}
    for word in block.split():
        name, _, value = word.partition("=")
        if name in _FACTS:
            if name in found:
                return None
            found[name] = value
    names, user = _names(block), _USER.fullmatch(found.get("UserId", ""))
    nodes = whole(found.get("NumNodes", "").partition("-")[0])
    restarts = whole(found.get("Restarts"))
    name, comment = name_and_comment(block)
    if names is None or names.number != job or user is None or nodes is None or restarts is None:
        return None
    if "JobState" not in found:
        return None
    return replace(
        names,
        user=user[1],
        uid=int(user[2]),
        account=found.get("Account", ""),
        partitions=tuple(filter(None, found.get("Partition", "").split(","))),
        states=states_of(found["JobState"]),
        cores=whole(found.get("NumCPUs")) or 0,
        node_count=nodes,
        node=found.get("NodeList", ""),
        start=whole(found.get("StartTime")),
        end=whole(found.get("EndTime")),
        limit=minutes_in(found.get("TimeLimit", "")),
        restarts=restarts,
        comments=_comments(block),
        memory=memory_in(found.get("AllocTRES", found.get("TRES", ""))),
        memory_per_node=bytes_of(found.get("MinMemoryNode", "")),
        memory_per_core=bytes_of(found.get("MinMemoryCPU", "")),
        disk=mebibytes_in(found.get("MinTmpDiskNode", "")),
        name=name,
        comment=comment,
    )


def _comments(block: str) -> tuple[str, ...]:
    """Return what may be the job's AdminComment, to its first blank; one that begins with a blank is a blank.

    Slurm puts two blanks behind a comment, since 26.05 one: two at once, or one and the next fact, are an empty one.
    """
    before, *parts = block.split("AdminComment=")
    found = []
    for part in parts:
        if before[-1:].isspace():
            is_blank = part[:1].isspace() and not part[1:2].isspace() and not _AFTER_COMMENT.match(part)
            found.append(part[:1] if is_blank else part[:1].strip() and part.split(None, 1)[0])
        before = part
    return tuple(found)


def name_and_comment(line: str) -> tuple[str, str]:
    """Return the name and the comment that a job's submitter wrote, the first MOST_TEXT characters of each.

    They stand in the line as they are. Who spells the name of a fact in them cuts his own text short, and reaches no
    other fact.

    "" for one that is not there, or whose mark stands there more than once.
    """
    name = line.partition(_NAME)[2].partition(_OWNER)[0] if line.count(_NAME) == 1 else ""
    comment = (
        _AFTER_COMMENT.split(line.partition(_COMMENT)[2], maxsplit=1)[0].rstrip() if line.count(_COMMENT) == 1 else ""
    )
    return name[:MOST_TEXT], comment[:MOST_TEXT]
