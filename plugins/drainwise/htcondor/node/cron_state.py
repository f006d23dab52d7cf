"""What the startd cron is told on its command line, and what its rounds leave to each other in files beside its logs.

The drop-in hands over its node's configuration, each value as HTCondor has it after all files were read.

A startd takes orders only when ENABLE_RUNTIME_CONFIG was true at its start. No attribute of HTCondor's says so, but
each slot shows when its startd started (DaemonStartTime). So the cron publishes since when the configuration has been
there, `PilotOrdersSince`: a startd that started earlier takes no orders until it is restarted. The time is kept in the
cron's state file, since a drop-in that is rendered again is a new file.

A hook's file that is gone, or that the jobs' users cannot run, is no fault of the cron: unless it is published, the
node would look sound. When the cron's own file or the package is gone, the cron's heartbeat stops. A starter reads the
configuration once: a job that started before the hooks were there, or while they were away, cannot receive an order,
however often the node is reconfigured. The cron comes and goes with the hooks' files. So all jobs find the hooks since
the cron runs without a gap and finds all files, of which it keeps a note beside its state file.
"""

from __future__ import annotations

import binascii
import posix
import sys

from drainwise.facts import fact
from drainwise.htcondor.node import ALWAYS, NEVER
from drainwise.node.hook import read_bounded
from drainwise.pilotad.attributes import HEARTBEAT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    Published = dict[str, tuple[str, str]]  # slot name -> (text of its ad, what was refused in its report)
    Remembered = dict[str, tuple[str, str, str]]  # slot name -> see `marks_of`

START_SECONDS = 60
"""The first run of a cron that was configured when its startd started comes within this many seconds."""
USUAL_VACATE = 600
"""HTCondor's own MachineMaxVacateTime (s): what jobs have that started before anybody set another."""
NODE_TAG = "drainwise"
"""Stands for the node itself among the slots."""
NOTHING = ("0" * 16, "", "0")
"""The marks of a slot for which nothing was printed."""

_LIMIT, _LONGEST = 1 << 22, 11  # bytes; digits of a time, and one more
_NO_CHANGE = f"{HEARTBEAT} = "
_AT_ONCE = ("SlotMergeConstraint", "PilotReturned", "PilotLendsNoMore")  # whose run it is, what it has returned
_MISSED, _LATE = 3, 60  # rounds that were missed, and seconds beyond, after which the hooks may have been away as well
_READABLE, _RUN = 0o004, 0o005


def options(arguments: Iterable[str]) -> dict[str, str]:
    """Return `--name value` pairs by name; a value may have several words, or none."""
    found: dict[str, str] = {}
    name = ""
    for word in arguments:
        if word[:2] == "--":
            name = word[2:]
            found[name] = ""
        elif name:
            found[name] = f"{found[name]} {word}".lstrip()
    return found


def seconds(text: str) -> int | None:
    """Read a number of seconds or a product of some (`10 * 60`); None for another expression."""
    result = 1
    for factor in text.split("*"):
        digits = factor.strip()
        if not digits.isdigit() or not digits.isascii() or len(digits) > 9:
            return None
        result *= int(digits)
    return result


def orders_possible(knobs: dict[str, str]) -> bool | None:
    """Decide whether the configuration lets a startd take orders and pass them on; None when the drop-in does not say.

    An older drop-in does not.
    """
    if "runtime" not in knobs or "hooks" not in knobs:
        return None
    return knobs["runtime"].lower() in {"true", "t", "yes", "1"} and knobs["hooks"] == knobs.get("keyword")


def orders_since(known: int | None, older: bool, possible: bool, placed: int | None, now: int) -> int:
    """Return since when (UNIX s) a startd that starts with this configuration takes orders; NEVER, ALWAYS.

    known: what the round before found, None when there was none. older: whether an older version ran here. possible:
    see `orders_possible`. placed: when the drop-in was put in its place (UNIX s), None when it lies elsewhere.
    """
    if not possible:
        return NEVER
    if known:
        return known
    if known is None and older:
        return ALWAYS
    return min(placed, now) if known is None and placed is not None else now - START_SECONDS


