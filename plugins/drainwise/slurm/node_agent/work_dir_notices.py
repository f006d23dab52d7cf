"""Site notices in WorkDirs: for which jobs, when, and that none stays there when its job has ended.

A job's notice stands in its $JOBSTATUS, which is no other job's. A pilot that knows the paper alone looks in its
working directory, so it stands there, too, where no other job of that user has the same: else the other job's
pilot would take it for its own. What was put there is written down beside the jobs' trees, so that an agent that
starts later removes it as well.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass

from drainwise.facts.errors import PoolUnreachable
from drainwise.pilotad.site_ad import SiteAd
from drainwise.slurm.node_agent.as_user import Identity, Send, Users
from drainwise.slurm.node_agent.jobs import Key, NodeJob
from drainwise.slurm.node_agent.work_dir_ad import WorkDirTask, bring_to_work_dir
from drainwise.slurm.node_agent.work_dirs import WorkDirs

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

_RECORD = ".work_dir."


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
        tasks: dict[Key, tuple[Identity, WorkDirTask]] = {}
        for key, placed in self._placed.items():
            job = jobs.get(key)
            ended = job is None or job.identity != placed.identity
            if ended:
                self._gone.setdefault(key, now)
            is_due = ended or (placed.uid, _path(placed)) in shared
            if is_due and now >= self._try_again.get(key, 0) and key[0] in nodes:
                tasks[key] = Identity(placed.uid, placed.gid), _task(key, placed, None, alone=False)
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
        tasks: dict[Key, tuple[Identity, WorkDirTask]] = {}
        for key, notice in notices.items():
            job = jobs[key]
            is_placed = key in self._placed and self._placed[key].identity == job.identity
            if (notice is None and not is_placed) or not _may_have(job):
                continue
            if notice == job.placed and now < job.place_again:
                self._note(job, job.in_the_way)
                continue
            alone = notice is not None and (job.lease.uid, job.lease.work_dir) not in shared
            others: tuple[bytes, ...] = ()
            if alone:
                try:
                    alone, others = self._is_alone(job, now)
                except PoolUnreachable:
                    continue  # what stands there stands
            if not alone and not is_placed:
                job.placed, job.place_again, job.in_the_way = notice, now + LOOK_PERIOD, ""
                continue
            placed = _placed_of(job)
            if self._users.lost(placed.uid) or is_slow(placed.uid, now) or not self._write_record(key, placed, nodes):
                continue
            tasks[key] = Identity(placed.uid, placed.gid), _task(key, placed, notice, alone, others)
        done = self._done(tasks, now)
        for key in tasks:
            job, (stands, fault) = jobs[key], done.get(key, (True, "WorkDir: it does not answer"))
            job.placed, job.in_the_way = notices[key], fault
            job.place_again = now + (RETRY if fault else LOOK_PERIOD)
            self._note(job, fault)
            if not stands and not fault:
                self._forget(key, nodes)

    def _is_alone(self, job: NodeJob, now: int) -> tuple[bool, tuple[bytes, ...]]:
        lease = job.lease
        if not self._work_dirs.is_alone(lease.uid, lease.job, lease.work_dir, now):
            return False, ()
        found = self._work_dirs.of_user(lease.uid, now)
        return True, tuple(sorted({path for number, path in found.items() if number != lease.job}))[:MOST_OTHERS]

    def _done(self, tasks: Mapping[Key, tuple[Identity, WorkDirTask]], now: int) -> dict[Key, tuple[bool, str]]:
        """Have the tasks done as their users; what does not result is tried again later."""
        by_user: dict[Identity, list[WorkDirTask]] = {}
        names: dict[str, Key] = {}
        for key, (who, task) in tasks.items():
            if not self._users.lost(who.uid):
                by_user.setdefault(who, []).append(task)
                names[task.key] = key
            self._try_again[key] = now + RETRY
        found: dict[Key, tuple[bool, str]] = {}
        outcomes = self._users.run({who: _step(some) for who, some in by_user.items()}, SECONDS) if by_user else {}
        for who, outcome in outcomes.items():
            own = {task.key for task in by_user[who]}
            for name, stands, fault in _results(outcome.lines):
                if name in own:
                    found[names[name]] = stands, fault
                    self._try_again.pop(names[name], None)
            for name in own:
                found.setdefault(names[name], (True, f"WorkDir: {outcome.fault or 'the work was not done'}"))
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
        self._placed.pop(key, None)
        self._gone.pop(key, None)
        self._try_again.pop(key, None)
        if key[0] in nodes:
            with suppress(OSError):
                os.unlink(f"{_RECORD}{key[1]}", dir_fd=nodes[key[0]])


def _may_have(job: NodeJob) -> bool:
    """Decide whether a job's WorkDir may be its user's own: root's directories are everybody's."""
    path = job.lease.work_dir
    return job.lease.uid != 0 and path.startswith(b"/") and b"\n" not in path and job.facts is not None


def _shared(jobs: Mapping[Key, NodeJob]) -> frozenset[tuple[int, bytes]]:
    """Return the users and WorkDirs that several jobs of this host have."""
    found = Counter({(job.lease.uid, job.lease.work_dir, job.lease.job) for job in jobs.values()})
    places = Counter((uid, path) for uid, path, _ in found)
    return frozenset(place for place, number in places.items() if number > 1)


def _placed_of(job: NodeJob) -> PlacedNotice:
    lease, start = job.lease, (job.facts.start if job.facts is not None else None) or job.lease.started
    path = lease.work_dir.decode("latin-1")
    return PlacedNotice(lease.job, f"{lease.job}@{start}", lease.uid, lease.gid, job.identity, path)


def _path(placed: PlacedNotice) -> bytes:
    return placed.work_dir.encode("latin-1")


def _task(
    key: Key, placed: PlacedNotice, notice: SiteAd | None, alone: bool, others: tuple[bytes, ...] = ()
) -> WorkDirTask:
    node, job = key
    temporary = f".site.ad.{job}.{node}"
    return WorkDirTask(f"{node}/{job}", _path(placed), placed.uid, placed.run, temporary, notice, alone, others)


def _read_record(name: str, directory: int) -> PlacedNotice | None:
    try:
        with open(os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory), "rb") as file:
            found = json.loads(file.read(65536))
        texts, (inode, made) = (str(found["job"]), str(found["run"])), found["identity"]
        whose = (int(found["uid"]), int(found["gid"]))
        return PlacedNotice(*texts, *whose, (int(inode), int(made)), str(found["work_dir"]))
    except (KeyError, OSError, TypeError, ValueError):
        return None


def _step(tasks: list[WorkDirTask]) -> Callable[[Send], None]:
    def step(send: Send) -> None:
        for task in tasks:
            send(json.dumps([task.key, *bring_to_work_dir(task)]).encode("ascii") + b"\n")

    return step


def _results(lines: tuple[bytes, ...]) -> Iterator[tuple[str, bool, str]]:
    for line in lines:
        with suppress(ValueError, TypeError):
            name, stands, fault = json.loads(line)
            yield str(name), bool(stands), str(fault)[:200]
