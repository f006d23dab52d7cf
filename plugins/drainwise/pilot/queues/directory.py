"""A queue that is a directory, `QUEUE/NAME.json` one payload each, which several pilots may share.

    QUEUE/NAME.json            waits; the name is the payload's unless the file states one
    QUEUE/running/PILOT/       claimed by that pilot, by rename, just before the start
    QUEUE/done/ failed/        ended with 0; ended otherwise or stopped at its maximum
    QUEUE/refused/             not a payload
    QUEUE/records.jsonl        what became of each, a line per event

Files that begin with a dot are not looked at: write `.NAME.json`, then rename it.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from drainwise.common.local_file import read_small
from drainwise.common.service import Faults
from drainwise.facts.errors import FeatureError, PayloadError, UsageError
from drainwise.pilot.decide.payload import TEXT_LIMIT, Backlog, Payload, parse_payload
from drainwise.pilot.queues.records import DONE, FAILED, RECORDS, REFUSED, REQUEUED, EndedPayload, Records

RECOVERY_PERIOD = 60.0
"""Seconds between looks for pilots that have vanished."""
PATIENCE = 5.0
"""Seconds for which a file that is no payload may still be one that is being written."""
MOST_WAITING = 10_000
"""Files that are kept in view at a time; the others are taken in as these are claimed."""
_COUNT_BITS = 40
_COARSE = 2_000_000_000
"""Nanoseconds within which two changes of a directory may bear the same time."""


@dataclass(frozen=True)
class _Waiting:
    order: int  # when it was written, then when it was read: the older first
    file: str
    payload: Payload


class DirectoryQueue:
    """A `PayloadQueue` on the directory `path` for the pilot of that id. Raises UsageError when it cannot be used."""

    def __init__(self, path: str, pilot: str, log: Callable[[str], None]) -> None:
        if not os.path.isdir(path):
            raise UsageError(f"queue {path}: expected a directory with NAME.json files")
        self._path, self._log, self._faults = path, log, Faults(log)
        self._claims = Claims(path, pilot)
        self._records = Records(f"{path}/{RECORDS}", pilot, log)
        self._known: dict[str, int] = {}  # file: inode
        self._suspect: dict[str, float] = {}  # file that is no payload: since when, UNIX s
        self._offered: dict[str, _Waiting] = {}  # by the payload's name, which is unique among them
        self._waiting = Backlog()
        self._read_so_far = 0
        self._by_file: dict[str, _Waiting] = {}
        self._held: list[_Waiting] = []  # of a name that is offered or claimed already
        self._claimed: dict[str, str] = {}  # payload: file
        self._seen_change = -1
        self._settled = False
        self._recover_at = float("-inf")

    def look(self, now: float) -> bool:
        """Take in new files, drop those that others took, and put back what vanished pilots had claimed."""
        if now >= self._recover_at:
            self._recover_at = now + RECOVERY_PERIOD
            self._recover(now)
        try:
            changed = os.stat(self._path).st_mtime_ns
            self._faults.set("queue", "")
            if self._settled and changed == self._seen_change and not self._suspect:
                return False
            with os.scandir(self._path) as entries:
                found = {
                    entry.name: entry.inode()
                    for entry in entries
                    if entry.name.endswith(SUFFIX) and not entry.name.startswith(".")
                }
        except OSError as error:
            self._faults.set("queue", error.strerror or "cannot be read")
            return False
        self._seen_change, self._settled = changed, now * 1e9 - changed > _COARSE
        return self._take_in(found, now)

    def _take_in(self, found: dict[str, int], now: float) -> bool:
        gone = [file for file, inode in self._known.items() if found.get(file) != inode]
        for file in gone:
            self._forget(file)
        self._suspect = {file: since for file, since in self._suspect.items() if file in found}
        fresh = [file for file in found if file not in self._known]
        if len(fresh) > MOST_WAITING - len(self._known):
            fresh = fresh[: max(0, MOST_WAITING - len(self._known))]
            self._settled = False
        for file in sorted(fresh):
            self._read(file, found[file], now)
        return bool(gone or fresh)

    def _read(self, file: str, inode: int, now: float) -> None:
        stem = file[: -len(SUFFIX)]
        try:
            content = read_small(f"{self._path}/{file}", TEXT_LIMIT)
            if content is None:
                return
            payload = parse_payload(content[0].decode(), stem)
        except UnicodeDecodeError:
            self._not_a_payload(file, inode, "expected UTF-8", now)
        except (FeatureError, PayloadError) as error:
            self._not_a_payload(file, inode, str(error), now)
        else:
            self._suspect.pop(file, None)
            self._known[file] = inode
            self._read_so_far += 1
            self._offer(_Waiting(content[1].st_mtime_ns << _COUNT_BITS | self._read_so_far, file, payload))

    def _not_a_payload(self, file: str, inode: int, reason: str, now: float) -> None:
        if now < self._suspect.setdefault(file, now) + PATIENCE:
            return
        del self._suspect[file]
        self._known[file] = inode
        try:
            os.makedirs(f"{self._path}/{REFUSED}", exist_ok=True)
            os.rename(f"{self._path}/{file}", f"{self._path}/{REFUSED}/{file}")
        except FileNotFoundError:
            return  # another pilot was first
        except OSError as error:
            reason = f"{reason} (left where it is: {error.strerror})"
        self._log(f"queue: {file[:60]} refused: {reason}")
        self._records.add(REFUSED, file, now, reason=reason)

    def _offer(self, entry: _Waiting) -> None:
        name = entry.payload.name
        self._by_file[entry.file] = entry
        offered = self._offered.get(name)
        if name in self._claimed or (offered is not None and offered.order < entry.order):
            self._held.append(entry)
            return
        if offered is not None:
            self._withdraw(offered)
            self._held.append(offered)
        self._offered[name] = entry
        self._waiting.add(entry.payload, entry.order)

    def _withdraw(self, entry: _Waiting) -> None:
        name = entry.payload.name
        if self._offered.get(name) is entry:
            del self._offered[name]
            self._waiting.remove(entry.order)
        elif entry in self._held:
            self._held.remove(entry)

    def _forget(self, file: str) -> None:
        self._known.pop(file, None)
        entry = self._by_file.pop(file, None)
        if entry is not None:
            self._withdraw(entry)
            self._offer_next(entry.payload.name)

    def _offer_next(self, name: str) -> None:
        """Free a name: offer the next payload that bears it."""
        named = [entry for entry in self._held if entry.payload.name == name]
        if named and name not in self._offered and name not in self._claimed:
            entry = min(named, key=lambda each: each.order)
            self._held.remove(entry)
            self._offer(entry)

    def waiting(self) -> Backlog:
        """Return those in the directory, the oldest file first."""
        return self._waiting

    def claim(self, payload: Payload, now: float) -> bool:
        """Rename its file into this pilot's claim directory."""
        entry = self._offered[payload.name]
        file = entry.file
        self._withdraw(entry)
        try:
            mine = self._claims.take(file)
        except OSError as error:
            self._faults.set("queue", f"{file[:60]} cannot be claimed: {error.strerror}")
            mine = self._settled = False  # looked at again in the next round
        self._by_file.pop(file, None)
        self._known.pop(file, None)
        if not mine:
            self._offer_next(payload.name)
            return False
        self._claimed[payload.name] = file
        self._records.started(payload, now, file=file)
        return True

    def finished(self, ended: EndedPayload, now: float) -> None:
        """Move its file to done/ or failed/."""
        folder = FAILED if ended.failed else DONE
        file = self._claimed.pop(ended.payload.name)
        self._settle(file, lambda: self._claims.settle(file, folder))
        self._records.ended(ended, now, file=file)
        self._offer_next(ended.payload.name)

    def requeue(self, payload: Payload, reason: str, seconds: float, now: float) -> None:
        """Move its file back into the queue."""
        file = self._claimed.pop(payload.name)
        self._settle(file, lambda: self._claims.give_back(file))
        self._records.requeued(payload.name, reason, seconds, now, file=file)
        self._offer_next(payload.name)

    def unclaim(self, payload: Payload, reason: str, now: float) -> None:
        """Move its file back into the queue."""
        self.requeue(payload, reason, 0.0, now)

    def _settle(self, file: str, move: Callable[[], None]) -> None:
        try:
            move()
        except OSError as error:
            # It stays in the claim directory, and the next pilot puts it back: run twice rather than lost.
            self._log(f"queue: {file[:60]} cannot be moved on: {error.strerror}")
        self._settled = False

    def refuse(self, payload: Payload, reason: str, now: float) -> None:  # noqa: ARG002 - others may run it
        """Leave it to a larger pilot."""
        self._log(f"payload {payload.name} is left to others: {reason}")
        self._withdraw(self._offered[payload.name])

    def _recover(self, now: float) -> None:
        def put(file: str, pilot: str) -> None:
            reason = f"its pilot vanished: {pilot}"
            self._log(f"{file[:60]} put back: {reason}")
            self._records.add(REQUEUED, file[: -len(SUFFIX)], now, file=file, reason=reason)
            self._settled = False

        try:
            self._claims.recover(put)
        except OSError as error:
            self._faults.set("claims of vanished pilots", error.strerror or "cannot be put back")
        else:
            self._faults.set("claims of vanished pilots", "")

    def more_may_come(self) -> bool:
        """Anybody may add a file at any time."""
        return True

    def fileno(self) -> int | None:
        """Return None: a directory is looked at from time to time."""
        return None

    def close(self, now: float) -> None:  # noqa: ARG002 - nothing waits here that was not claimed
        """Give up the claims; what could not be moved on is put back by the next pilot."""
        self._claims.close()


