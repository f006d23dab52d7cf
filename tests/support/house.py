"""The folders of the package: where the code of each runs, with whose rights, and which others it may import."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

PACKAGE = Path(__file__).parents[2] / "plugins" / "drainwise"

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
    "features": Room(NODE, "job's user, root", "common facts"),
    "features.serve": Room(NODE, "job's user, root", "common facts features"),
    "pilotad": Room(NODE, "job's user, root, HTCondor's user", "common facts"),
    "node": Room(NODE, "job's user, root", "common facts features pilotad"),
    "node.payloads": Room(NODE, "HTCondor's user, root", "pilotad"),
    "doctor": Room(EVERYWHERE, "anybody", "common facts install pool siteconfig"),
    "systems": Room(EVERYWHERE, "anybody", "common facts"),
    "htcondor": Room(
        EVERYWHERE,
        "who types the command",
        "agent facts htcondor.ads htcondor.launch htcondor.pool htcondor.setup install systems",
        plain=False,
    ),
    "htcondor.node": Room(NODE, "job's user, HTCondor's user", "common facts features node node.payloads pilotad"),
    "htcondor.knobs": Room(POOL, "agent", "facts htcondor.node pilotad pool", plain=False),
    "htcondor.ads": Room(EVERYWHERE, "anybody", "facts pilotad", plain=False),
    "htcondor.demand": Room(POOL, "agent", "common facts htcondor.ads pool", plain=False),
    "htcondor.identity": Room(EVERYWHERE, "anybody", "common facts htcondor.ads identity pool", plain=False),
    "htcondor.shares": Room(POOL, "agent", "htcondor.ads pool", plain=False),
    "htcondor.pool": Room(
        POOL,
        "agent",
        "common facts htcondor.ads htcondor.demand htcondor.identity htcondor.knobs htcondor.node htcondor.shares "
        "identity pilotad pool",
        plain=False,
    ),
    "htcondor.launch": Room(USER, "user", "common facts htcondor.ads launch launch.choice node systems", plain=False),
    "htcondor.setup": Room(
        ADMIN,
        "root",
        "common doctor facts htcondor.ads htcondor.knobs htcondor.node htcondor.pool install pilotad pool siteconfig",
        plain=False,
    ),
    "slurm": Room(
        EVERYWHERE, "who types the command", "install slurm.launch slurm.pool slurm.setup systems", plain=False
    ),
    "slurm.jobs": Room(NODE, "root, agent", "common facts pilotad"),
    "slurm.cluster": Room(POOL, "agent", "facts slurm.jobs slurm.node"),
    "slurm.node": Room(NODE, "root, job's user", "common facts features node"),
    "slurm.node_agent": Room(NODE, "root", "common facts features node node.payloads pilotad slurm.jobs slurm.node"),
    "slurm.pool": Room(
        POOL, "agent", "common facts identity pilotad pool siteconfig slurm.cluster slurm.jobs slurm.node", plain=False
    ),
    "slurm.launch": Room(USER, "user", "common facts launch launch.choice slurm.jobs systems"),
    "slurm.setup": Room(
        ADMIN,
        "root",
        "common doctor facts install node pilotad pool siteconfig slurm.jobs slurm.node slurm.pool",
        plain=False,
    ),
    "sge": Room(USER, "user", "common facts launch launch.choice systems"),
    "local": Room(
        USER,
        "user",
        "common facts features launch launch.choice launch.this_machine local.lease node pilotad pool systems",
    ),
    "local.lease": Room(USER, "user", "common facts features node pilotad"),
    "pilot": Room(JOB, "job's user", "common facts features pilot.decide pilot.queues pilotad systems"),
    "pilot.decide": Room(JOB, "job's user", "common facts features launch.choice pilotad"),
    "pilot.queues": Room(JOB, "job's user", "common facts pilot.decide"),
    "page": Room(EVERYWHERE, "anybody", "common"),
    "estimate": Room(JOB, "job's user, anybody", "common estimate.records facts features page"),
    "estimate.records": Room(JOB, "job's user, anybody", "facts"),
    "validate": Room(USER, "user", "common facts launch launch.choice"),
    "launch": Room(USER, "user", "facts launch.choice"),
    "launch.choice": Room(EVERYWHERE, "anybody", "facts"),
    "launch.files": Room(USER, "user", "common facts launch.choice"),
    "launch.this_machine": Room(USER, "user", "common facts launch launch.choice"),
    "launch.run": Room(USER, "user", "common facts launch launch.choice launch.files launch.this_machine"),
    "siteconfig": Room(ADMIN, "root", "common facts identity reclaim systems"),
    "install": Room(ADMIN, "root", "common facts features pool siteconfig", plain=False),
    "identity": Room(EVERYWHERE, "anybody", "common"),
    "pool": Room(POOL, "agent", "facts identity pilotad"),
    "room": Room(POOL, "agent", "pool", plain=False),
    "requests": Room(POOL, "agent, administrator", "common facts pool"),
    "reclaim": Room(
        POOL,
        "agent",
        "common estimate facts identity pilotad pool reclaim.open_need reclaim.seen reclaim.totals requests",
        plain=False,
    ),
    "reclaim.decide": Room(
        POOL, "agent", "facts pool reclaim reclaim.open_need reclaim.seen reclaim.totals requests room", plain=False
    ),
    "reclaim.open_need": Room(POOL, "agent", "pool reclaim.totals", plain=False),
    "reclaim.seen": Room(POOL, "agent", "estimate facts pilotad pool"),
    "reclaim.totals": Room(POOL, "agent", "", plain=False),
    "journal": Room(
        POOL,
        "agent",
        "common estimate facts identity page pilotad pool reclaim reclaim.open_need reclaim.seen requests",
        plain=False,
    ),
    "journal.views": Room(POOL, "agent", "common htcondor.node journal", plain=False),
    "agent": Room(
        POOL, "agent", "common facts journal pilotad pool reclaim reclaim.decide requests siteconfig", plain=False
    ),
    "simulate": Room(
        USER,
        "anybody",
        "common estimate estimate.records facts page pilot.decide pilotad pool reclaim reclaim.decide "
        "reclaim.open_need simulate.policies",
        plain=False,
    ),
    "simulate.policies": Room(USER, "anybody", "facts pool reclaim reclaim.decide reclaim.totals", plain=False),
    "simulate.lies": Room(
        USER,
        "anybody",
        "journal pilot.decide pilotad pool reclaim reclaim.decide simulate",
        plain=False,
    ),
    "prologs": Room(NODE, "job's user, root", "common facts features"),
    "cli.feature_commands": Room(
        EVERYWHERE, "who types the command", "common facts features features.serve node prologs"
    ),
    "cli.command_line": Room(EVERYWHERE, "who types the command", "common facts systems"),
    "cli.config_commands": Room(EVERYWHERE, "who types the command", "common install local siteconfig", plain=False),
    "cli.screen": Room(EVERYWHERE, "who types the command", "agent common facts reclaim"),
    "cli.doctor": Room(
        EVERYWHERE, "who types the command", "cli cli.screen common doctor facts pool siteconfig systems"
    ),
    "cli": Room(
        EVERYWHERE,
        "who types the command",
        "agent cli.command_line cli.config_commands cli.feature_commands cli.screen common estimate estimate.records "
        "facts features identity install journal journal.views launch launch.choice launch.files launch.run "
        "launch.this_machine local node pilot pilot.decide pilot.queues pool reclaim reclaim.decide reclaim.seen "
        "requests simulate simulate.policies siteconfig systems validate",
        plain=False,
    ),
}
