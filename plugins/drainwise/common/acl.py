"""Lend one daemon user the way into a private job directory, by a POSIX access control list.

The node's cron runs as HTCondor's own user and cannot look into a job's 0700 directory. The hook, which runs as the
directory's owner, adds a single entry: that user may pass through (not list, not write). Everybody else stays out,
nothing lies outside the job's directory that would have to be cleaned up, and the list dies with the directory.
"""

from __future__ import annotations

import errno
import posix

ACCESS_LIST = "system.posix_acl_access"
PASS_THROUGH = 1  # x of a directory

_VERSION = 2
_USER_OBJ, _USER, _GROUP_OBJ, _GROUP, _MASK, _OTHER = 0x01, 0x02, 0x04, 0x08, 0x10, 0x20
_MASKED = (_USER, _GROUP_OBJ, _GROUP)
_UNNAMED = 0xFFFFFFFF

Entry = tuple[int, int, int]  # tag, permission bits, uid or gid


def decode(blob: bytes) -> list[Entry]:
    """Decode a list as the kernel stores it; raises ValueError for another version of the format."""
    if len(blob) % 8 != 4 or int.from_bytes(blob[:4], "little") != _VERSION:
        raise ValueError("an access control list of an unknown version")

    def whole(begin: int, end: int) -> int:
        return int.from_bytes(blob[begin:end], "little")

    return [(whole(at, at + 2), whole(at + 2, at + 4), whole(at + 4, at + 8)) for at in range(4, len(blob), 8)]


def encode(entries: list[Entry]) -> bytes:
    """Encode a list as the kernel wants it: entries in the order of their tags and ids."""
    cells = [
        tag.to_bytes(2, "little") + bits.to_bytes(2, "little") + who.to_bytes(4, "little")
        for tag, bits, who in sorted(entries, key=lambda entry: (entry[0], entry[2]))
    ]
    return _VERSION.to_bytes(4, "little") + b"".join(cells)


def lent(entries: list[Entry], mode: int, uid: int, bits: int) -> list[Entry]:
    """Add `bits` for `uid` to the list; an empty list stands for the plain `mode`.

    The mask is widened by what is lent. Nobody else gains by it: in a plain mode the group's own entry stays what it
    was, and other named entries are cut down to what the old mask let them have.
    """
    if not entries:
        entries = [
            (_USER_OBJ, mode >> 6 & 7, _UNNAMED),
            (_GROUP_OBJ, mode >> 3 & 7, _UNNAMED),
            (_OTHER, mode & 7, _UNNAMED),
        ]
    mask = next((old for tag, old, _ in entries if tag == _MASK), 7)
    kept = [
        (tag, old & mask if tag in _MASKED else old, who)
        for tag, old, who in entries
        if tag != _MASK and (tag, who) != (_USER, uid)
    ]
    kept.append((_USER, bits, uid))
    widest = 0
    for tag, old, _ in kept:
        if tag in _MASKED:
            widest |= old
    return [*kept, (_MASK, widest, _UNNAMED)]


def lend(target: int | str, uid: int, bits: int) -> bool:
    """Give `uid` the permission `bits` on a file or directory of ours; True when the list was changed.

    Raises OSError, with errno ENOTSUP where the file system has no access control lists.
    """
    mode = posix.stat(target).st_mode
    try:
        entries = decode(posix.getxattr(target, ACCESS_LIST))
    except OSError as error:
        if error.errno != errno.ENODATA:
            raise
        entries = []
    wanted = lent(entries, mode, uid, bits)
    if sorted(wanted) == sorted(entries):
        return False
    posix.setxattr(target, ACCESS_LIST, encode(wanted))
    return True
