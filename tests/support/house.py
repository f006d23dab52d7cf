"""The folders of the package: where each runs, with whose rights, which others it may import; each room's budget.

`python tests/support/house.py` prints how much of its budget each room has used.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import NamedTuple

PLUGINS = Path(__file__).parents[2] / "plugins"
PACKAGE = PLUGINS / "drainwise"
NEIGHBOURS = ("drainwise_launch", "drainwise_simulate", "drainwise_tasks")
"""The packages beside it, of which it imports nothing."""

EVERYWHERE, NODE, JOB, POOL = "everywhere", "worker node", "in a job", "central machine"
ADMIN, USER = "each machine of the site", "where users submit"


class Room(NamedTuple):
    """Where the code of a folder runs, with whose rights, and which other rooms its modules may import."""

    machine: str
    rights: str
    knows: str
    plain: bool = True
    """Whether it needs the standard library alone."""


HOUSE = {
    "": Room(EVERYWHERE, "anybody", "cli"),
    "facts": Room(EVERYWHERE, "anybody", ""),
    "common": Room(EVERYWHERE, "anybody", "facts"),
    "processes": Room(NODE, "job's user, user", ""),
    "features": Room(NODE, "job's user, root", "common facts"),
    "pilotad": Room(NODE, "job's user, root, HTCondor's user", "common facts"),
    "node": Room(NODE, "job's user, root", "common facts features pilotad"),
    "node.payloads": Room(NODE, "HTCondor's user, root", "common pilotad"),
    "doctor": Room(EVERYWHERE, "anybody", "common facts install pool processes siteconfig"),
    "systems": Room(EVERYWHERE, "anybody", "common facts"),
    "htcondor": Room(
        EVERYWHERE,
        "who types the command",
        "agent facts htcondor.ads htcondor.pool htcondor.setup install pool systems",
        plain=False,
    ),
    "htcondor.node": Room(NODE, "job's user, HTCondor's user", "common facts features node node.payloads pilotad"),
    "htcondor.ads": Room(EVERYWHERE, "anybody", "common facts pilotad pool", plain=False),
    "htcondor.demand": Room(POOL, "agent", "common facts htcondor.ads pool", plain=False),
    "htcondor.pool": Room(
        POOL,
        "agent",
        "common facts htcondor.ads htcondor.demand htcondor.node pilotad pool",
        plain=False,
    ),
    "htcondor.setup": Room(
        ADMIN,
        "root",
        "common doctor facts htcondor.ads htcondor.node htcondor.pool install pilotad pool siteconfig",
        plain=False,
    ),
    "slurm": Room(
        EVERYWHERE,
        "who types the command",
        "facts install pool slurm.pool slurm.setup systems",
        plain=False,
    ),
    "slurm.jobs": Room(NODE, "root, agent", "common facts pilotad"),
    "slurm.node": Room(NODE, "root, job's user", "common facts features node"),
    "slurm.node_agent": Room(NODE, "root", "common facts features node node.payloads pilotad slurm.jobs slurm.node"),
    "slurm.pool": Room(POOL, "agent", "common facts pilotad pool siteconfig slurm.jobs slurm.node", plain=False),
    "slurm.setup": Room(
        ADMIN,
        "root",
        "common doctor facts install node pilotad pool siteconfig slurm.jobs slurm.node slurm.pool",
        plain=False,
    ),
    "local": Room(
        USER,
        "user",
        "common facts features local.lease node pilotad pool processes systems",
    ),
    "local.lease": Room(USER, "user", "common facts features node processes"),
    "pilot": Room(JOB, "job's user", "common facts features pilot.decide pilot.queues pilotad processes"),
    "pilot.decide": Room(JOB, "job's user", "common facts features pilotad"),
    "pilot.queues": Room(JOB, "job's user", "common facts pilot.decide processes"),
    "page": Room(EVERYWHERE, "anybody", "common facts"),
    "siteconfig": Room(ADMIN, "root", "common facts pool reclaim systems"),
    "install": Room(ADMIN, "root", "common facts features pool siteconfig", plain=False),
    "pool": Room(POOL, "agent", "common facts pilotad"),
    "reclaim.choose": Room(POOL, "agent", "", plain=False),
    "requests": Room(POOL, "agent, administrator", "common facts pool"),
    "reclaim": Room(
        POOL,
        "agent",
        "common facts pilotad pool reclaim.choose requests",
        plain=False,
    ),
    "reclaim.decide": Room(
        POOL,
        "agent",
        "common facts pool reclaim reclaim.choose",
        plain=False,
    ),
    "journal": Room(
        POOL,
        "agent",
        "common facts page pilotad pool reclaim requests",
        plain=False,
    ),
    "agent": Room(
        POOL,
        "agent",
        "common facts journal pilotad pool reclaim reclaim.decide requests",
        plain=False,
    ),
    "agent.export": Room(
        POOL,
        "agent",
        "agent common facts features journal page pilotad pool reclaim siteconfig",
        plain=False,
    ),
    "cli.command_line": Room(EVERYWHERE, "who types the command", "common facts systems"),
    "cli.screen": Room(EVERYWHERE, "who types the command", "agent cli.command_line common facts reclaim"),
    "cli": Room(
        EVERYWHERE,
        "who types the command",
        "agent agent.export cli.command_line cli.screen common doctor facts features install journal local node pilot "
        "pilot.decide pilot.queues pool processes reclaim reclaim.decide requests siteconfig systems",
        plain=False,
    ),
    "drainwise_launch": Room(
        USER, "user", "common drainwise_launch.choice drainwise_launch.files facts features local systems"
    ),
    "drainwise_launch.choice": Room(USER, "user", "common facts"),
    "drainwise_launch.files": Room(USER, "user", "common drainwise_launch.choice facts"),
    "drainwise_launch.this_machine": Room(
        USER, "user", "common drainwise_launch drainwise_launch.choice facts processes"
    ),
    "drainwise_launch.run": Room(
        USER,
        "user",
        "common drainwise_launch drainwise_launch.choice drainwise_launch.files drainwise_launch.this_machine facts",
    ),
    "drainwise_launch.htcondor": Room(
        USER, "user", "common drainwise_launch drainwise_launch.choice facts htcondor.ads", plain=False
    ),
    "drainwise_launch.slurm": Room(USER, "user", "common drainwise_launch drainwise_launch.choice facts slurm.jobs"),
    "drainwise_launch.sge": Room(USER, "user", "common drainwise_launch drainwise_launch.choice facts"),
    "drainwise_launch.cli": Room(
        USER,
        "user",
        "cli cli.command_line common drainwise_launch drainwise_launch.choice drainwise_launch.files "
        "drainwise_launch.run drainwise_launch.this_machine facts",
    ),
    "drainwise_tasks": Room(USER, "user", ""),
    "drainwise_tasks.estimate": Room(
        JOB, "job's user, anybody", "common drainwise_tasks.estimate.records facts features page"
    ),
    "drainwise_tasks.estimate.records": Room(JOB, "job's user, anybody", "facts"),
    "drainwise_tasks.validate": Room(USER, "user", "common drainwise_launch drainwise_launch.choice facts processes"),
    "drainwise_tasks.cli": Room(
        USER,
        "user",
        "cli cli.command_line cli.screen common drainwise_launch drainwise_tasks.estimate "
        "drainwise_tasks.estimate.records drainwise_tasks.validate facts local",
    ),
    "drainwise_simulate": Room(
        USER,
        "anybody",
        "common drainwise_simulate.policies drainwise_tasks.estimate.records facts page pilot.decide pilotad pool "
        "reclaim reclaim.decide",
        plain=False,
    ),
    "drainwise_simulate.policies": Room(
        USER, "anybody", "facts pool reclaim reclaim.choose reclaim.decide", plain=False
    ),
    "drainwise_simulate.cli": Room(
        USER,
        "anybody",
        "cli cli.command_line cli.screen common drainwise_simulate drainwise_simulate.policies "
        "drainwise_tasks.estimate.records facts pilot.decide",
        plain=False,
    ),
}


class Budget(NamedTuple):
    """How many code lines a room may have, and what belongs to it: folders, and single modules of other folders."""

    code_lines: int
    holds: str


BUDGETS = {
    "common": Budget(1_967, "__init__ __main__ common facts"),
    "processes": Budget(606, "processes"),
    "features": Budget(1_613, "features"),
    "pilotad": Budget(983, "pilotad"),
    "node": Budget(1_297, "node node.payloads"),
    "pilot": Budget(2_116, "pilot pilot.decide pilot.queues"),
    "pool": Budget(906, "pool"),
    "reclaim": Budget(
        5_122,
        "reclaim reclaim.choose reclaim.decide requests",
    ),
    "journal": Budget(1_946, "journal"),
    "agent": Budget(1_787, "agent agent.export page"),
    "site": Budget(981, "siteconfig systems"),
    "install": Budget(1_206, "install doctor"),
    "htcondor/node": Budget(949, "htcondor.node"),
    "htcondor/pool": Budget(
        3_248,
        "htcondor htcondor.ads htcondor.demand htcondor.pool",
    ),
    "htcondor/setup": Budget(973, "htcondor.setup"),
    "slurm/node": Budget(1_956, "slurm.node slurm.node_agent"),
    "slurm/pool": Budget(3_491, "slurm slurm.jobs slurm.pool"),
    "slurm/setup": Budget(1_190, "slurm.setup"),
    "cli": Budget(
        3_580,
        "cli cli.command_line cli.screen",
    ),
    "local": Budget(2_028, "local local.lease"),
    "launch": Budget(
        1_923,
        "drainwise_launch drainwise_launch.choice drainwise_launch.cli drainwise_launch.files drainwise_launch.run",
    ),
    "launch/here": Budget(607, "drainwise_launch.this_machine"),
    "launch/batch": Budget(
        1_593,
        "drainwise_launch.htcondor drainwise_launch.local_batch drainwise_launch.sge drainwise_launch.slurm",
    ),
    "estimate": Budget(
        1_789, "drainwise_tasks drainwise_tasks.cli.estimate drainwise_tasks.estimate drainwise_tasks.estimate.records"
    ),
    "validate": Budget(1_452, "drainwise_tasks.cli drainwise_tasks.validate"),
    "simulate": Budget(2_711, "drainwise_simulate drainwise_simulate.cli drainwise_simulate.policies"),
}
"""The figures of the day on which the budget began. A room's figure follows when it shrinks; it is raised only by
a commit that says what it removes elsewhere, or by an allowance."""

LARGEST_SUM = 44_511
"""The sum of the first budgets, less what was removed since. It grows by what is taken of an allowance alone."""


class Allowance(NamedTuple):
    """How many code lines an issue may add without removing others, and how many of them it has added."""

    granted: int
    taken: int = 0


ALLOWANCES = {
    "What may be ordered; Who waits for what": Allowance(2_000, 1_773),
    "check and doctor": Allowance(600, 600),
    "Whose jobs": Allowance(1_500, 415),
    "Leave at the next checkpoint": Allowance(1_000, 721),
}

DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def code_lines(path: Path) -> int:
    """Count the lines of a module without blanks, comments and the docstrings of modules, classes and functions.

    These are the lines on which `tokenize` finds a token of code; that takes more than twice as long.
    """
    text = path.read_text()
    lines = {number for number, line in enumerate(text.split("\n"), 1) if line.strip() and line.lstrip()[0] != "#"}
    docstrings: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Constant, ast.JoinedStr)):
            lines |= set(range(node.lineno, (node.end_lineno or 0) + 1))
        elif isinstance(node, DOCUMENTED) and ast.get_docstring(node) is not None:
            docstrings |= set(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    return len(lines - docstrings)


def rooms_of(module: str) -> list[str]:
    """The rooms of a module, by its name as `modules` gives it: those that name it; else those that hold its folder."""
    for name in (module, module.rpartition(".")[0]):
        rooms = [room for room, budget in BUDGETS.items() if name in budget.holds.split()]
        if rooms:
            return rooms
    return []


def modules() -> dict[str, Path]:
    """Every module by its name below `drainwise`; those of its neighbours by their whole names."""
    found = {}
    for package in ("drainwise", *NEIGHBOURS):
        for path in (PLUGINS / package).rglob("*.py"):
            name = ".".join(path.relative_to(PLUGINS).with_suffix("").parts)
            found[name.removeprefix("drainwise.")] = path
    return found


def measured_rooms() -> dict[str, int]:
    """The code lines of each room."""
    lines = dict.fromkeys(BUDGETS, 0)
    for name, path in modules().items():
        for room in rooms_of(name):
            lines[room] += code_lines(path)
    return lines


if __name__ == "__main__":
    measured = measured_rooms()
    for room, lines in measured.items():
        print(f"{room:16}{lines:7} of {BUDGETS[room].code_lines:6}")
    print(f"{'sum':16}{sum(measured.values()):7} of {LARGEST_SUM + sum(one.taken for one in ALLOWANCES.values()):6}")
