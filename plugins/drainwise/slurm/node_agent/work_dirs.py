"""The WorkDirs of users' jobs: whose they are, and the site notices that stand in them until their jobs have ended.

A WorkDir often lies on a shared file system, where jobs on other nodes can have the same. The question is for one user:
slurmctld then sends that user's jobs alone (REQUEST_JOB_USER_INFO). It is asked when a site notice is to be
written there, or a report was found there, and seldom otherwise.

A job's notice stands in its $JOBSTATUS, which is no other job's. A pilot that knows the paper alone looks in its
working directory, so it stands there, too, where no other job of that user has the same: else the other job's
pilot would take it for its own. What was put there is written down beside the jobs' trees, so that an agent that
starts later removes it as well.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass

from drainwise.facts.errors import PoolUnreachable
from drainwise.pilotad.site_ad import SiteAd
from drainwise.slurm.jobs.commands import SlurmCommands
from drainwise.slurm.node.lease import SlurmLease
from drainwise.slurm.node_agent.as_user import Identity, Send, Users
from drainwise.slurm.node_agent.jobs import Key, NodeJob
from drainwise.slurm.node_agent.user_task import WorkDirTask, bring_to_work_dir

SECONDS = 2.0
"""How long a round waits for all users' WorkDirs together."""
LOOK_PERIOD = 300
"""Seconds until a notice that stands is looked after again: another job may have come to the same directory."""
RETRY = 300
"""Seconds until a WorkDir is tried again that did not answer, or where something was in the way."""
LONGEST = 86_400
"""Seconds for which a notice of a job that has ended is tried to be removed."""
MOST_OTHERS = 64
"""Other WorkDirs of a user's that are compared with a job's, should one be the same by another name."""

_RECORD, _RECORD_LIMIT = ".work_dir.", 65536
_STATES = "running,configuring,suspended,stopped,signaling,resizing"
_FORMAT = "--Format=JobID:|,WorkDir:|"
_LINE = re.compile(rb"^(\d{1,10})\|(/[^\n]*)\|$", re.MULTILINE)


def work_dirs_in(answer: bytes) -> dict[str, bytes]:
    """Read the WorkDir of each job, by number. A name with a line end in it is cut, or none: it is its user's."""
    return {number.decode("ascii"): path for number, path in _LINE.findall(answer)}


class WorkDirs:
    """The WorkDirs of users' running jobs on all nodes, as slurmctld has them: each asked for once in a round."""

    def __init__(self, commands: SlurmCommands) -> None:
        self._commands = commands
        self._round, self._known = 0, dict[int, dict[str, bytes]]()

    def of_user(self, uid: int, now: int) -> dict[str, bytes]:
        """Return the WorkDirs of a user's running jobs by number; `now`, of the round, in UNIX s.

        Raises PoolUnreachable.
        """
        if now != self._round:
            self._round, self._known = now, {}
        if uid not in self._known:
            question = ("--noheader", "--all", "--local", f"--user={uid}", f"--states={_STATES}", _FORMAT)
            self._known[uid] = work_dirs_in(self._commands.start("squeue", *question).output())
        return self._known[uid]

    def is_alone(self, lease: SlurmLease, now: int) -> bool:
        """Decide whether slurmctld has this job's WorkDir as it is known here, and no other job of the user's as
        the same. Raises PoolUnreachable.
        """
        found = self.of_user(lease.uid, now)
        return found.get(lease.job) == lease.work_dir and list(found.values()).count(lease.work_dir) == 1


@dataclass(frozen=True)
class PlacedNotice:
    """A notice that may stand in a WorkDir: of which job and run, in whose name, and where.

    identity: of the job's tree, see `NodeJob`.
    """

    job: str
    run: str
    uid: int
    gid: int
    identity: tuple[int, int]
    work_dir: str  # its bytes as Latin-1

    @property
    def path(self) -> bytes:
        """Where it may stand."""
        return self.work_dir.encode("latin-1")

    def task(
        self, node: str, notice: SiteAd | None = None, alone: bool = False, others: tuple[bytes, ...] = ()
    ) -> WorkDirTask:
        """Return the task to bring it, or to remove it for None."""
        temporary = f".site.ad.{self.job}.{node}"
        return WorkDirTask(self.path, self.uid, self.run, temporary, notice, alone, others)


