"""Reading and sorting 20,000 waiting jobs inside a process, against `json.loads` of the same jobs, without any daemon.

Slurm's are lines as squeue 24.11.5 prints them, HTCondor's the groups of a schedd of 25.14.1, as many as may be.
"""

from __future__ import annotations

import json
import time

from benchmarks.figures import Figure, in_turns
from drainwise.htcondor.ads.query import classad2
from drainwise.htcondor.demand.ask import MOST_GROUPS, group_of
from drainwise.slurm.jobs.squeue_lines import FIELDS, SNAPSHOT_FIELDS, jobs_of_lines
from drainwise.slurm.pool.limits import limits_in
from drainwise.slurm.pool.node_line import nodes_in
from drainwise.slurm.pool.rules import ClusterRules, rules_in
from drainwise.slurm.pool.shares import shares_in
from drainwise.slurm.pool.snapshot import SiteRules, snapshot_of
from drainwise.slurm.pool.transport import Answers

JOBS = 20_000
NOW = 1_795_819_104
_LINE = (
    "node{node}||normal|*|(null)|1|1|{number}|{number}|N/A|N/A|1795829940|1795833540|{priority}|0|{user}|{account}|PENDING|"
    "Priority|{cores}|1||{hours}:00:00|OK|cpu={cores},mem={cores}G,node=1,billing={cores}|1|N/A|N/A|cpu={cores}|N/A|||"
    "(null)|0|main|(null)|\n"
)
_RUNNING = (
    "(null)||normal|*|(null)|{0}|{0}|N/A|N/A|1795800000|1795900000|1|0|alice|atlas|RUNNING|None|64|1|node{1}|1:00:00|OK|"
    "cpu=64,mem=10M,node=1,billing=64|1|N/A|N/A|cpu=64|N/A|||(null)|0|main|(null)|\n"
)
_USERS = (("alice", "atlas"), ("bob", "cms"))
_NODES = 8
_SINFO = "node{}|64/0/0/64|allocated|main|131072|10|(null)|(null)|(null)|1000|\n"
_SHARES = "root|||0\n root|root|1|0\n atlas||2|0\n  atlas|alice|1|0\n cms||1|0\n  cms|bob|1|0\n"
_CONFIG = (
    "AccountingStorageEnforce = associations,limits,qos\nSLURM_VERSION           = 24.11.5\n"
    "SelectType              = select/cons_tres\nSelectTypeParameters    = CR_CORE_MEMORY\n\n"
    "PartitionName=main AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL MaxNodes=UNLIMITED MaxTime=UNLIMITED"
    " PriorityTier=1 State=UP Nodes=node[1-8]\n"
)
_LIMITS = "".join(
    f"ClusterName=test Account={account} UserName={user}(10{place:02}) Partition= Priority=0 ID={place} GrpJobs=N(8)"
    " GrpTRES=cpu=900000(2),mem=N(2048) GrpTRESRunMins=cpu=N(120) MaxJobs=90000(1) MaxTRESPJ=cpu=64\n"
    for place, (user, account) in enumerate(_USERS)
)
_GROUP = """\
JobIds = "{number}.0-{number}.3"; JobCount = 4; Id = {number}; JobStatus = 1; JobUniverse = 5; JobPrio = {priority};
Owner = "{user}"; User = "{user}@pool.test"; RequestCpus = {cores}; RequestMemory = 1000 + {number}; RequestDisk = 1024;
Requirements = (TARGET.Arch == "X86_64") && (TARGET.OpSys == "LINUX") && (TARGET.Disk >= RequestDisk) &&
(TARGET.Memory >= RequestMemory) && (TARGET.Cpus >= RequestCpus) && (TARGET.HasFileTransfer)
"""


def figures(runs: int) -> list[list[Figure]]:
    """Medians of CPU time, each batch system's table, its rows in turn."""
    return [_slurm(runs), _htcondor(runs)]


def _slurm(runs: int) -> list[Figure]:
    lines = "".join(
        _LINE.format(
            node=number % _NODES + 1,
            number=number,
            priority=10**9 - number,
            user=_USERS[number % 2][0],
            account=_USERS[number % 2][1],
            cores=(1, 4, 8)[number % 3],
            hours=1 + number % 10,
        )
        for number in range(1, JOBS + 1)
    )
    fields = (*SNAPSHOT_FIELDS, *FIELDS)
    text = json.dumps([dict(zip(fields, line.split("|"))) for line in lines.splitlines()])
    answer, plain = lines.encode(), rules_in(_CONFIG)
    limited = ClusterRules(**{**vars(plain), "limits": limits_in(_LIMITS)})
    nodes, shares = nodes_in("".join(map(_SINFO.format, range(1, _NODES + 1)))), shares_in(_SHARES)
    running = "".join(_RUNNING.format(JOBS + node, node) for node in range(1, _NODES + 1))
    jobs = jobs_of_lines(answer + running.encode())

    def wanted(rules: ClusterRules) -> None:
        seen = snapshot_of(Answers(jobs, nodes, shares, rules), SiteRules(3600), NOW)
        if len(seen.accounts) != len(_USERS) or not all(one.cores_wanted > JOBS for one in seen.accounts):
            raise RuntimeError(f"the jobs are no demand: {seen.notices}")

    return in_turns(
        runs,
        [
            (f"json.loads of {JOBS:,} jobs, each field a text", lambda: json.loads(text), None),
            ("the lines of squeue, read", lambda: jobs_of_lines(answer), 3.5),
            ("what these jobs want, and where each could start", lambda: wanted(plain), 2.2),
            ("the same where limits of the accounting bind each job", lambda: wanted(limited), 2.5),
        ],
        time.process_time,
    )


def _htcondor(runs: int) -> list[Figure]:
    asked = ((number, _USERS[number % 2][0], 1 + number % 16) for number in range(1, MOST_GROUPS + 1))
    groups = [_GROUP.format(number=one, priority=one % 7, user=user, cores=cores) for one, user, cores in asked]

    def parsed() -> list[classad2.ClassAd]:
        return [classad2.ClassAd(f"[{group}]") for group in groups]

    ads = parsed()
    text = json.dumps([{name: str(ad.lookup(name)) for name in ad} for ad in ads])

    def read() -> None:
        found = [group_of("ce", ad, (), NOW) for ad in parsed()]
        if sum(one.jobs for one in found if one is not None) != JOBS:
            raise RuntimeError("the groups were not read")

    return in_turns(
        runs,
        [
            (
                f"json.loads of {MOST_GROUPS:,} groups of {JOBS:,} jobs, each value a text",
                lambda: json.loads(text),
                None,
            ),
            ("the groups as ClassAds, parsed", parsed, None),
            ("the same, and read", read, 15.0),
        ],
        time.process_time,
    )
