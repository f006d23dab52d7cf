"""The record that one round of the startd cron leaves to the next: a small file beside HTCondor's logs."""

from __future__ import annotations

import binascii
import posix

from drainwise.facts import fact
from drainwise.htcondor.node.knobs import USUAL_VACATE
from drainwise.node.hook import read_bounded
from drainwise.pilotad.attributes import HEARTBEAT

TYPE_CHECKING = False
if TYPE_CHECKING:
    Published = dict[str, tuple[str, str]]  # slot name -> (text of its ad, what was refused in its report)
    Remembered = dict[str, tuple[str, str, str]]  # slot name -> see `marks_of`

NODE_TAG = "drainwise"
"""Stands for the node itself among the slots."""

NOTHING = ("0" * 16, "", "0")
"""The marks of a slot for which nothing was printed."""

_LIMIT, _LONGEST = 1 << 20, 11  # bytes; digits of a time, and one more
_NO_CHANGE = f"{HEARTBEAT} = "
_AT_ONCE = ("SlotMergeConstraint", "PilotReturned", "PilotLendsNoMore")  # whose run it is, what it has returned


@fact
class CronState:
    """The record that a round leaves to the next.

    `since`: see `knobs.orders_since`; None when no round with such a drop-in ran. `vacate`: the largest
    MachineMaxVacateTime (s) that this node had. `marks`: what was printed. `found`: whether there was a record.
    `node`: the checksum of what was printed of the node itself.
    """

    since: int | None
    vacate: int
    marks: Remembered
    found: bool
    node: str = ""


def remembered(path: str) -> CronState:
    """Read what the last round left; nothing when there was none or its record is broken."""
    try:
        lines = read_bounded(path, _LIMIT).decode("ascii", "replace").splitlines()
    except OSError:
        return CronState(None, USUAL_VACATE, {}, False)
    rows = [line.split(" ") for line in lines]
    own = [row for row in rows if row[0] == NODE_TAG]
    marks = {row[0]: (row[1], row[2], (*row, "0")[3]) for row in rows if len(row) in {3, 4} and row not in own}
    marks = {slot: mark for slot, mark in marks.items() if mark[2].isdigit() and len(mark[2]) < _LONGEST}
    for row in own:
        if len(row) == 4 and row[1].isdigit() and row[2].isdigit():
            return CronState(int(row[1]), max(int(row[2]), USUAL_VACATE), marks, True, row[3])
    return CronState(None, USUAL_VACATE, marks, True)


def remember(path: str, since: int | None, vacate: int, marks: Remembered, node: str) -> None:
    """Keep what this round found and printed, as a whole or not at all; raises OSError."""
    lines = [] if since is None else [f"{NODE_TAG} {since} {vacate} {node}\n"]
    lines += [f"{slot} {ad} {refused} {sent}\n" for slot, (ad, refused, sent) in marks.items()]
    replace_file(path, "".join(lines))


def checksum(text: str) -> str:
    """Return a short mark by which a later round sees a change."""
    return f"{binascii.crc32(text.encode()):08x}"


def marks_of(published: Published, before: Remembered, now: int, pause: int) -> Remembered:
    """Return the marks of a round's ads: the checksums of what was sent last and of what was refused, when it was sent.

    An ad is to be sent at once where it tells of another run or of other cores that were returned; else where it tells
    something new and was not sent for `pause` seconds at `now` (UNIX s). Each startd sends it now and then by itself.
    """
    marks: Remembered = {}
    for slot, (ad, refused) in published.items():
        lines = [line for line in ad.split("\n") if not line.startswith(_NO_CHANGE)]
        at_once = [line for line in lines if line.startswith(_AT_ONCE)]
        mark, (last, _, sent) = checksum("\n".join(lines)) + checksum("\n".join(at_once)), before.get(slot, NOTHING)
        if mark[8:] != last[8:] or (mark != last and not 0 <= now - int(sent) < pause):
            last, sent = mark, str(now)
        marks[slot] = (last if ad else NOTHING[0], checksum(refused), sent)
    return marks


def replace_file(path: str, text: str) -> None:
    """Write a file of the cron's, as a whole or not at all; raises OSError."""
    with open(f"{path}.new", "wb") as stream:
        stream.write(text.encode("ascii"))
    posix.rename(f"{path}.new", path)
