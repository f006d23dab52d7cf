"""The files of a glidein: found below a job's directory, read as its user's, and whatever that user can put there."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from pytest_mock import MockerFixture

from drainwise.common.local_file import Held
from drainwise.facts.errors import RefusedFile
from drainwise.node import JOB_STATUS, glidein, glidein_places
from drainwise.node.glidein import read_glideins
from drainwise.node.glidein_places import MOST_DIRECTORIES, local_directories
from drainwise.pilotad.attributes import GLIDEIN_AD, PILOT_AD
from drainwise.pilotad.report import PilotReport

CORES = 8
SECRET = "MaxWallTimeMins = 1\n"


def payload(glidein: Path, number: int, cores: int = 1, minutes: int = 60, layout: str = "") -> Path:
    """The ads of a payload that has just started."""
    place = glidein / "execute" / f"dir_{number}" / layout
    place.mkdir(parents=True)
    (place / ".machine.ad").write_text(f'Name = "slot1_{number}@x"\nCpus = {cores}\n')
    (place / ".job.ad").write_text(f"JobCurrentStartDate = {int(time.time())}\nMaxWallTimeMins = {minutes}\n")
    return place


def glidein_in(place: Path) -> Path:
    """The local directory of a glidein without payloads."""
    (place / "execute").mkdir(parents=True)
    (place / "log").mkdir()
    (place / "log" / "StartdLog").write_text("")
    (place / "condor_config").write_text("GLIDEIN_Max_Tail=100\nUPDATE_INTERVAL = 40\n")
    return place


@pytest.fixture
def sandbox(tmp_path: Path) -> Path:
    """A job's directory with feature directories and files of its own."""
    for name in (".jobfeatures", ".machinefeatures", ".jobstatus", "data"):
        (tmp_path / name).mkdir()
    (tmp_path / "data" / "file").write_text("x")
    return tmp_path


def read(sandbox: Path) -> PilotReport | None:
    """What is read below a job's directory; nothing stays open."""
    before = len(os.listdir("/proc/self/fd"))
    try:
        return seen(sandbox)
    finally:
        assert len(os.listdir("/proc/self/fd")) <= before  # the garbage collector may close some of other tests


def seen(sandbox: Path) -> PilotReport | None:
    """What is read below a job's directory."""
    descriptor = os.open(sandbox, os.O_PATH | os.O_DIRECTORY)
    uid = os.geteuid()
    now = int(time.time())
    try:
        return read_glideins(local_directories(descriptor, uid), uid, CORES, now - 1000, now)
    finally:
        os.close(descriptor)


@pytest.mark.parametrize("where", [".", "glide_Ab12Cd", "tmp/glide_Ab12Cd"])
@pytest.mark.parametrize("layout", ["", "scratch"])
def test_a_glidein_is_found(sandbox: Path, where: str, layout: str) -> None:
    """At most two levels below the job's directory, with the files of HTCondor before and since 25.4."""
    place, before = glidein_in(sandbox / where), int(time.time())
    payload(place, 1, 2, 10, layout)
    payload(place, 2, 4, 20, layout)
    after, found = time.time(), read(sandbox)
    assert found is not None and found.used_cpu == 6
    ends = {600: found.first_exp_job_end, 1200 + 120: found.last_exp_job_end, 1200 + 140: found.last_max_job_end}
    for seconds, end in ends.items():
        assert end is not None and before + seconds <= end <= after + seconds


def test_several_glideins_of_one_job_count_together(sandbox: Path) -> None:
    """As glideinWMS starts them on whole nodes."""
    for number in (1, 2):
        payload(glidein_in(sandbox / f"glidein_{number}" / "glide_x"), number, 3)
    found = read(sandbox)
    assert found is not None and found.used_cpu == 6


