"""`.site.ad`, written and read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.facts.errors import FeatureError
from drainwise.pilotad.partial_return import Acknowledgement, PartialReturn
from drainwise.pilotad.site_ad import SiteAd, parse_site_ad, read_site_ad, remove_site_ad, write_site_ad

DEADLINE = 1_795_256_200


def test_the_order_is_written_as_the_paper_has_it(tmp_path: Path) -> None:
    """Two lines; the deadline only when there is one."""
    assert write_site_ad(str(tmp_path), True, DEADLINE)
    assert (tmp_path / ".site.ad").read_text() == "VACATE_DESIRED = True\nPAYLOAD_DEADLINE = 1795256200\n"
    assert write_site_ad(str(tmp_path), False)
    assert (tmp_path / ".site.ad").read_text() == "VACATE_DESIRED = False\n"
    assert os.listdir(tmp_path) == [".site.ad"]


def test_the_same_order_is_not_written_again(tmp_path: Path) -> None:
    """A pilot that watches the mtime sees the time of the order."""
    write_site_ad(str(tmp_path), True, DEADLINE)
    before = (tmp_path / ".site.ad").stat()
    assert not write_site_ad(str(tmp_path), True, DEADLINE)
    after = (tmp_path / ".site.ad").stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert write_site_ad(str(tmp_path), True, DEADLINE + 1)


def test_an_order_is_withdrawn(tmp_path: Path) -> None:
    """No file, no draining."""
    assert not remove_site_ad(str(tmp_path))
    write_site_ad(str(tmp_path), True)
    assert remove_site_ad(str(tmp_path))
    assert os.listdir(tmp_path) == []


def test_a_descriptor_stays_open(tmp_path: Path) -> None:
    """The caller who opened it closes it."""
    fd = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        write_site_ad(fd, True, DEADLINE)
        assert read_site_ad(fd) == (SiteAd(True, DEADLINE), "")
        assert remove_site_ad(fd)
        assert read_site_ad(fd) == (None, "absent")
    finally:
        os.close(fd)


def test_a_directory_that_went_away(tmp_path: Path) -> None:
    """A reader is told, a writer gets one line."""
    gone = str(tmp_path / "gone")
    assert read_site_ad(gone) == (None, "absent")
    with pytest.raises(FeatureError, match="gone': absent; expected the job's directory, no symlink"):
        write_site_ad(gone, True)
    with pytest.raises(FeatureError, match="gone': absent; expected the job's directory, no symlink"):
        remove_site_ad(gone)


NONE = b"VACATE_DESIRED = False\n"
RETURN = b"RETURN_CORES = 4\nRETURN_BY = %d\nRETURN_CHUNK = 2\n" % DEADLINE
SEEN = b"RETURN_SEEN = %d\nUSABLE_CORES = 6\nHELD_CORES = 1\n" % DEADLINE


def test_nothing_stays_open_of_a_directory_that_is_read_by_its_path(tmp_path: Path) -> None:
    """A descriptor of the caller's own stays his."""
    write_site_ad(str(tmp_path), True)
    directory = os.open(tmp_path, os.O_PATH)
    opened = len(os.listdir("/proc/self/fd"))
    assert read_site_ad(str(tmp_path)) == read_site_ad(directory) == (SiteAd(True), "")
    assert len(os.listdir("/proc/self/fd")) <= opened
    os.fstat(directory)
    os.close(directory)


@pytest.mark.parametrize(
    "data, expected",
    [
        (b"VACATE_DESIRED=true\r\n", (SiteAd(True), "")),
        (b"vacate_desired = FALSE\nPAYLOAD_DEADLINE = 1795256200", (SiteAd(False, DEADLINE), "")),
        (b"VACATE_DESIRED = True\nPAYLOAD_DEADLINE = soon\n", (SiteAd(True), "no sound PAYLOAD_DEADLINE")),
        (b"VACATE_DESIRED = True\nPAYLOAD_DEADLINE = 5\n", (SiteAd(True), "no sound PAYLOAD_DEADLINE")),
        (b'VACATE_DESIRED = True\nSITE_AD_RUN = "17@1795240000"\n', (SiteAd(True, run="17@1795240000"), "")),
        (b'VACATE_DESIRED = True\nSITE_AD_RUN = "17; rm -r"\n', (SiteAd(True), "")),
        (b"VACATE_DESIRED = True\nSITE_AD_RUN = 17@1795240000\n", (SiteAd(True), "")),
        (b'VACATE_DESIRED = True\nSITE_AD_RUN = "%b"\n' % (b"1" * 32), (SiteAd(True, run="1" * 32), "")),
        (b'VACATE_DESIRED = True\nSITE_AD_RUN = "%b"\n' % (b"1" * 33), (SiteAd(True), "")),
        (b'VACATE_DESIRED = True\nSITE_AD_RUN = ""\n', (SiteAd(True), "")),
        (b"PAYLOAD_DEADLINE = 1795256200\n", (None, "no sound VACATE_DESIRED")),
        (b"VACATE_DESIRED = True\nVACATE_DESIRED = False\n", (None, "no sound VACATE_DESIRED")),
        (b"VACATE_DESIRED = 1\n", (None, "no sound VACATE_DESIRED")),
        (b"\0\xff garbage", (None, "no sound VACATE_DESIRED")),
        (NONE + b"CHECKPOINT_BY = 1795249000\n", (SiteAd(False), "")),
        (b"VACATE_DESIRED\n" + NONE, (SiteAd(False), "")),
        (NONE + b"RETURN_CORES = 4\n", (SiteAd(False, part=PartialReturn(4, None, 1)), "")),
        (NONE + RETURN, (SiteAd(False, part=PartialReturn(4, DEADLINE, 2)), "")),
        (NONE + RETURN.replace(b"4", b"0"), (SiteAd(False, part=PartialReturn(0, DEADLINE, 2)), "")),
        (NONE + RETURN.replace(b"4", b"four"), (SiteAd(False), "no sound RETURN_CORES")),
        (NONE + RETURN.replace(b"179525", b"x"), (SiteAd(False), "no sound RETURN_BY")),
        (NONE + RETURN.replace(b"= 2", b"= 0"), (SiteAd(False), "no sound RETURN_CHUNK")),
        (NONE + b"RETURN_BY = soon\nRETURN_CHUNK = x\nUSABLE_CORES = 6\n", (SiteAd(False), "")),
        (NONE + SEEN, (SiteAd(False, answer=Acknowledgement(DEADLINE, 6, 1)), "")),
        (NONE + SEEN.replace(b"HELD", b"X"), (SiteAd(False, answer=Acknowledgement(DEADLINE, 6, None)), "")),
        (NONE + SEEN.replace(b"USABLE", b"X"), (SiteAd(False), "no sound USABLE_CORES")),
        (NONE + SEEN.replace(b"179525", b"x"), (SiteAd(False), "no sound RETURN_SEEN")),
    ],
)
def test_what_a_pilot_makes_of_it(data: bytes, expected: tuple[SiteAd | None, str]) -> None:
    """Tolerant of blanks and case; garbage is no order, and the reason is named."""
    assert parse_site_ad(data) == expected


