"""Name the reasons for which a pilot is spared: by code, which programs read; docs/troubleshoot.md has the table."""

from __future__ import annotations

RESERVED, ORDERED, ENDING, SCOPE, CANNOT, EARLY = "reserved", "ordered", "ending", "scope", "cannot", "early"
YOUNG, WITHDRAWN, UNANSWERED, REFUSED, NODE = "young", "withdrawn", "unanswered", "refused", "node"
NO_PLACE, LIMIT, LATER, NOT_NEEDED = "no-place", "limit", "later", "not-needed"
REASONS = {
    RESERVED: "it goes for a request, or its node closes",
    ORDERED: "it has an order already",
    ENDING: "the batch system ends it already",
    SCOPE: "the site leaves it alone: `[reclaim] preemptible`, `exempt`, a `[scope]`",
    CANNOT: "no order can reach it, or it would not know of one",
    EARLY: "its claim lets it be ended before it knows of an order",
    YOUNG: "`[reclaim] min_age`",
    WITHDRAWN: "its last order was withdrawn within the hour",
    UNANSWERED: "nobody answered its last order, which may still be carried out",
    REFUSED: "its last order was refused within the last ten minutes",
    NODE: "its node refused an order, or did not answer one",
    NO_PLACE: "it is not known where its cores come back",
    LIMIT: "a limit of `[reclaim]` lets no more go now; the sentence names it",
    LATER: "it is better ordered later: the need stays open",
    NOT_NEEDED: "others cost less, or have what the waiting jobs need",
}
"""By code what each means."""


class Reason(str):
    """A sentence that says why a pilot is spared; code: one of REASONS. "" where it may get an order."""

    __slots__ = ("code",)
    code: str

    def __new__(cls, words: str = "", code: str = "") -> Reason:
        """Return the sentence with its code."""
        self = super().__new__(cls, words)
        self.code = code
        return self
