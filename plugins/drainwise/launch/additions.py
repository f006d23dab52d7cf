"""Jobs and dependencies that jobs add while they run: lines that they append to a file, read as they come.

{"name": "merge-7", "command": [...], "after": ["part-1", "part-2"]}      one more job
{"job": "report", "after": ["merge-7"]}                                   a job has to wait for others, too
"""

from __future__ import annotations

import os
from collections.abc import Callable

from drainwise.errors import UsageError
from drainwise.launch.engine import Engine
from drainwise.launch.job_reader import JobReader
from drainwise.launch.memory import recall
from drainwise.launch.store import Store
from drainwise.launch.work import Job, Work
from drainwise.written_file import from_json

_LONGEST_LINE = 1 << 20
_PIECE = 1 << 22


class Additions:
    """The file `path`, from its beginning: what an earlier run was told belongs to the launch.

    place: gives a job its backend. Lines that are wrong are refused, said, and counted.
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
        self._reader, self._place, self._say = reader, place, say
        self._at = 0
        self._recalls = True
        self._line = 0
        self.refused = 0

    def look_first(self) -> None:
        """Take in what earlier runs were told; nothing is recalled of any job yet."""
        self._recalls = False
        self.look()
        self._recalls = True

    def look(self) -> None:
        """Take in all whole lines that have come."""
        while self._take_in_some():
            continue

    def _take_in_some(self) -> bool:
        """Take in the next of them; whether there may be more."""
        try:
            if os.stat(self._path).st_size <= self._at:
                return False
            with open(self._path, "rb") as stream:
                stream.seek(self._at)
                content = stream.read(_PIECE)
        except OSError:
            return False  # nobody has added any
        whole, newline, rest = content.rpartition(b"\n")
        if not newline:
            if len(rest) > _LONGEST_LINE:
                self._at += len(rest)
                self._refuse("longer than 1 MiB")
            return False
        self._at += len(whole) + 1
        self._take(whole.split(b"\n"))
        return True

    def _take(self, lines: list[bytes]) -> None:
        """Lines that stand together may refer to each other, whatever their order."""
        works: list[Work] = []
        links: list[tuple[str, tuple[str, ...]]] = []
        for line in lines:
            self._line += 1
            if not line.strip():
                continue
            try:
                self._parse(line, works, links)
            except (UsageError, UnicodeDecodeError) as fault:
                self._refuse(str(fault))
        self._add(works)
        for name, after in links:
            try:
                job = self._engine.graph.find(name)
                for before in after:
                    self._engine.put_before(job, self._engine.graph.find(before))
            except UsageError as fault:
                self._refuse(str(fault))

    def _parse(self, line: bytes, works: list[Work], links: list[tuple[str, tuple[str, ...]]]) -> None:
        where = f"{self._path}, line {self._line}"
        found = from_json(where, line.decode())
        if not isinstance(found, dict) or "job" not in found:
            works.append(self._place(self._reader.job(found, f"line {self._line}")))
            return
        name, after = found.get("job"), found.get("after")
        if isinstance(name, str) and isinstance(after, list) and all(isinstance(one, str) for one in after):
            links.append((name, tuple(after)))
            return
        raise UsageError(f"{where}: expected a job's name as job and a list of names as after")

    def _add(self, works: list[Work]) -> None:
        added: list[Job] = []
        try:
            added = self._engine.add(works)
        except UsageError:
            for work in works:  # one by one, so that what is sound is not lost with what is not
                try:
                    added += self._engine.add([work])
                except UsageError as fault:
                    self._refuse(str(fault))
        if self._recalls:
            recall(self._engine, self._store, added)

    def _refuse(self, reason: str) -> None:
        self.refused += 1
        self._say(f"a job was to be added, and is refused: {reason}")
