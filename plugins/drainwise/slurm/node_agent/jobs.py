"""The jobs of this host as the agent knows them: which trees there are now, and what was learnt of each.

A tree belongs to one run of a job: a requeued job gets a new one. What is only kept here is what another agent would
find out again in one round.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from drainwise.common.local_file import replace_file, small_text
from drainwise.facts.errors import FeatureError
from drainwise.features.facts import job_values, machine_values
from drainwise.features.write import update_directory
from drainwise.node import JOB_FEATURES, JOB_STATUS, MACHINE_FEATURES
from drainwise.node.hook import status_of
from drainwise.node.payloads.process_table import ProcessTable
from drainwise.node.settings import NodeSettings
from drainwise.node.site_notice import take_all
from drainwise.pilotad.report import PilotReport
from drainwise.slurm import LEASE
from drainwise.slurm.jobs.job import SlurmJob, granted_by_limit
from drainwise.slurm.jobs.values import ALIVE
from drainwise.slurm.node.environment import is_node_name
from drainwise.slurm.node.facts import NodeRecord, host_side, job_side
from drainwise.slurm.node.host_list import first_host
from drainwise.slurm.node.job_tree import foreign_mounts, is_full, jobs, open_node, open_tree
from drainwise.slurm.node.lease import SlurmLease, read_lease

GRANTED = "granted"
"""The file in a job's tree that keeps its lease as it was granted, before anybody shortened it; root's."""
_GRANTED_LIMIT = 256
_STEP, _PASSED_OVER = b"slurmstepd", frozenset({"extern", "4294967292"})

Key = tuple[str, str]
"""A node and a job on it."""


@dataclass
class NodeJob:
    """One job's run on one node of this host.

    * identity: what tells its tree from the one of another run: its inode, and when its lease was written. tree: a
      descriptor of it while a round lasts.
    * question: by what name slurmctld is asked for it; asked: in which round it was last; tries: in how many rounds it
      has not run yet; facts: this run as slurmctld had it last, None when it had none; unclear: whether a text of its
      user's hides them.
    * granted: the latest end that its lease has had, UNIX s, None for one without end; granted_known: whether that has
      been learnt.
    * completed: what its features were completed with; incomplete: why they were not; marked: whether its tasks need
      not wait for that.
    * notice: what its shutdown files say.
    * reports: whether it ever reported; refused: why its report was not read, or not in whole; look_again: when its
      WorkDir is looked at next, UNIX s; look_inside: when a glidein is looked for in it next; apart: of which heartbeat
      in its WorkDir was asked whether another job has that directory, and whether none has.
    * is_glidein: whether the files of an inner HTCondor have told of it; glidein: what they told at the last look.
    * saved: when it last wrote a file of its checkpoints, UNIX s, 0 where it is not known; saves_each: s between two.
    * placed: what the `.site.ad` in its WorkDir was to say last; place_again: when that is looked after next, UNIX s;
      in_the_way: why it does not stand there, "" for nothing.
    """

    node: str
    lease: SlurmLease
    identity: tuple[int, int]
    tree: int
    question: str
    facts: SlurmJob | None = None
    granted: int | None = None
    granted_known: bool = False
    completed: object = None
    incomplete: str = ""
    notice: object = None
    asked: int = 0
    tries: int = 0
    unclear: bool = False
    reports: bool = False
    refused: str = ""
    look_again: float = 0.0
    look_inside: float = 0.0
    apart: tuple[int, bool] | None = None
    placed: object = None
    place_again: float = 0.0
    in_the_way: str = ""
    marked: bool = False
    is_glidein: bool = False
    glidein: PilotReport | None = None
    saved: int = 0
    saves_each: int = 0

    @property
    def key(self) -> Key:
        """What names it among the jobs of this host."""
        return self.node, self.lease.job

    @property
    def name(self) -> str:
        """What names this run, and no other one of the job's, on this host."""
        return f"{self.node}/{self.lease.job}/{self.identity}"

    @property
    def label(self) -> str:
        """What names it to Slurm's commands."""
        return self.question if self.facts is None else self.facts.label

    @property
    def speaks(self) -> bool:
        """Whether what is reported here is published.

        Each part of a heterogeneous job is a job to Slurm, and none of them is the whole.
        """
        facts = self.facts
        return facts is not None and facts.het is None and facts.runs and facts.start is not None

    @property
    def is_first(self) -> bool:
        """Whether this is the run's only node, or the first one of several, where its script runs."""
        return self.facts is not None and (self.facts.single or self.node == first_host(self.facts.node))

    @property
    def cores(self) -> int:
        """The cores that such a report is about, 0 when nobody knows: all of the run on its first node, which may
        speak for all of them, and on another one those that are there.
        """
        if self.facts is not None and not self.facts.single and self.is_first:
            return self.facts.cores
        return self.lease.cores or (self.facts.cores if self.facts is not None and self.facts.single else 0)

    def published(self, comment: str) -> None:
        """Take note of its new AdminComment."""
        if self.facts is not None:
            self.facts = replace(self.facts, comments=(comment,))

    @property
    def place(self) -> str:
        """A path to its tree that leads to no other, whatever has its name by now."""
        return f"/proc/self/fd/{self.tree}"

    @property
    def is_without_room(self) -> bool:
        """Whether the job has filled its own $JOBSTATUS; False where it has none of its own."""
        path = f"{self.place}/{JOB_STATUS}"
        try:
            is_own = os.stat(path, follow_symlinks=False).st_dev != os.fstat(self.tree).st_dev
            return is_own and is_full(path)
        except OSError:
            return False


