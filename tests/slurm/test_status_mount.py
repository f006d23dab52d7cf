"""A job's $JOBSTATUS as a file system of its own: its limits, its way through renames, and what a user may do to it."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from drainwise.pool.finding import DANGEROUS, MISSING, OK
from drainwise.slurm.node.job_tree import (
    BYTES,
    FILES,
    can_be_seen,
    foreign_mounts,
    mount,
    open_node,
    own_mounts,
    unmount,
)
from drainwise.slurm.node.lease import SlurmLease
from drainwise.slurm.node.prolog import make_tree
from drainwise.slurm.setup.check_node import Space, growing, judge_space, space_of
from made_up_node import public_directory

from .agent_host import ALICE, NODE, AgentHost, as_user

pytestmark = [
    pytest.mark.daemons,  # mounts on this machine
    pytest.mark.skipif(os.geteuid() != 0, reason="mounts"),
]
libc = ctypes.CDLL(None, use_errno=True)
LEASE = SlurmLease(job="17", uid=ALICE, gid=ALICE, started=1795270000, cores=2)


@pytest.fixture
def tree() -> Iterator[Path]:
    """A job's tree with a mounted $JOBSTATUS, under the name that it is made by."""
    with public_directory() as base:
        made = Path(os.path.realpath(base), ".new.17.1.0")
        (made / ".jobstatus").mkdir(parents=True)
        assert mount(f"{made}/.jobstatus", ALICE, ALICE)
        yield made
        for place in reversed(own_mounts(os.path.realpath(base))):
            assert libc.umount2(place.encode(), 2) == 0


