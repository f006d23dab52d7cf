"""The requests that stand, a file each in one directory: written by a command, read by the agent.

Whoever may write there may give the agent orders, as with its journal: root, or the user that the agent runs as.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from drainwise.common.local_file import make_public, read_small, replace_file
from drainwise.facts.errors import FeatureError, UsageError
from drainwise.requests.request import AdminRequest, request_as_json, request_from_json

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_ENDING, _RESUME = ".json", ".resume"
_LARGEST = 1 << 20  # bytes of one request
_MOST = 200


@dataclass(frozen=True)
class RequestFiles:
    """The directory of one pool's requests; it need not be there."""

    directory: str

    def standing(self, now: int) -> tuple[tuple[AdminRequest, ...], tuple[str, ...]]:
        """Return the requests that stand at `now` (UNIX s), the oldest first; sentences on files that are none.

        Raises UsageError when the directory is there and cannot be read.
        """
        found, faults = [], []
        for name in self._names()[:_MOST]:
            try:
                request = self._read(name)
            except (FeatureError, UsageError) as fault:
                faults.append(f"{os.path.join(self.directory, name)} is passed over: {fault}")
                continue
            if request is not None and not is_over(request, now):
                found.append(request)
        return tuple(sorted(found, key=lambda one: (one.made, one.name))), tuple(faults)

    def add(self, request: AdminRequest) -> AdminRequest:
        """Write a request down and return it, with another name where its own is taken; remove those that are over.

        Raises UsageError when that cannot be done.
        """
        try:
            make_public(self.directory)
            directory = os.open(self.directory, os.O_RDONLY | os.O_DIRECTORY)
            try:
                fcntl.flock(directory, fcntl.LOCK_EX)  # until it is closed: two that come at once have two names
                self._remove_old(request.made)
                taken = self._names()
                if len(taken) >= _MOST:
                    raise UsageError(f"{self.directory}: {_MOST} requests stand; cancel some first")
                names = (request.name, *(f"{request.name}-{number}" for number in range(2, _MOST + 2)))
                named = replace(request, name=next(one for one in names if one + _ENDING not in taken))
                text = json.dumps(request_as_json(named)) + "\n"
                replace_file(named.name + _ENDING, text.encode("ascii"), directory, durable=True)
            finally:
                os.close(directory)
        except OSError as fault:
            raise UsageError(f"{self.directory}: the request cannot be kept there: {fault.strerror}") from None
        return named

    def cancel(self, name: str, now: int) -> AdminRequest:
        """Remove the request of that name and return it. Raises UsageError when none stands, naming those that do."""
        known, _ = self.standing(now)
        request = next((one for one in known if one.name == name), None)
        if request is None:
            raise UsageError(f"no request is called {name!r}; there is {_names_of(known)}")
        try:
            os.unlink(os.path.join(self.directory, name + _ENDING))
        except OSError as fault:
            raise UsageError(f"{self.directory}: {name} cannot be removed: {fault.strerror}") from None
        return request

    def resume(self, account: str) -> None:
        """Write down that the account's paused demand is to count again. Raises UsageError when that cannot be done."""
        name = hashlib.sha256(account.encode("utf-8", "surrogateescape")).hexdigest()[:32] + _RESUME
        try:
            make_public(self.directory)
            directory = os.open(self.directory, os.O_RDONLY | os.O_DIRECTORY)
            try:
                replace_file(name, json.dumps(account).encode("ascii"), directory, durable=True)
            finally:
                os.close(directory)
        except OSError as fault:
            raise UsageError(f"{self.directory}: it cannot be kept there: {fault.strerror}") from None

    def resumed(self) -> Iterator[str]:
        """Yield each account of `resume`, and forget it when the next one is asked for: what was done is written then.

        Raises UsageError when the directory is there and cannot be read.
        """
        for name in self._names(_RESUME):
            path = os.path.join(self.directory, name)
            with suppress(FeatureError, ValueError, RecursionError):
                found = read_small(path, _LARGEST)
                account = json.loads(found[0]) if found is not None else None
                if isinstance(account, str):
                    yield account
            with suppress(OSError):
                os.unlink(path)

    def _remove_old(self, now: int) -> None:
        for name in self._names():
            try:
                request = self._read(name)
                if request is not None and is_over(request, now):
                    os.unlink(os.path.join(self.directory, name))
            except (OSError, FeatureError, UsageError):
                continue  # it stays, and is passed over

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


def is_over(request: AdminRequest, now: int) -> bool:
    """Return whether nothing more is done for a request at `now` (UNIX s); nodes stay closed until it is cancelled."""
    return not request.nodes and now > request.by


def _names_of(requests: Sequence[AdminRequest]) -> str:
    return ", ".join(one.name for one in requests) or "none"
