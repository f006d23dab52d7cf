"""What an administrator ordered from the pool side: cores back, or empty nodes, by a time.

The requests that stand lie in one directory, a file each: written by a command, read by the agent. Whoever may write
there may give the agent orders, as with its journal: root, or the user that the agent runs as.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields, replace

from drainwise.common.local_file import Held, make_public, read_json, read_small, replace_file
from drainwise.facts.errors import FeatureError, UsageError
from drainwise.facts.units import clock
from drainwise.pool.checked_json import checked, checked_object

FORMAT, VERSION = "drainwise request", 1
_JSON = {"str": "text", "int": "int", "str | None": "text?", "tuple[str, ...]": "list"}
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_ENDING, _RESUME = ".json", ".resume"
_LARGEST = 1 << 20  # bytes of one request
_MOST = 200


@dataclass(frozen=True)
class AdminRequest:
    """Either `cores` of pilots, of one `user` or `account` where one is named, or empty `nodes`, by `by` (UNIX s).

    name: what it is cancelled by. made: when, UNIX s; who: the user who made it. reason: in that user's words.
    """

    name: str
    made: int
    by: int
    cores: int = 0
    user: str | None = None
    account: str | None = None
    nodes: tuple[str, ...] = ()
    reason: str = ""
    who: str = ""

    def in_words(self) -> str:
        """Return what was ordered, for an administrator."""
        shown = ", ".join(self.nodes[:5]) + (", …" if len(self.nodes) > 5 else "")
        what = f"{shown} empty" if self.nodes else f"{self.cores} cores"
        whose = (f" of user {self.user}" if self.user else "") + (f" of account {self.account}" if self.account else "")
        why = f": {self.reason}" if self.reason else ""
        return f"request {self.name}: {what}{whose} by {clock(self.by)}{why}"

    def is_over(self, now: int) -> bool:
        """Return whether nothing more is done for it at `now` (UNIX s); nodes stay closed until it is cancelled."""
        return not self.nodes and now > self.by


def request_as_json(request: AdminRequest) -> dict[str, object]:
    """Return the request as plain values; times in UNIX s."""
    return {"format": FORMAT, "version": VERSION, **asdict(request), "nodes": list(request.nodes)}


def request_from_json(value: object) -> AdminRequest:
    """Return the request of plain values. Raises UsageError for what is none."""
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise UsageError("this is not a request of drainwise")
    if value.get("version") != VERSION:
        raise UsageError(f"a request of version {value.get('version')!r}: this drainwise reads version {VERSION}")
    keys = {"format": "text", "version": "int", **{one.name: _JSON[str(one.type)] for one in fields(AdminRequest)}}
    found = checked_object(value, keys, "the request")
    del found["format"], found["version"]
    nodes = tuple(checked(one, "text", f"node {place}") for place, one in enumerate(found.pop("nodes"), 1))
    request = AdminRequest(nodes=nodes, **found)
    if (request.cores < 1) == (not nodes) or request.by < 0 or request.made < 0 or not request.name:
        raise UsageError("the request: expected cores or nodes, a name and times of 0 or more")
    return request


@dataclass(frozen=True)
class RequestFiles:
    """The directory of one pool's requests; it need not be there. also: that stand beside those that are kept there."""

    directory: str
    also: tuple[AdminRequest, ...] = ()

    def standing(self, now: int) -> tuple[tuple[AdminRequest, ...], tuple[str, ...]]:
        """Return the requests that stand at `now` (UNIX s), the oldest first; sentences on files that are none.

        Raises UsageError when the directory is there and cannot be read.
        """
        found, faults = [one for one in self.also if not one.is_over(now)], []
        for name in self._names()[:_MOST]:
            try:
                request = self._read(name)
            except (FeatureError, UsageError) as fault:
                faults.append(f"{os.path.join(self.directory, name)} is passed over: {fault}")
                continue
            if request is not None and not request.is_over(now):
                found.append(request)
        return tuple(sorted(found, key=lambda one: (one.made, one.name))), tuple(faults)

    def add(self, request: AdminRequest) -> AdminRequest:
        """Write a request down and return it, with another name where its own is taken; remove those that are over.

        Raises UsageError when that cannot be done.
        """
        with self._opened("the request") as directory:
            fcntl.flock(directory, fcntl.LOCK_EX)  # until it is closed: two that come at once have two names
            for name in self._names():
                with suppress(OSError, FeatureError, UsageError):  # it stays, and is passed over
                    earlier = self._read(name)
                    if earlier is not None and earlier.is_over(request.made):
                        os.unlink(name, dir_fd=directory)
            taken = self._names()
            if len(taken) >= _MOST:
                raise UsageError(f"{self.directory}: {_MOST} requests stand; cancel some first")
            names = (request.name, *(f"{request.name}-{number}" for number in range(2, _MOST + 2)))
            named = replace(request, name=next(one for one in names if one + _ENDING not in taken))
            text = json.dumps(request_as_json(named)) + "\n"
            replace_file(named.name + _ENDING, text.encode("ascii"), directory, durable=True)
        return named

    def cancel(self, name: str, now: int) -> AdminRequest:
        """Remove the request of that name and return it. Raises UsageError when none stands, naming those that do."""
        known, _ = self.standing(now)
        request = next((one for one in known if one.name == name), None)
        if request is None:
            named = ", ".join(one.name for one in known) or "none"
            raise UsageError(f"no request is called {name!r}; there is {named}")
        try:
            os.unlink(os.path.join(self.directory, name + _ENDING))
        except OSError as fault:
            raise UsageError(f"{self.directory}: {name} cannot be removed: {fault.strerror}") from None
        return request

    def resume(self, account: str) -> None:
        """Write down that the account's paused demand is to count again. Raises UsageError when that cannot be done."""
        name = hashlib.sha256(account.encode("utf-8", "surrogateescape")).hexdigest()[:32] + _RESUME
        with self._opened("it") as directory:
            replace_file(name, json.dumps(account).encode("ascii"), directory, durable=True)

    def resumed(self) -> Iterator[str]:
        """Yield each account of `resume`, and forget it when the next one is asked for: what was done is written then.

        Raises UsageError when the directory is there and cannot be read.
        """
        for name in self._names(_RESUME):
            path = os.path.join(self.directory, name)
            with suppress(FeatureError, ValueError):
                account = read_json(path, _LARGEST)
                if isinstance(account, str):
                    yield account
            with suppress(OSError):
                os.unlink(path)

    @contextmanager
    def _opened(self, what: str) -> Iterator[int]:
        """Open the directory to keep something there, and make it where there is none. Raises UsageError."""
        try:
            make_public(self.directory)
            with Held(os.open(self.directory, os.O_RDONLY | os.O_DIRECTORY)) as directory:
                yield directory
        except OSError as fault:
            raise UsageError(f"{self.directory}: {what} cannot be kept there: {fault.strerror}") from None

    def _names(self, ending: str = _ENDING) -> list[str]:
        try:
            names = os.listdir(self.directory)
        except FileNotFoundError:
            return []
        except OSError as fault:
            raise UsageError(f"{self.directory}: the requests cannot be read: {fault.strerror}") from None
        return sorted(name for name in names if name.endswith(ending) and _NAME.fullmatch(name[: -len(ending)]))

    def _read(self, name: str) -> AdminRequest | None:
        """Return the request in a file; None when it has just gone. Raises FeatureError and UsageError."""
        found = read_small(os.path.join(self.directory, name), _LARGEST)
        if found is None:
            return None
        try:
            request = request_from_json(json.loads(found[0]))
        except (ValueError, RecursionError):
            raise UsageError("it is not JSON") from None
        if request.name + _ENDING != name:
            raise UsageError(f"it is called {request.name!r} inside")
        return request