def test_a_notice_has_a_largest_size(tmp_path: Path) -> None:
    (tmp_path / ".site.ad").write_bytes(NONE.ljust(4096, b"\n"))
    assert read_site_ad(str(tmp_path)) == (SiteAd(False), "")
    (tmp_path / ".site.ad").write_bytes(NONE.ljust(4097, b"\n"))
    found, fault = read_site_ad(str(tmp_path))
    assert found is None and fault


@given(st.binary(max_size=200))
def test_any_bytes_raise_nothing(data: bytes) -> None:
    """A pilot that reads its order cannot be stopped by it."""
    ad, reason = parse_site_ad(data)
    assert ad is not None or reason == "no sound VACATE_DESIRED"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another owner")
def test_an_order_that_somebody_else_wrote_is_replaced(tmp_path: Path) -> None:
    """The same words in a file that its owner may change at any time are not ours."""
    write_site_ad(str(tmp_path), True, DEADLINE)
    os.chown(tmp_path / ".site.ad", 12345, -1)
    assert write_site_ad(str(tmp_path), True, DEADLINE)
    assert (tmp_path / ".site.ad").stat().st_uid == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another owner")
def test_a_pilot_may_insist_on_the_owner(tmp_path: Path) -> None:
    """Somebody else's order in a shared directory is not the site's."""
    write_site_ad(str(tmp_path), True)
    os.chown(tmp_path / ".site.ad", 12345, -1)
    assert read_site_ad(str(tmp_path), uid=0) == (None, "not the job's user")
    assert read_site_ad(str(tmp_path), uid=12345) == (SiteAd(True), "")
    assert read_site_ad(str(tmp_path)) == (SiteAd(True), "")


def test_who_saves_on_demand_is_asked_to_do_so_until_the_deadline(tmp_path: Path) -> None:
    """By `.pilot.ad`, or by `$JOBSTATUS` where the notice lies there; not for a mere end of the lease."""
    asked = b"CHECKPOINT_DESIRED = True\nCHECKPOINT_BY = 1795249000\n"
    (tmp_path / ".pilot.ad").write_bytes(b"CHECKPOINT_SECONDS = 60\n")
    assert write_site_ad(str(tmp_path), vacate_desired=True, payload_deadline=1_795_249_000)
    assert (tmp_path / ".site.ad").read_bytes().endswith(asked)
    assert read_site_ad(str(tmp_path)) == (SiteAd(True, 1_795_249_000, checkpoint_by=1_795_249_000), "")
    assert write_site_ad(str(tmp_path), vacate_desired=False, payload_deadline=1_795_249_000)
    assert asked not in (tmp_path / ".site.ad").read_bytes()
    (tmp_path / ".pilot.ad").write_bytes(b"CHECKPOINT_SECONDS = soon\n")
    assert write_site_ad(str(tmp_path), vacate_desired=True, payload_deadline=1_795_249_000)
    assert asked not in (tmp_path / ".site.ad").read_bytes()
    (tmp_path / "checkpoint_seconds").write_bytes(b"60\n")
    assert write_site_ad(str(tmp_path), vacate_desired=True, payload_deadline=1_795_249_000)
    assert (tmp_path / ".site.ad").read_bytes().endswith(asked)
    said = b"VACATE_DESIRED = True\nCHECKPOINT_DESIRED = True\nCHECKPOINT_BY = soon\n"
    assert parse_site_ad(said) == (SiteAd(True), "no sound CHECKPOINT_BY")
