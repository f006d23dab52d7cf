"""Which mounts lie where."""

from __future__ import annotations

import os
from pathlib import Path

from drainwise.common.mounts import fuse_mounts_below, mounts_below, same_mount

LIST = rb"""22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
40 22 0:40 / /exec/dir_1/scratch/mine rw shared:2 - fuse.sshfs a:/b - fuse rw,user_id=1000
41 22 0:41 / /exec/dir_2/a\040b\012c rw - fuse nothing rw
42 22 0:42 / /exec/dir_3 rw - tmpfs tmpfs rw
43 22 0:43 / /execution/x rw - fuse nothing rw
44 22 0:44 / /exec/dir_4 rw - fuseblk /dev/sdb rw
"""


def test_fuse_mounts_below_a_directory(tmp_path: Path) -> None:
    """12: every kind of FUSE at or below it, names unescaped; nothing of its neighbours."""
    table = tmp_path / "mountinfo"
    table.write_bytes(LIST)
    found = fuse_mounts_below("/exec", str(table))
    assert found == ("/exec/dir_1/scratch/mine", "/exec/dir_2/a b\nc", "/exec/dir_4")
    assert fuse_mounts_below("/exec/dir_4/", str(table)) == ("/exec/dir_4",)
    assert "/execution/x" in fuse_mounts_below("/", str(table))


def test_every_mount_below_a_directory(tmp_path: Path) -> None:
    """12: whatever is mounted there is somebody's data, not the tree's."""
    table = tmp_path / "mountinfo"
    table.write_bytes(LIST)
    assert mounts_below("/exec/dir_3", mountinfo=str(table)) == ("/exec/dir_3",)
    assert len(mounts_below("/exec", mountinfo=str(table))) == 4
    assert mounts_below("/exec/dir_5", mountinfo=str(table)) == ()


def test_no_list_no_mounts(tmp_path: Path) -> None:
    """A system without the kernel's list is not an error."""
    assert fuse_mounts_below("/exec", str(tmp_path / "none")) == ()


def test_same_mount(tmp_path: Path) -> None:
    """Two files of one directory are on one mount, /proc is on another."""
    fds = [os.open(path, os.O_RDONLY) for path in (str(tmp_path), str(tmp_path.parent), "/proc")]
    try:
        assert same_mount(fds[0], fds[1])
        assert not same_mount(fds[0], fds[2])
    finally:
        for fd in fds:
            os.close(fd)
    assert not same_mount(fds[0], fds[0])
