"""Find the places of mounts, as this process sees them (/proc/self/mountinfo, /proc/self/fdinfo).

A FUSE server that never answers holds open() and stat() in a wait that only death interrupts, so such a mount has to be
known before anything below it is touched.
"""

from __future__ import annotations

import posix
import sys

from drainwise.common.local_file import Held

MOUNTINFO = "/proc/self/mountinfo"

_FDINFO_HEAD = 256  # bytes; position, flags and mount stand first, in some 40
_ENCODING = sys.getfilesystemencoding()


def fuse_mounts_below(base: str, mountinfo: str = MOUNTINFO) -> tuple[str, ...]:
    """Return the mount points of FUSE file systems at or below `base` (a real path, no symlink in it), sorted.

    Job directories that hold one are to be left alone. Empty when the kernel's list cannot be read.
    """
    return mounts_below(base, b" - fuse", mountinfo)


def mounts_below(base: str, marked: bytes = b"", mountinfo: str = MOUNTINFO) -> tuple[str, ...]:
    """Do as `fuse_mounts_below`, for every file system whose line in the kernel's list holds `marked`."""
    try:
        with open(mountinfo, "rb") as stream:
            content = stream.read()
    except OSError:
        return ()
    below = base.encode(_ENCODING, "surrogateescape").rstrip(b"/") + b"/"
    if _escaped(below[:-1]) not in content:  # nearly always, and much cheaper to see
        return ()
    found = []
    for line in content.split(b"\n"):
        if not line or marked not in line:
            continue
        fields = line.split(b" ")
        point = _unescaped(fields[4])
        if (point + b"/").startswith(below):
            found.append(point.decode(_ENCODING, "surrogateescape"))
    return tuple(sorted(found))


def same_mount(fd: int, other_fd: int) -> bool:
    """Decide whether two descriptors were opened through the same mount; False when the kernel does not say."""
    mount = _mount_id(fd)
    return mount is not None and mount == _mount_id(other_fd)


def is_on_other_fuse(fd: int, beside: int, mountinfo: str = MOUNTINFO) -> bool:
    """Decide whether an open file lies on a FUSE mount that `beside` does not lie on; neither of them is touched.

    False when the kernel does not say. A mount that has just gone counts as FUSE.
    """
    mount = _mount_id(fd)
    if mount is None or mount == _mount_id(beside):
        return False
    try:
        with open(mountinfo, "rb") as stream:
            content = b"\n" + stream.read()
    except OSError:
        return False
    _, found, rest = content.partition(b"\n" + mount + b" ")
    return not found or b" - fuse" in rest.partition(b"\n")[0]


def _mount_id(fd: int) -> bytes | None:
    try:
        with Held(posix.open(f"/proc/self/fdinfo/{fd}", posix.O_RDONLY | posix.O_CLOEXEC)) as info:
            head = posix.read(info, _FDINFO_HEAD)
    except OSError:
        return None
    _, found, rest = head.partition(b"\nmnt_id:")
    return rest.partition(b"\n")[0].strip() if found else None


def _unescaped(field: bytes) -> bytes:
    r"""Replace \ooo, which stands for blank, tab, newline and backslash in the kernel's list."""
    parts = field.split(b"\\")
    return parts[0] + b"".join(bytes([int(part[:3], 8)]) + part[3:] for part in parts[1:])


def _escaped(path: bytes) -> bytes:
    """Escape a path as the kernel's list has it."""
    for letter in (b"\\", b" ", b"\t", b"\n"):
        path = path.replace(letter, b"\\%03o" % ord(letter))
    return path