RUNNING = "running"
LOCK = ".lock"
SUFFIX = ".json"
_NEW = ".new"
_ABANDONED = 60.0
"""Seconds after which a claim directory that was never finished is taken away."""


class Claims:
    """The claim directory of one pilot. Raises UsageError when it cannot be made."""

    def __init__(self, queue: str, pilot: str) -> None:
        self._queue, self._all = queue, f"{queue}/{RUNNING}"
        self.place = f"{self._all}/{pilot}"
        # Locked before it has its name: nobody may find it unlocked while its pilot is alive.
        made = f"{self._all}/.{pilot}{_NEW}"
        try:
            os.makedirs(made)
            self._lock = os.open(f"{made}/{LOCK}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.rename(made, self.place)
        except OSError as error:
            raise UsageError(f"queue {queue}: no claims can be made in {RUNNING}/: {error.strerror}") from None

    def take(self, file: str) -> bool:
        """Claim a file of the queue; False when it has gone. Raises OSError for anything else."""
        try:
            os.rename(f"{self._queue}/{file}", f"{self.place}/{file}")
        except FileNotFoundError:
            return False
        return True

    def settle(self, file: str, folder: str) -> None:
        """Move a claimed file to a folder of the queue, made if need be. Raises OSError."""
        os.makedirs(f"{self._queue}/{folder}", exist_ok=True)
        os.rename(f"{self.place}/{file}", f"{self._queue}/{folder}/{file}")

    def give_back(self, file: str) -> None:
        """Put a claimed file back into the queue. Raises OSError."""
        put_back(f"{self.place}/{file}", self._queue)

    def close(self) -> None:
        """Release the claim; the directory goes when it is empty, else the next pilot puts back what is in it."""
        if not [name for name in _names(self.place) if name != LOCK]:
            _remove(self.place)
        os.close(self._lock)

    def recover(self, put: Callable[[str, str], None]) -> None:
        """Put back what pilots claimed that have vanished; `put` gets each file and its pilot."""
        for pilot in _names(self._all):
            place = f"{self._all}/{pilot}"
            if place == self.place:
                continue
            if pilot.startswith("."):
                _remove_abandoned(place)
                continue
            with _locked(place) as vanished:
                if vanished:
                    for file in _names(place):
                        if file != LOCK:
                            put_back(f"{place}/{file}", self._queue)
                            put(file, pilot)
                    _remove(place)


@contextlib.contextmanager
def _locked(place: str) -> Iterator[bool]:
    """Hold the lock of a claim while the block lasts, if it was free; whether it was."""
    with contextlib.ExitStack() as kept:
        try:
            lock = os.open(f"{place}/{LOCK}", os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            kept.callback(os.close, lock)
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_free = True
        except OSError:
            is_free = False
        yield is_free


def put_back(source: str, queue: str) -> str:
    """Move a file into the queue under its name, or one like it when that is taken; the name. Raises OSError."""
    stem = source.rpartition("/")[2][: -len(SUFFIX)]
    name, number = stem + SUFFIX, 1
    while True:
        try:
            # A link never replaces what is there, as a rename would: that would lose a payload.
            os.link(source, f"{queue}/{name}")
        except FileExistsError:
            number += 1
            name = f"{stem}.{number}{SUFFIX}"
            continue
        except OSError as error:
            if error.errno not in {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}:
                raise
            os.rename(source, f"{queue}/{name}")  # a file system without links
            return name
        os.unlink(source)
        return name


def _names(place: str) -> list[str]:
    try:
        return sorted(os.listdir(place))
    except OSError:
        return []


def _remove(place: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(f"{place}/{LOCK}")
    with contextlib.suppress(OSError):
        os.rmdir(place)


def _remove_abandoned(place: str) -> None:
    with contextlib.suppress(OSError):
        if place.endswith(_NEW) and time.time() - os.stat(place, follow_symlinks=False).st_mtime > _ABANDONED:
            _remove(place)