class WorkDirNotices:
    """The notices of all rounds. note: called with a job and what was in the way; close: as for `Users`."""

    def __init__(self, note: Callable[[NodeJob, str], None], work_dirs: WorkDirs, close: tuple[int, ...] = ()) -> None:
        self._note, self._work_dirs, self._users = note, work_dirs, Users(close)
        self._placed: dict[Key, PlacedNotice] = {}
        self._read: set[str] = set()
        self._try_again: dict[Key, int] = {}
        self._gone: dict[Key, int] = {}

    def clear(self, jobs: Mapping[Key, NodeJob], nodes: Mapping[str, int], now: int) -> None:
        """Remove what stands for jobs that have ended, or in a directory that another job has by now; `now` in UNIX s.

        jobs, nodes: of this host, the nodes with a descriptor of each one's directory.
        """
        self._read_records(nodes)
        shared = _shared(jobs)
        tasks = {}
        for key, placed in self._placed.items():
            job = jobs.get(key)
            ended = job is None or job.identity != placed.identity
            if ended:
                self._gone.setdefault(key, now)
            is_due = ended or (placed.uid, placed.path) in shared
            if is_due and now >= self._try_again.get(key, 0) and key[0] in nodes:
                tasks[key] = placed.task(key[0])
        done = [key for key, (stands, fault) in self._done(tasks, now).items() if not stands and not fault]
        for key in [*done, *(key for key, since in self._gone.items() if now - since > LONGEST)]:
            self._forget(key, nodes)

    def bring(
        self,
        jobs: Mapping[Key, NodeJob],
        notices: Mapping[Key, SiteAd | None],
        nodes: Mapping[str, int],
        now: int,
        is_slow: Callable[[int, int], bool],
    ) -> None:
        """Bring the notices of jobs that run to their WorkDirs; None: there must be none.

        is_slow: whether the files of a user (uid) have already held up this round (now). Others as for `clear`, which
        comes first in each round.
        """
        shared = _shared(jobs)
        tasks = {}
        for key, notice in notices.items():
            job, lease = jobs[key], jobs[key].lease
            is_placed = key in self._placed and self._placed[key].identity == job.identity
            # Root's directories are everybody's.
            may_have = lease.uid != 0 and lease.work_dir.startswith(b"/") and b"\n" not in lease.work_dir
            if (notice is None and not is_placed) or not may_have or job.facts is None:
                continue
            if notice == job.placed and now < job.place_again:
                self._note(job, job.in_the_way)
                continue
            alone = notice is not None and (lease.uid, lease.work_dir) not in shared
            others: tuple[bytes, ...] = ()
            if alone:
                try:
                    alone, of_user = self._work_dirs.is_alone(lease, now), self._work_dirs.of_user(lease.uid, now)
                except PoolUnreachable:
                    continue  # what stands there stands
                others = tuple(sorted({path for number, path in of_user.items() if number != lease.job}))[:MOST_OTHERS]
            if not alone and not is_placed:
                job.placed, job.place_again, job.in_the_way = notice, now + LOOK_PERIOD, ""
                continue
            run = f"{lease.job}@{job.facts.start or lease.started}"
            path = lease.work_dir.decode("latin-1")
            placed = PlacedNotice(lease.job, run, lease.uid, lease.gid, job.identity, path)
            if self._users.lost(placed.uid) or is_slow(placed.uid, now) or not self._write_record(key, placed, nodes):
                continue
            tasks[key] = placed.task(key[0], notice, alone, others)
        done = self._done(tasks, now)
        for key in tasks:
            job, (stands, fault) = jobs[key], done.get(key, (True, "WorkDir: it does not answer"))
            job.placed, job.in_the_way = notices[key], fault
            job.place_again = now + (RETRY if fault else LOOK_PERIOD)
            self._note(job, fault)
            if not stands and not fault:
                self._forget(key, nodes)

    def _done(self, tasks: Mapping[Key, WorkDirTask], now: int) -> dict[Key, tuple[bool, str]]:
        """Have the tasks done as their users; what does not result is tried again later."""
        by_user: dict[Identity, dict[str, WorkDirTask]] = {}
        keys: dict[str, tuple[Key, Identity]] = {}
        for key, task in tasks.items():
            self._try_again[key] = now + RETRY
            who, name = Identity(task.uid, self._placed[key].gid), "/".join(key)
            if not self._users.lost(who.uid):
                by_user.setdefault(who, {})[name], keys[name] = task, (key, who)
        results, faults = self._users.results(by_user, _bring, _result_in, SECONDS)
        found = {}
        for name, (key, who) in keys.items():
            if name in results:
                found[key] = results[name]
                self._try_again.pop(key)
            else:
                found[key] = True, f"WorkDir: {faults[who] or 'the work was not done'}"
        return found

    # ---- what is written down ----

    def _read_records(self, nodes: Mapping[str, int]) -> None:
        for node, directory in nodes.items():
            if node in self._read:
                continue
            self._read.add(node)
            for name in os.listdir(directory):
                if name.startswith(_RECORD):
                    placed = _read_record(name, directory)
                    if placed is not None:
                        self._placed[node, placed.job] = placed

    def _write_record(self, key: Key, placed: PlacedNotice, nodes: Mapping[str, int]) -> bool:
        if self._placed.get(key) == placed:
            return True
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(f"{_RECORD}{placed.job}", flags, 0o600, dir_fd=nodes[key[0]])
            with open(descriptor, "w", encoding="ascii") as file:
                json.dump(asdict(placed), file)
        except (KeyError, OSError):
            return False  # nothing is put where nobody would remove it
        self._placed[key] = placed
        self._gone.pop(key, None)
        return True

    def _forget(self, key: Key, nodes: Mapping[str, int]) -> None:
        for known in (self._placed, self._gone, self._try_again):
            known.pop(key, None)
        if key[0] in nodes:
            with suppress(OSError):
                os.unlink(f"{_RECORD}{key[1]}", dir_fd=nodes[key[0]])