def test_a_user_cannot_write_more_than_the_limits(tree: Path) -> None:
    """Bytes and files; the directory is the user's, and root's tree above it another file system."""
    status = tree / ".jobstatus"

    def fill() -> None:
        with pytest.raises(OSError, match="No space left"), open(status / "x", "wb", buffering=0) as file:
            for _ in range(2 * BYTES // 65536):
                file.write(bytes(65536))
                if os.fstat(file.fileno()).st_size == BYTES:
                    file.write(b"x")
        os.unlink(status / "x")
        with pytest.raises(OSError, match="No space left"):
            for number in range(2 * FILES):
                (status / str(number)).touch()
        assert len(os.listdir(status)) < FILES

    as_user(ALICE, fill)
    (tree / "more").write_bytes(bytes(BYTES))


def test_it_goes_with_the_tree_and_is_taken_away(tree: Path) -> None:
    """A tree is renamed into place and out of it; what stands in the mount goes with it."""
    gone = tree.with_name(".gone.17.1.0")
    (tree / ".jobstatus/x").touch()
    tree.rename(gone)
    assert own_mounts(str(gone.parent)) == (f"{gone}/.jobstatus",)
    assert foreign_mounts(str(gone.parent)) == ()
    with open(gone / ".jobstatus/x", "rb"):  # somebody still holds it
        unmount(str(gone))
    assert own_mounts(str(gone.parent)) == ()
    assert os.listdir(gone / ".jobstatus") == []


def test_what_somebody_mounted_on_it_is_foreign_and_left_alone(tree: Path) -> None:
    """HOSTILE 12: a user may mount FUSE on a directory of his own, where anybody who touches it is held."""
    status = f"{tree}/.jobstatus"
    assert libc.mount(b"x", status.encode(), b"ramfs", 0, None) == 0
    try:
        assert foreign_mounts(str(tree.parent)) == (status,)
        unmount(str(tree))
        assert len(foreign_mounts(str(tree.parent))) == len(own_mounts(str(tree.parent))) == 1
    finally:
        assert libc.umount2(status.encode(), 2) == 0


def test_before_24_11_a_container_would_not_see_it(tmp_path: Path) -> None:
    environment = {b"SLURM_CONF": f"{tmp_path}/slurm.conf".encode()}
    since = SlurmLease(job="17", uid=1, gid=1, started=1795270000, start_known=True)
    assert can_be_seen(environment, LEASE)
    (tmp_path / "job_container.conf").touch()
    assert not can_be_seen(environment, LEASE)
    assert can_be_seen(environment, since)


def test_the_agent_reads_and_tells_through_it() -> None:
    """And says once that a job has filled its own; the epilog's part is in tests/daemons."""
    with public_directory() as base:
        host = AgentHost(base)
        node = open_node(host.runtime, NODE, create=True)
        assert node is not None
        lease = SlurmLease(job="17", uid=ALICE, gid=ALICE, started=host.now - 100, cores=8)
        make_tree(node, f"{host.runtime}/{NODE}", lease, host.settings, host.now, has_own_status=True)
        os.close(node)
        host.slurm.job(17, ALICE, host.now - 100, host.now + 3500, {"TimeLimit": "01:00:00"})
        try:
            host.report(17)
            host.round()
            assert host.published(17) is not None
            host.slurm.set(17, EndTime=host.now + 601, TimeLimit="00:12:00")
            host.round()
            assert "True" in host.site_ad(17)
            assert space_of(host.runtime) == Space(host.runtime, False, False, ())
            with pytest.raises(OSError, match="No space"):
                Path(host.status(17), "y").write_bytes(bytes(BYTES))
            for _ in range(3):
                host.round()
            assert host.said == [
                "job 17: it has filled its $JOBSTATUS: what it reports, and .site.ad, may not be written any more"
            ]
        finally:
            unmount(os.path.realpath(host.tree(17)))


def test_a_tree_without_a_mount_is_named_by_the_check() -> None:
    with public_directory() as base:
        host = AgentHost(base)
        host.start(17)
        assert space_of(host.runtime) == Space(host.runtime, False, False, ("17",))
    assert space_of(f"{base}/nowhere") is None


def test_a_directory_that_nobody_uses_is_no_matter_of_the_check(tmp_path: Path) -> None:
    """The package makes one on every machine, also where no prolog runs."""
    assert space_of(str(tmp_path)) is None


def test_what_the_check_says() -> None:
    assert list(judge_space(None)) == []
    good, bad = Space("/run/drainwise", True, False, ()), Space("/run/drainwise", False, True, ("17", "18"))
    assert [(one.severity, one.what) for one in judge_space(good)] == [(OK, "runtime_dir")]
    found = [(one.severity, one.what) for one in judge_space(bad)]
    assert found == [(DANGEROUS, "runtime_dir"), (MISSING, "runtime_dir"), (MISSING, "$JOBSTATUS")]


def test_a_directory_that_others_may_write_to_is_dangerous(tmp_path: Path) -> None:
    (tmp_path / "node1").mkdir()
    (tmp_path / "node1").chmod(0o777)
    found = list(judge_space(space_of(str(tmp_path))))
    assert [one.severity for one in found] == [DANGEROUS, MISSING]
    assert "others may write there" in found[0].why


def test_a_full_directory_in_memory_is_made_larger(tmp_path: Path) -> None:
    """The command is typed as it stands, and removes nothing; on a disk somebody has to look."""
    place = next(one for one in tmp_path.parents if os.path.ismount(one))
    mounts, room = tmp_path / "mounts", os.statvfs(place)
    mounts.write_text(f"proc /proc proc rw 0 0\ntmpfs {place} tmpfs rw,size=10% 0 0\n")
    line = growing(str(tmp_path), str(mounts))
    assert line.startswith(f"mount -o remount,size={2 * room.f_blocks * room.f_frsize},nr_inodes=")
    [found, _] = judge_space(Space("/run/drainwise", True, True, (), growing=line))
    assert (found.severity, found.line) == (DANGEROUS, line)
    mounts.write_text(f"/dev/vda {place} ext4 rw 0 0\n")
    assert growing(str(tmp_path), str(mounts)) == ""
