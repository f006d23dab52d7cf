"""The views of a journal: what the agent writes for each user of that user's pilots alone, for whoever may not read it.

An event of the journal is taken apart: other accounts stay as numbers of cores, and who sent a pilot is left out. The
views are files, one for each user, in a directory that only the agent writes: bounded in size and in number. The user
of that name on this machine may read its view by an access control list, or all may, as the site says. The files stay
the agent's: a user could fill its own. That one cannot be written stops no agent: no order depends on it.
"""

from __future__ import annotations

import os
import pwd
import stat
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from drainwise.common.acl import lend
from drainwise.common.local_file import make_public
from drainwise.journal.event import Event, Kind
from drainwise.journal.file import Journal, journal_line

OTHERS = "other accounts"
_OF_A_PILOT = {Kind.ORDER, Kind.WITHDRAWAL, Kind.ENDED, Kind.PART}
_KEPT = (
    "event",
    "version",
    "time",
    "acting",
    "taken",
    "policy",
    "demand",
    "free",
    "leaving",
    "deficit",
    "spared_count",
)
_PILOT = ("run", "name", "node", "account", "user", "cores", "started", "client", "reason")
_LISTS = {"chosen": ("run", "name", "account", "user"), "spared": _PILOT}
MOST_NAMED = 20
"""Pilots of a user that a decision in its view names, chosen or spared: the first ones."""


def own_events(event: Event) -> dict[str, dict[str, object]]:
    """Return for each user that an event concerns the part that its own view has, by user; none for other kinds."""
    if event.get("event") in _OF_A_PILOT:
        user = event.get("user")
        return {user: _without_others(event)} if isinstance(user, str) else {}
    if event.get("event") != Kind.DECISION or event.get("acting") is not True:
        return {}
    found = defaultdict[str, "dict[str, list[object]]"](lambda: {name: [] for name in _LISTS})
    for name, keys in _LISTS.items():
        for one in _objects(event, name):
            if isinstance(user := one.get("user"), str) and len(found[user][name]) < MOST_NAMED:
                found[user][name].append({key: one[key] for key in keys if key in one})
    return {user: {**_decided(event, user), **lists} for user, lists in found.items()}


def _decided(event: Event, user: str) -> dict[str, object]:
    """Return what of a decision any user may know: how many cores were needed, and the user's own part."""
    waits = sum(cores for one in _objects(event, "waiting") if isinstance(cores := one.get("cores"), (int, float)))
    return {
        **{name: event[name] for name in _KEPT if name in event},
        "waiting": [{"account": OTHERS, "cores": waits}] if waits else [],
        "users": [one for one in _objects(event, "users") if one.get("user") == user],
        **({"requests": requests} if (requests := [_request(one) for one in _objects(event, "requests")]) else {}),
    }


def _request(one: Event) -> dict[str, object]:
    """Return a request without the nodes and names of others: its reason is for those who have to go."""
    return {**one, "user": None, "account": None, "nodes": []}


def _without_others(one: Event) -> dict[str, object]:
    """Return what an event tells of a pilot, without who sent it and for whose jobs it makes room."""
    found = {name: value for name, value in one.items() if name != "identity"}
    room = found.get("room")
    if isinstance(room, dict):
        jobs = [{**job, "kind": "", "account": OTHERS, "example": ""} for job in _objects(room, "jobs")]
        found["room"] = {**room, "jobs": jobs}
    return found


def _objects(event: Event, name: str) -> Iterable[dict[str, Any]]:
    values = event.get(name)
    return [cast("dict[str, Any]", one) for one in values if isinstance(one, dict)] if isinstance(values, list) else []


OWNER, ALL, NOBODY = "owner", "all", "no"
"""Who may read a view: `[journal] view`."""
VIEWS = ".explain.d"
"""The end of the name of a directory of views, beside the agent's lock."""
LARGEST_VIEW, MOST_VIEWS = 1_000_000, 2000
"""Bytes that a view grows to before it becomes the older one of two; files in the directory."""
_LONGEST_NAME = 120
_READ = 4
_END, _OLDER = ".jsonl", ".1"


def view_name(user: str) -> str:
    """Return the file name of a user's view: ASCII letters, digits and `_-~@.` alone, no hidden file, no path."""
    from urllib.parse import quote  # noqa: PLC0415 - who writes no view starts without it

    name = quote(user, safe="@", errors="surrogatepass").replace("%", "=") or "="
    name = f"=2E{name[1:]}" if name.startswith(".") else name
    if len(name) > _LONGEST_NAME:
        import hashlib  # noqa: PLC0415

        name = f"{name[:_LONGEST_NAME]}={hashlib.sha256(user.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"
    return f"{name}{_END}"


def views_in(directory: str) -> list[str]:
    """Return the views that whoever asks may read, each older one before its newer; none where it may not look."""
    try:
        names = sorted(os.listdir(directory), key=lambda name: (name.removesuffix(_OLDER), not name.endswith(_OLDER)))
    except OSError:
        return []
    paths = [f"{directory}/{name}" for name in names if name.removesuffix(_OLDER).endswith(_END)]
    return [path for path in paths if os.access(path, os.R_OK)]


class JournalWithViews:
    """A journal that also keeps the users' views, in `directory`.

    readers: OWNER or ALL. say: is told once why a view cannot be written.
    """

    def __init__(self, journal: Journal, directory: str, readers: str, say: Callable[[str], None]) -> None:
        self._journal, self._directory, self._readers, self._say = journal, directory, readers, say
        self._is_told = False

    def write(self, event: Mapping[str, object]) -> None:
        """Keep one event in the journal, then in the views that it concerns. Raises as the journal does."""
        self._journal.write(event)
        try:
            own = own_events(event)
            if own:
                make_public(self._directory)
            for user, part in own.items():
                _append(self._directory, user, journal_line(part).encode("ascii"), self._readers)
        except (OSError, ValueError) as fault:
            if not self._is_told:
                reason = getattr(fault, "strerror", None) or fault
                self._say(f"what `explain` shows users of their own pilots cannot be written: {reason}")
            self._is_told = True


def _append(directory: str, user: str, line: bytes, readers: str) -> None:
    path = f"{directory}/{view_name(user)}"
    descriptor = _opened(path, user, readers)
    try:
        size = os.fstat(descriptor).st_size
        if size and size + len(line) > LARGEST_VIEW:
            os.replace(path, path + _OLDER)
            os.close(descriptor)
            descriptor = _opened(path, user, readers)
        os.write(descriptor, line)
    finally:
        os.close(descriptor)


def _opened(path: str, user: str, readers: str) -> int:
    flags = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        descriptor = os.open(path, flags)
    except FileNotFoundError:
        _make_room(os.path.dirname(path))
        descriptor = os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(0, "it is not a regular file", path)
        uid = _uid_of(user) if readers == OWNER else None
        if readers == ALL:
            os.fchmod(descriptor, 0o644)
        elif uid is not None:
            lend(descriptor, uid, _READ)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _uid_of(user: str) -> int | None:
    """Return the uid of the user of that name on this machine, without the domain; None for root and where none is."""
    try:
        return pwd.getpwnam(user.partition("@")[0]).pw_uid or None
    except (KeyError, ValueError):
        return None


def _make_room(directory: str) -> None:
    """Remove the view that was written to least recently where there are too many: users come and go."""
    with os.scandir(directory) as entries:
        found = [(entry.stat(follow_symlinks=False).st_mtime, entry.path) for entry in entries]
    for _, path in sorted(found)[: -(MOST_VIEWS - 1)]:
        os.unlink(path)