def _shared(jobs: Mapping[Key, NodeJob]) -> frozenset[tuple[int, bytes]]:
    """Return the users and WorkDirs that several jobs of this host have."""
    found = {(job.lease.uid, job.lease.work_dir, job.lease.job) for job in jobs.values()}
    places = Counter((uid, path) for uid, path, _ in found)
    return frozenset(place for place, number in places.items() if number > 1)


def _read_record(name: str, directory: int) -> PlacedNotice | None:
    try:
        with open(os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory), "rb") as file:
            found = json.loads(file.read(_RECORD_LIMIT))
        texts, (inode, made) = (str(found["job"]), str(found["run"])), found["identity"]
        whose = (int(found["uid"]), int(found["gid"]))
        return PlacedNotice(*texts, *whose, (int(inode), int(made)), str(found["work_dir"]))
    except (KeyError, OSError, TypeError, ValueError):
        return None


def _bring(tasks: Mapping[str, WorkDirTask], send: Send) -> None:
    for name, task in tasks.items():
        send(json.dumps([name, *bring_to_work_dir(task)]).encode("ascii") + b"\n")


def _result_in(line: bytes) -> tuple[str, tuple[bool, str]]:
    try:
        name, stands, fault = json.loads(line)
    except (RecursionError, TypeError, ValueError):
        raise ValueError("no result of a task") from None
    return str(name), (bool(stands), str(fault)[:200])
