"""Jobs and dependencies that jobs add while they run: lines that they append to a file, read as they come.

{"name": "merge-7", "command": [...], "after": ["part-1", "part-2"]}      one more job
{"job": "report", "after": ["merge-7"]}                                   a job has to wait for others, too
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from contextlib import suppress

from drainwise.common.typed_table import from_json
from drainwise.facts.errors import UsageError
from drainwise.launch.choice.engine import Engine
from drainwise.launch.choice.graph import in_order
from drainwise.launch.choice.work import DONE, READY, LaunchJob, Work, digest_of
from drainwise.launch.files.job_reader import JobReader
from drainwise.launch.run.store import Store

_LONGEST_LINE = 1 << 20
_PIECE = 1 << 22
_MOST_REFUSED = 1000
"""This many wrong lines are no jobs: somebody writes something else there."""


class Additions:
    """The file `path`, from its beginning: what an earlier run was given belongs to the launch.

    place: gives a job its backend. Lines that are wrong are refused, said, and counted. One that says what is known is
    no news: a job that is run again says it again.
    """

    def __init__(
        self,
        path: str,
        engine: Engine,
        store: Store,
        reader: JobReader,
        place: Callable[[Work], Work],
        say: Callable[[str], None],
    ) -> None:
        self._path, self._engine, self._store = path, engine, store
        self._reader, self._place, self._say = reader.of(path), place, say
        self._at = 0
        self._recalls = True
        self._line = 0
        self.refused = 0

    def mend(self) -> None:
        """Cut off a line that was not finished: who wrote it was killed with the launcher, and writes it again."""
        with suppress(OSError), open(self._path, "rb+") as stream:
            end = stream.seek(0, os.SEEK_END)
            stream.seek(max(0, end - _PIECE))
            rest = stream.read().rpartition(b"\n")[2]
            if _is_whole(rest):
                stream.write(b"\n")
            else:
                stream.truncate(end - len(rest))

    def look_first(self) -> None:
        """Take in what earlier runs were given; nothing is recalled of any job yet."""
        self._recalls = False
        self.look()
        self._recalls = True

    def look(self) -> None:
        """Take in all whole lines that have come by now: whoever writes on and on keeps nobody."""
        try:
            size = os.stat(self._path).st_size
        except OSError:
            return  # nobody has added any
        if size < self._at:
            self._at = self._line = 0
            self._say(f"{self._path} was emptied: add jobs to its end (>>), as the next run reads them there, too")
        while self._at < size and self.refused < _MOST_REFUSED and self._take_in_some():
            continue

    def _take_in_some(self) -> bool:
        """Take in the next of them; whether there may be more."""
        try:
            with open(self._path, "rb") as stream:
                stream.seek(self._at)
                content = stream.read(_PIECE)
        except OSError:
            return False
        whole, newline, rest = content.rpartition(b"\n")
        if not newline and len(rest) > _LONGEST_LINE:
            self._at += len(rest)
            self._refuse("longer than 1 MiB")
            return True
        if _is_whole(rest):  # its writer has forgotten the newline
            whole, rest = content, b""
            if self._recalls:
                self._end_line()
        if not whole and not newline:
            return False
        self._at += len(content) - len(rest)
        self._take(whole.split(b"\n"))
        return True

    def _end_line(self) -> None:
        """End the last line, so that the next addition is a line of its own, for the next run too."""
        with suppress(OSError), open(self._path, "ab") as stream:
            stream.write(b"\n")

    def _take(self, lines: list[bytes]) -> None:
        """Take in lines that came together; they may refer to each other, whatever their order."""
        works: dict[Work, str] = {}
        links: list[tuple[str, str, tuple[str, ...]]] = []
        for line in lines:
            self._line += 1
            if not line.strip() or self.refused >= _MOST_REFUSED:
                continue
            where = f"{self._path}, line {self._line}"
            try:
                self._parse(line, where, works, links)
            except (UsageError, UnicodeDecodeError) as fault:
                self._refuse(str(fault))
        self._add(works)
        for where, name, after in links:
            try:
                find = self._engine.graph.find
                self._engine.put_before(find(name), [find(before) for before in after])
            except UsageError as fault:
                self._refuse(f"{where}: {fault}")

    def _parse(
        self, line: bytes, where: str, works: dict[Work, str], links: list[tuple[str, str, tuple[str, ...]]]
    ) -> None:
        found = from_json(where, line.decode())
        if not isinstance(found, dict) or "job" not in found:
            work = self._place(self._reader.job(found, where.rpartition(", ")[2]))
            if work.name not in self._engine.graph or self._engine.graph.find(work.name).work != work:
                works[work] = where
            return
        name, after = found.get("job"), found.get("after")
        if isinstance(name, str) and isinstance(after, list) and all(isinstance(one, str) for one in after):
            links.append((where, name, tuple(after)))
            return
        raise UsageError(f"{where}: expected a job's name as job and a list of names as after")

    def _add(self, works: dict[Work, str]) -> None:
        added: list[LaunchJob] = []
        try:
            added = self._engine.add(works)
        except UsageError:
            for work, where in works.items():  # one by one, so that what is sound is not lost with what is not
                try:
                    added += self._engine.add([work])
                except UsageError as fault:
                    self._refuse(f"{where}: {fault}")
        if self._recalls:
            recall(self._engine, self._store, added)

    def _refuse(self, reason: str) -> None:
        self.refused += 1
        self._say(f"a job was to be added, and is refused: {reason}")
        if self.refused == _MOST_REFUSED:
            self._say(f"{self._path}: {_MOST_REFUSED} lines are wrong: nothing more is read there")


def _is_whole(line: bytes) -> bool:
    """Tell whether a line without a newline is whole: the last letter of a table is the one that ends it."""
    if not line.endswith(b"}") or len(line) > _LONGEST_LINE:
        return False
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def recall(engine: Engine, store: Store, jobs: Iterable[LaunchJob], again: bool = False) -> int:
    """Tell the engine of jobs that have just been added; how many need not be run again.

    A job is done when it was done as it is now: the same command, after jobs that are the same and done. again: no job
    counts as done, but what is known of its time does.
    """
    ordered = list(in_order(jobs))
    for job in ordered:
        job.digest = digest_of(job.work, [before.digest for before in job.after])
    new = {job.name: job for job in ordered}
    was_done: dict[int, float | None] = {}
    for row in store.known(new):
        job = new[row.name]
        engine.remember(job, row.last_success)
        if not again and row.state == DONE and row.digest == job.digest:
            was_done[job.index] = row.wall
    count = 0
    for job in ordered:
        if job.index in was_done and job.state == READY:
            job.code, job.seconds = 0, was_done[job.index]
            engine.was_done(job)
            count += 1
    return count
