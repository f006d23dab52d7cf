"""Lending one user the way into a directory opens it for that user and for nobody else."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.common.acl import ACCESS_LIST, PASS_THROUGH, Entry, decode, encode, lend, lent
from made_up_node import make_directory, public_directory, run_as, write

OWNER, FRIEND, STRANGER = 54321, 54322, 54323
USER_OBJ, USER, GROUP_OBJ, GROUP, MASK, OTHER = 0x01, 0x02, 0x04, 0x08, 0x10, 0x20
UNNAMED = 0xFFFFFFFF

bits = st.integers(0, 7)
uids = st.integers(0, 2**32 - 2)


@st.composite
def access_lists(draw: st.DrawFn) -> list[Entry]:
    """Sound lists: the three plain entries and, with the mask, any number of named ones."""
    plain = [(USER_OBJ, draw(bits), UNNAMED), (GROUP_OBJ, draw(bits), UNNAMED), (OTHER, draw(bits), UNNAMED)]
    named = [(USER, draw(bits), uid) for uid in draw(st.sets(uids, max_size=3))]
    named += [(GROUP, draw(bits), gid) for gid in draw(st.sets(uids, max_size=2))]
    return [*plain, *named, (MASK, draw(bits), UNNAMED)] if named else plain


def allowed(entries: list[Entry], tag: int, who: int) -> int:
    """What an entry really grants: named ones and the group's are cut by the mask."""
    mask = next((old for kind, old, _ in entries if kind == MASK), 7)
    return next(
        (old & (mask if tag in {USER, GROUP_OBJ, GROUP} else 7) for k, old, w in entries if (k, w) == (tag, who))
    )


@given(access_lists())
def test_a_list_survives_the_kernels_form(entries: list[Entry]) -> None:
    """What is encoded is read back, in the kernel's order."""
    assert decode(encode(entries)) == sorted(entries, key=lambda entry: (entry[0], entry[2]))


entries_of_8 = st.lists(st.binary(min_size=8, max_size=8), max_size=4).map(b"".join)


@given(st.binary(max_size=40) | entries_of_8.map(lambda entries: b"\x02\0\0\0" + entries))
def test_other_formats_are_refused(blob: bytes) -> None:
    """Only version 2 with whole entries is taken; nothing else is guessed at."""
    if len(blob) % 8 == 4 and blob[:4] == b"\x02\0\0\0":
        assert encode(decode(blob))[:4] == blob[:4]
    else:
        with pytest.raises(ValueError, match="unknown version"):
            decode(blob)


@given(access_lists(), uids, bits)
def test_only_the_one_gains(entries: list[Entry], uid: int, lending: int) -> None:
    """Every other entry grants exactly what it granted before, whatever the mask becomes."""
    after = lent(entries, 0, uid, lending)
    assert allowed(after, USER, uid) == lending
    for tag, _, who in entries:
        if tag != MASK and (tag, who) != (USER, uid):
            assert allowed(after, tag, who) == allowed(entries, tag, who)
    assert {entry[::2] for entry in after} == {entry[::2] for entry in entries} | {(USER, uid), (MASK, UNNAMED)}


@given(st.integers(0, 0o777), uids, bits)
def test_a_plain_mode_is_kept(mode: int, uid: int, lending: int) -> None:
    """Without a list, owner, group and others keep what the mode gives them."""
    after = lent([], mode, uid, lending)
    assert [allowed(after, tag, UNNAMED) for tag in (USER_OBJ, GROUP_OBJ, OTHER)] == [
        mode >> 6,
        mode >> 3 & 7,
        mode & 7,
    ]


@given(access_lists(), uids, bits)
def test_lending_twice_is_lending_once(entries: list[Entry], uid: int, lending: int) -> None:
    """A second call finds nothing to change."""
    once = lent(entries, 0, uid, lending)
    assert sorted(lent(once, 0, uid, lending)) == sorted(once)


@pytest.fixture
def private() -> Iterator[str]:
    """A directory that only its owner may enter, with a file in it and one in a sub directory."""
    if os.geteuid() != 0:
        pytest.skip("needs root to become other users")
    with public_directory() as base:
        make_directory(f"{base}/private", 0o700, OWNER)
        write(f"{base}/private/.pilot.ad", "report\n", OWNER)
        make_directory(f"{base}/private/closed", 0o700, OWNER)
        try:
            lend(f"{base}/private", FRIEND, PASS_THROUGH)
        except OSError as error:
            if error.errno == errno.ENOTSUP:
                pytest.skip("this file system has no access control lists")
            raise
        yield f"{base}/private"


def can(uid: int, *command: str) -> bool:
    """Whether a real process of `uid` succeeds."""
    return run_as(uid, ["/usr/bin/env", *command]).returncode == 0


def test_the_kernel_agrees(private: str) -> None:
    """The friend reads by name and neither lists nor writes; a stranger does none of it; the owner does all."""
    assert can(FRIEND, "cat", f"{private}/.pilot.ad")
    assert not can(FRIEND, "ls", private)
    assert not can(FRIEND, "touch", f"{private}/new")
    assert not can(FRIEND, "ls", f"{private}/closed")
    assert not can(STRANGER, "cat", f"{private}/.pilot.ad")
    assert not can(STRANGER, "ls", private)
    assert can(OWNER, "touch", f"{private}/.pilot.ad", f"{private}/closed/new")


def test_lent_again_after_the_owner_shut_the_door(private: str) -> None:
    """A chmod 700 by the job cuts the friend off; lending again restores it, and says whether it had to."""
    assert lend(private, FRIEND, PASS_THROUGH) is False
    os.chmod(private, 0o700)
    assert not can(FRIEND, "cat", f"{private}/.pilot.ad")
    assert lend(private, FRIEND, PASS_THROUGH) is True
    assert can(FRIEND, "cat", f"{private}/.pilot.ad")


def test_a_named_entry_of_the_site_stays(private: str) -> None:
    """What a site lent to another user before is still there."""
    lend(private, STRANGER, 5)
    lend(private, FRIEND, PASS_THROUGH)
    assert (USER, 5, STRANGER) in decode(os.getxattr(private, ACCESS_LIST))


def test_a_file_system_without_lists_says_so() -> None:
    """The error is the kernel's: the hook says it and goes on."""
    with pytest.raises(OSError, match="not supported"):
        lend("/proc/self/fd", FRIEND, PASS_THROUGH)