Jobs = dict[Key, NodeJob]


class HostJobs:
    """The jobs of all nodes of this host.

    fault: called with a job's (or node's) name and what is wrong there, "" when nothing is any more.
    """

    def __init__(self, runtime_dir: str, fault: Callable[[str, str], None], gone: Callable[[str], None]) -> None:
        self._runtime_dir, self._fault, self._gone = runtime_dir, fault, gone
        self._known: dict[Key, NodeJob] = {}
        self._open: list[int] = []
        self.nodes: dict[str, int] = {}
        """The nodes of this host, and a descriptor of each one's directory while a round lasts."""

    def named(self) -> set[str]:
        """Return the jobs that have a tree now, whatever its state; in a round."""
        return {number for node in self.nodes.values() for number in jobs(node)}

    @contextmanager
    def round(self) -> Iterator[Jobs]:
        """Open the trees of all jobs for a round, and close them."""
        try:
            self.nodes = self._opened_nodes()
            blocked = foreign_mounts(os.path.realpath(self._runtime_dir))
            found = {job.key: job for name, node in self.nodes.items() for job in self._on_node(name, node, blocked)}
            for key in self._known.keys() - found.keys():
                self._gone(key[1])
            self._known = found
            yield found
        finally:
            for descriptor in self._open:
                os.close(descriptor)
            self._open = []
            for job in self._known.values():
                job.tree = -1
            self.nodes = dict.fromkeys(self.nodes, -1)

    def _opened_nodes(self) -> dict[str, int]:
        found: dict[str, int] = {}
        try:
            names = os.listdir(self._runtime_dir)
        except OSError:
            return found
        for name in sorted(names):
            if not is_node_name(name) or not os.path.isdir(f"{self._runtime_dir}/{name}"):
                continue
            try:
                node = open_node(self._runtime_dir, name)
            except (FeatureError, OSError) as error:
                self._fault(f"node {name}", str(error))
                continue
            if node is not None:
                self._open.append(node)
                found[name] = node
                self._fault(f"node {name}", "")
        return found

    def _on_node(self, name: str, node: int, blocked: tuple[str, ...]) -> list[NodeJob]:
        found = []
        for number in jobs(node):
            if blocked and any(f"/{name}/{number}/" in f"{mount}/" for mount in blocked):
                self._fault(f"job {number}", "something is mounted in its tree; left alone")
                continue  # a file system that a user serves can hold anybody who touches it
            try:
                job = self._opened(name, node, number)
            except (FeatureError, OSError) as error:
                self._fault(f"job {number}", f"its tree is not used: {error}")
                continue
            if job is not None:
                found.append(job)
        return found

    def _opened(self, name: str, node: int, number: str) -> NodeJob | None:
        tree = open_tree(node, number)
        if tree is None:
            return None
        self._open.append(tree)
        status = os.fstat(tree)
        if status.st_uid != os.geteuid():
            raise FeatureError("it is not root's")
        # A new tree may get the inode of one that was just removed; its lease is written later all the same.
        written = status_of(LEASE, tree)
        identity = (status.st_ino, 0 if written is None else written.st_mtime_ns)
        known = self._known.get((name, number))
        if known is not None and known.identity == identity:
            known.tree = tree
            return known
        if known is not None and not identity[1]:
            return None  # its epilog is removing it
        lease = read_lease(tree)
        if lease is None or lease.job != number:
            raise FeatureError("it has no lease of this job's")
        return NodeJob(name, lease, identity, tree, number)


