"""What an administrator ordered from the pool side: cores back, or empty nodes, by a time; and as JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from drainwise.facts.errors import UsageError
from drainwise.facts.units import clock
from drainwise.pool.checked_json import checked, checked_object

FORMAT, VERSION = "drainwise request", 1
_KEYS = {
    "format": "text",
    "version": "int",
    "name": "text",
    "made": "int",
    "by": "int",
    "cores": "int",
    "user": "text?",
    "account": "text?",
    "nodes": "list",
    "reason": "text",
    "who": "text",
}


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


def request_as_json(request: AdminRequest) -> dict[str, object]:
    """Return the request as plain values; times in UNIX s."""
    return {"format": FORMAT, "version": VERSION, **asdict(request), "nodes": list(request.nodes)}


def request_from_json(value: object) -> AdminRequest:
    """Return the request of plain values. Raises UsageError for what is none."""
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise UsageError("this is not a request of drainwise")
    if value.get("version") != VERSION:
        raise UsageError(f"a request of version {value.get('version')!r}: this drainwise reads version {VERSION}")
    found = checked_object(value, _KEYS, "the request")
    del found["format"], found["version"]
    nodes = tuple(checked(one, "text", f"node {place}") for place, one in enumerate(found.pop("nodes"), 1))
    request = AdminRequest(nodes=nodes, **found)
    if (request.cores < 1) == (not nodes) or request.by < 0 or request.made < 0 or not request.name:
        raise UsageError("the request: expected cores or nodes, a name and times of 0 or more")
    return request