def test_what_is_not_read_in_time_is_refused(sandbox: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time is for all payloads together."""
    payload(glidein_in(sandbox), 1)
    assert read(sandbox) is not None
    monkeypatch.setattr(glidein, "SECONDS", -1.0)
    with pytest.raises(RefusedFile, match="not read in time"):
        read(sandbox)


def test_without_a_glidein_nothing_is_said(sandbox: Path) -> None:
    """Nor by one whose startd has ended: it touches its log each minute."""
    assert read(sandbox) is None
    place = glidein_in(sandbox / "glide_x")
    payload(place, 1)
    assert read(sandbox) is not None
    old = time.time() - 305
    os.utime(place / "log" / "StartdLog", (old, old))
    assert read(sandbox) is None


def test_a_glidein_without_payloads_idles_since_its_last_one_ended(sandbox: Path) -> None:
    """Of several glideins the one that ended last counts, and the longest stay."""
    ended = int(time.time()) - 50
    for name, tail, age in (("glide_x", 100, 0), ("glide_y", 300, 200), ("glide_z", 200, 300)):
        place = glidein_in(sandbox / name)
        (place / "condor_config").write_text(f"GLIDEIN_Max_Tail={tail}\nUPDATE_INTERVAL = 40\n")
        os.utime(place / "execute", (ended - age, ended - age))
    found = read(sandbox)
    assert found is not None and found.used_cpu == 0
    assert (found.last_exp_job_end, found.last_max_job_end) == (ended + 300 + 20, ended + 300 + 40)


def test_a_payload_that_is_about_to_begin_is_none(sandbox: Path) -> None:
    """Its ads are not there yet."""
    place = glidein_in(sandbox / "glide_x")
    payload(place, 1, 2)
    (place / "execute" / "dir_2").mkdir()
    found = read(sandbox)
    assert found is not None and found.used_cpu == 2


def link(place: Path, target: Path) -> None:
    """A link to somebody's file."""
    place.symlink_to(target)


def fifo(place: Path, _: Path) -> None:
    """A pipe that nobody writes to."""
    os.mkfifo(place)


def large(place: Path, _: Path) -> None:
    """A sparse terabyte."""
    with place.open("wb") as stream:
        stream.truncate(1 << 40)


def hard(place: Path, target: Path) -> None:
    """A second name of somebody's file."""
    place.hardlink_to(target)


def directory(place: Path, _: Path) -> None:
    """A directory of that name."""
    place.mkdir()


@pytest.mark.parametrize("file", [".machine.ad", ".job.ad"])
@pytest.mark.parametrize("kind", [link, fifo, large, hard, directory])
def test_a_file_that_no_glidein_has_costs_the_report(
    sandbox: Path, file: str, kind: Callable[[Path, Path], None]
) -> None:
    """HOSTILE 1 to 8, 19: refused at once, and never somebody else's figures."""
    secret = sandbox / "secret"
    secret.write_text(SECRET)
    place = payload(glidein_in(sandbox / "glide_x"), 1)
    (place / file).unlink()
    kind(place / file, secret)
    with pytest.raises(RefusedFile):
        read(sandbox)


def test_a_directory_that_is_a_link_is_not_entered(sandbox: Path) -> None:
    """Neither the glidein's own nor a payload's."""
    outside = sandbox / "a" / "b" / "c"
    payload(glidein_in(outside / "glide_x"), 1)
    (sandbox / "glide_y").symlink_to(outside / "glide_x")
    assert read(sandbox) is None
    place = glidein_in(sandbox / "glide_z")
    (place / "execute" / "dir_1").symlink_to(outside / "glide_x" / "execute" / "dir_1")
    found = read(sandbox)
    assert found is not None and found.used_cpu == 0, "an entry that is a link is no payload"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: files of two users")
@pytest.mark.parametrize("foreign", ["", "log", "execute", "execute/dir_1", "execute/dir_1/.job.ad", "condor_config"])
def test_another_users_file_is_not_read(sandbox: Path, foreign: str) -> None:
    """HOSTILE 11: all that is read is the job's user's own."""
    place = glidein_in(sandbox / "glide_x")
    payload(place, 1)
    assert read(sandbox) is not None
    os.chown(place / foreign, 12345, 12345)
    try:
        found = read(sandbox)
    except RefusedFile as refused:
        assert refused.reason == "not the job's user"
    else:
        assert found is None


def test_too_many_payloads_are_no_report(sandbox: Path) -> None:
    """Each with sound ads: looked at as far as the limit, in the time that there is."""
    place = glidein_in(sandbox / "glide_x")
    for number in range(261):
        payload(place, number)
    with pytest.raises(RefusedFile, match=r"too many payloads|not read in time"):
        read(sandbox)


def test_what_became_a_link_meanwhile_is_not_followed(sandbox: Path) -> None:
    """Nor is a FIFO waited for."""
    (sandbox / "link").symlink_to("/")
    os.mkfifo(sandbox / "fifo")
    directory = os.open(sandbox, os.O_RDONLY)
    try:
        for name in ("link", "fifo"):
            with pytest.raises(RefusedFile):
                glidein_places.names_of_directories(directory, name)
    finally:
        os.close(directory)


def test_many_directories_are_not_all_looked_at(sandbox: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """HOSTILE 26: of a job with thousands of them, some are."""
    for number in range(20 * MOST_DIRECTORIES):
        (sandbox / f"d{number}").mkdir()
    looked_at: list[str] = []
    names = glidein_places.names_of_directories

    def counted(directory: int, name: str = ".") -> list[str]:
        looked_at.append(name)
        return names(directory, name)

    monkeypatch.setattr(glidein_places, "names_of_directories", counted)
    assert read(sandbox) is None
    assert len(looked_at) == 1 + MOST_DIRECTORIES == 65


def test_a_directory_counts_with_its_first_entries_and_few_of_those_are_looked_into(tmp_path: Path) -> None:
    """However many there are: 1024 of one directory, 128 below those of the job."""
    for one in ("many", *(f"many/{number}" for number in range(1030))):
        os.mkdir(tmp_path / one)
    for number in range(130):
        for one in ("execute", "log"):
            os.makedirs(tmp_path / "few" / str(number) / one)
    with Held(os.open(tmp_path, os.O_PATH | os.O_DIRECTORY)) as directory:
        assert len(glidein_places.names_of_directories(directory, "many")) == 1024
    shutil.rmtree(tmp_path / "many")
    with Held(os.open(tmp_path, os.O_PATH | os.O_DIRECTORY)) as directory:
        assert len(glidein_places.places_of_glideins(directory)) == 128


def test_ads_that_change_while_they_are_read(sandbox: Path) -> None:
    """HOSTILE 17: a report of what stood there at one moment, or none; at no time one of both."""
    place = payload(glidein_in(sandbox / "glide_x"), 1)
    ads = [b"Cpus = %d\n" % cores + b"X = 1\n" * 2000 + b"Y = %d\n" % cores for cores in (2, 4)]
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            for ad in ads:
                (place / ".machine.ad").write_bytes(ad)

    def look() -> None:
        try:
            found = seen(sandbox)
        except RefusedFile as refused:
            assert refused.reason in {"torn", "empty"}
        else:
            assert found is not None and found.used_cpu in {2, 4}

    for ad in (b"", ads[0]):
        (place / ".machine.ad").write_bytes(ad)
        look()
    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(30):
            look()
    finally:
        stop.set()
        writer.join()


@pytest.mark.parametrize(("where", "served"), [("glide_x", "glide_x"), ("tmp/glide_x", "tmp/glide_x"), ("a/b", "a")])
def test_a_file_system_that_the_user_serves_is_not_entered(
    sandbox: Path, monkeypatch: pytest.MonkeyPatch, where: str, served: str
) -> None:
    """HOSTILE 12: it may never answer."""
    payload(glidein_in(sandbox / where), 1)
    assert read(sandbox) is not None
    monkeypatch.setattr(glidein_places, "fuse_mounts_below", lambda base: (f"{base}/{served}",))
    assert read(sandbox) is None


def test_a_glideins_report_stands_beside_the_pilots_own_as_long_as_it_lives(
    sandbox: Path, mocker: MockerFixture
) -> None:
    """Not while the pilot itself reports; whatever is refused or cannot be written is said in one line."""
    said = mocker.patch.object(glidein, "say", autospec=True)
    now, file = int(time.time()), sandbox / JOB_STATUS / GLIDEIN_AD

    def is_written(cores: int | None = CORES, begun: int | None = now - 1000) -> bool:
        file.unlink(missing_ok=True)
        glidein.report_glidein(str(sandbox), cores, begun, 300, now)
        return file.exists()

    place = glidein_in(sandbox / "glide_x")
    payload(place, 1, 3)
    assert [is_written(*known) for known in ((None, now), (0, now), (CORES, None))] == [False] * 3
    assert is_written() and "USED_FRACTION1k = 384\n" in file.read_text()
    for own in (sandbox / PILOT_AD, sandbox / JOB_STATUS / "used_CPU"):
        own.touch()
        found = []
        for age in (301, 300):
            os.utime(own, (now - age, now - age))
            found.append(is_written())
        assert found == [True, False]
        own.unlink()
    os.utime(place / "log" / "StartdLog", (now - 1000, now - 1000))
    file.touch()
    glidein.report_glidein(str(sandbox), CORES, now - 1000, 300, now)
    assert not file.exists() and not is_written()
    said.assert_not_called()
    (place / "log" / "StartdLog").touch()
    shutil.rmtree(sandbox / JOB_STATUS)
    assert not is_written()
    assert "absent; expected the job's directory" in said.call_args.args[0]
    (place / "condor_config").unlink()
    (place / "condor_config").mkdir()
    assert not is_written()
    said.assert_called_with("the glidein's files: not a regular file; nothing is reported of it")