def placed_at(directories: str, name: str) -> int | None:
    """Return when this file came to its place in one of HTCondor's directories or was changed last (UNIX s).

    None when it is in none of them, or cannot be seen there.
    """
    for directory in directories.replace(",", " ").split():
        try:
            return int(posix.stat(f"{directory}/{name}").st_ctime)
        except OSError:
            continue
    return None


@fact
class CronState:
    """The record that a round leaves to the next.

    `since`: see `orders_since`; None when no round with such a drop-in ran. `vacate`: the largest
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
    lines = kept_lines(path)
    rows = [line.split(" ") for line in lines or ()]
    own = [row for row in rows if row[0] == NODE_TAG]
    marks = {row[0]: (row[1], row[2], (*row, "0")[3]) for row in rows if len(row) in {3, 4} and row not in own}
    marks = {slot: mark for slot, mark in marks.items() if mark[2].isdigit() and len(mark[2]) < _LONGEST}
    for row in own:
        if len(row) == 4 and row[1].isdigit() and row[2].isdigit():
            return CronState(int(row[1]), max(int(row[2]), USUAL_VACATE), marks, True, row[3])
    return CronState(None, USUAL_VACATE, marks, lines is not None)


def remember(path: str, state: CronState) -> None:
    """Keep what this round found and printed, as a whole or not at all; raises OSError."""
    lines = [] if state.since is None else [f"{NODE_TAG} {state.since} {state.vacate} {state.node}\n"]
    lines += [f"{slot} {ad} {refused} {sent}\n" for slot, (ad, refused, sent) in state.marks.items()]
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


def hooks_since(state: str, period: int, now: int, unusable: Collection[str] = ()) -> int:
    """Return since when (UNIX s) all jobs that start here find the hooks; 0 when nobody took note of it.

    That is the first round, the first after rounds were missed, or the last with `unusable` files. state: the cron's
    state file, which is there already where an earlier drainwise was. period: seconds between two rounds; 0 when it is
    not known. Raises OSError when the note cannot be kept.
    """
    note = f"{state}.since"
    try:
        text, last = read_bounded(note, _LONGEST - 1).decode("ascii", "replace"), posix.stat(note).st_mtime
    except FileNotFoundError:
        since = 0 if _mode_of(state) is not None else now
    else:
        was_away = bool(period) and now - last > _MISSED * period + _LATE
        if not unusable and text.isdigit() and not was_away:
            posix.utime(note)
            return int(text)
        since = now if unusable or text.isdigit() else 0
    replace_file(note, str(since))
    return since


def state_of(path: str, startd: int) -> str:
    """Return where a startd's cron keeps its state: of several on a machine each but the first has its own file.

    path: of the first one's, or of all, as an earlier version kept it. HTCondor tells them apart by `-local-name`.
    """
    try:
        words = read_bounded(f"/proc/{startd}/cmdline", _LIMIT).decode("ascii", "replace").split("\0")
        name = words[words.index("-local-name") + 1]
    except (OSError, ValueError, IndexError):
        return path
    own = f"{path}@{name.replace('/', '-')}"
    known = kept_lines(path) if _mode_of(own) is None else None
    if known:
        replace_file(own, "\n".join([*known, ""]))
    return own


def unusable_files(settings: str) -> list[str]:
    """Return which of the hooks beside this program, their modules and the settings' file other users cannot use."""
    programs, package = sys.argv[0].rpartition("/")[0], __file__.rpartition("/")[0]
    wanted = {f"{programs}/prepare-hook": _RUN, f"{programs}/update-hook": _RUN}
    for path in (f"{package}/prepare_hook.py", f"{package}/update_hook.py", f"{programs}/hooks.conf", settings):
        wanted[path] = _READABLE
    return [path for path, mode in wanted.items() if (_mode_of(path) or 0) & mode != mode]


def _mode_of(path: str) -> int | None:
    try:
        return posix.stat(path).st_mode
    except OSError:
        return None


def kept_lines(path: str) -> list[str] | None:
    """Return the lines of a file of the cron's; None where there is none."""
    try:
        return read_bounded(path, _LIMIT).decode("ascii", "replace").splitlines()
    except OSError:
        return None


def replace_file(path: str, text: str) -> None:
    """Write a file of the cron's, as a whole or not at all; raises OSError."""
    with open(f"{path}.new", "wb") as stream:
        stream.write(text.encode("ascii"))
    posix.rename(f"{path}.new", path)