def step_processes(table: ProcessTable, proc: str = "/proc", owner: int = 0) -> tuple[dict[str, list[int]], set[int]]:
    """Return Slurm's own processes by the job whose steps they run, and all that there are.

    A step's process is root's (owner), and says in its command line which job it is of: no user has one. The step
    "extern" is where foreign logins land, and is passed over.
    """
    steps: dict[str, list[int]] = {}
    own = set()
    for pid in table.named(_STEP):
        status = status_of(f"{proc}/{pid}")
        if status is None or status.st_uid != owner:
            continue  # it has just ended, or is somebody's
        own.add(pid)
        job, _, step = table.command_line(pid).partition("[")[2].partition("]")[0].partition(".")
        if job.isdigit() and step not in _PASSED_OVER:
            steps.setdefault(job, []).append(pid)
    return steps, own


# ---- what only slurmctld knows of a job ----


def is_this_run(lease: SlurmLease, facts: SlurmJob) -> bool:
    """Decide whether slurmctld speaks of the run that the tree was made for, and it has its cores."""
    return (
        not facts.states.isdisjoint(ALIVE)
        and (facts.uid, facts.restarts) == (lease.uid, lease.restarts)
        and facts.start is not None
        and (not lease.start_known or facts.start >= lease.started)  # a node that had to be powered up moves it
    )


def granted_end(lease: SlurmLease, facts: SlurmJob) -> int | None:
    """Return when the lease was to end when it began, UNIX s; None without end.

    The prolog's environment says so since Slurm 24.11; else the time limit does.
    """
    return lease.ends if lease.start_known and lease.ends is not None else granted_by_limit(facts)


def longer_end(granted: int | None, facts: SlurmJob) -> int | None:
    """Return the end that counts as granted by now, UNIX s: a lease that was made longer since is granted so long."""
    if granted is None or (facts.end is None and granted_by_limit(facts) is None):
        return None
    return max(granted, facts.end or 0)


def learn_granted(job: NodeJob, facts: SlurmJob) -> None:
    """Find out what was granted; keep it where another agent finds it. Raises OSError.

    It is written at the first sight of the job, and again when the lease has become longer: else nobody would learn of
    an order that shortens such a lease to an end after the first one.
    """
    kept = (job.granted,) if job.granted_known else _granted_in(job.tree)
    granted = longer_end(granted_end(job.lease, facts) if kept is None else kept[0], facts)
    if kept != (granted,):
        line = "none" if granted is None else str(granted)
        replace_file(GRANTED, f"{line}\n".encode("ascii"), job.tree)
    job.granted, job.granted_known = granted, True


def _granted_in(tree: int) -> tuple[int | None] | None:
    """Return what was granted, as the file says; None when it does not say."""
    text = small_text(GRANTED, _GRANTED_LIMIT, tree) or ""
    if text == "none":
        return (None,)
    return (int(text),) if text.isdigit() and text.isascii() and len(text) <= 12 else None


def complete(job: NodeJob, facts: SlurmJob, record: NodeRecord, settings: NodeSettings) -> None:
    """Write what is known by now into the job's features; nothing is touched that stands there already.

    Raises FeatureError after having tried both directories.
    """
    lease, start = job.lease, facts.start or job.lease.started
    cores = lease.cores if lease.cores is not None else facts.cores or None if facts.node_count == 1 else None
    known = SlurmLease(job=lease.job, uid=lease.uid, gid=lease.gid, cores=cores, started=start, ends=job.granted)
    memory, disk = facts.memory_on_node(cores), facts.disk << 20 or None
    settings = settings.of_node(job.node, record.features)
    wanted = (known, memory, disk, record, settings)
    if job.completed == wanted:
        return
    host = host_side(record, settings, cores)
    about_job = job_side(known, record, settings, memory, disk)
    take_all(
        lambda: update_directory(f"{job.place}/{MACHINE_FEATURES}", machine_values(host)),
        lambda: update_directory(f"{job.place}/{JOB_FEATURES}", job_values(about_job, host)),
    )
    job.completed = wanted
