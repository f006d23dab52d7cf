"""The record that one round of the startd cron leaves to the next: a small file beside HTCondor's logs."""

from __future__ import annotations

import binascii
import posix

from drainwise.facts import fact
from drainwise.htcondor.node.knobs import USUAL_VACATE
from drainwise.node.hook import read_bounded

TYPE_CHECKING = False
if TYPE_CHECKING:
    Published = dict[str, tuple[str, str]]  # slot name -> (text of its ad, what was refused in its report)
    Remembered = dict[str, tuple[str, str]]  # slot name -> (checksum of its ad, checksum of what was refused)

NODE_TAG = "drainwise"
"""Stands for the node itself among the slots."""

_LIMIT = 1 << 20


@fact
class CronState:
    """The record that a round leaves to the next.

    `since`: see `knobs.orders_since`; None when no round with such a drop-in ran. `vacate`: the largest
    MachineMaxVacateTime (s) that this node had. `marks`: what was printed. `found`: whether there was a record.
    """

    since: int | None
    vacate: int
    marks: Remembered
    found: bool


def remembered(path: str) -> CronState:
    """Read what the last round left; nothing when there was none or its record is broken."""
    try:
        lines = read_bounded(path, _LIMIT).decode("ascii", "replace").splitlines()
    except OSError:
        return CronState(None, USUAL_VACATE, {}, False)
    rows = [line.split(" ") for line in lines]
    marks = {row[0]: (row[1], row[2]) for row in rows if len(row) == 3}
    for row in rows:
        if len(row) == 4 and row[0] == NODE_TAG and row[1].isdigit() and row[2].isdigit():
            return CronState(int(row[1]), max(int(row[2]), USUAL_VACATE), marks, True)
    return CronState(None, USUAL_VACATE, marks, True)


def remember(path: str, since: int | None, vacate: int, marks: Remembered) -> None:
    """Keep what this round found and printed, as a whole or not at all; raises OSError."""
    lines = [] if since is None else [f"{NODE_TAG} {since} {vacate} -\n"]
    lines += [f"{slot} {ad} {refused}\n" for slot, (ad, refused) in marks.items()]
    replace_file(path, "".join(lines))


def checksum(text: str) -> str:
    """Return a short mark by which a later round sees a change."""
    return f"{binascii.crc32(text.encode()):08x}"


def marks_of(published: Published) -> Remembered:
    """Return the marks of a round's ads."""
    return {slot: (checksum(ad), checksum(refused)) for slot, (ad, refused) in published.items()}


def replace_file(path: str, text: str) -> None:
    """Write a file of the cron's, as a whole or not at all; raises OSError."""
    with open(f"{path}.new", "wb") as stream:
        stream.write(text.encode("ascii"))
    posix.rename(f"{path}.new", path)
