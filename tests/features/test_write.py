"""A directory of keys is whole or absent, right whatever stood there before, and the user's own files stay."""

from __future__ import annotations

import contextlib
import functools
import os
import resource
import socket
import stat
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from drainwise.facts.errors import FeatureError
from drainwise.features.write import update_directory, write_directory
from real_daemons.waiting import wait_for

if TYPE_CHECKING:
    from tests.features.conftest import Attack

VALUES = {"total_cpu": "24", "hs06": "300.5", "job_id": "12.0", "jobslots": None}
WRITTEN = {"total_cpu": "24\n", "hs06": "300.5\n", "job_id": "12.0\n"}


def content(directory: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in directory.iterdir()}


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def refused(write: Callable[[], object]) -> str:
    with pytest.raises(FeatureError) as error:
        write()
    message = str(error.value)
    assert message.isprintable()
    assert len(message) <= 200
    return message


def test_a_new_directory_holds_value_and_newline_and_nothing_else(tmp_path: Path) -> None:
    assert write_directory(str(tmp_path / "mf"), VALUES) == 3
    assert content(tmp_path / "mf") == WRITTEN
    assert os.listdir(tmp_path) == ["mf"]


def test_an_empty_directory_can_be_made_for_jobstatus(tmp_path: Path) -> None:
    assert write_directory(str(tmp_path / "js"), {}) == 0
    assert content(tmp_path / "js") == {}
    assert mode(tmp_path / "js") == 0o755


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077, 0o777])
def test_modes_do_not_depend_on_the_umask(sandbox: Path, attack: Attack, umask: int) -> None:
    def write() -> None:
        os.umask(umask)
        write_directory(str(sandbox / "mf"), VALUES)
        write_directory(str(sandbox / "mf"), {"total_cpu": "12"})

    attack.run_as(attack.user, write)
    assert mode(sandbox / "mf") == 0o755
    assert {mode(path) for path in (sandbox / "mf").iterdir()} == {0o644}
    assert content(sandbox / "mf") == {**WRITTEN, "total_cpu": "12\n"}


def test_an_update_touches_only_what_changes_and_leaves_strangers_alone(tmp_path: Path) -> None:
    directory = tmp_path / "mf"
    write_directory(str(directory), VALUES)
    (directory / "notes.txt").write_text("the site's own\n")
    before = {path.name: (path.stat().st_ino, path.stat().st_mtime_ns) for path in directory.iterdir()}
    changed = update_directory(str(directory), {"total_cpu": "24", "hs06": None, "job_id": "13.0", "jobslots": None})
    assert changed == 2
    after = {path.name: (path.stat().st_ino, path.stat().st_mtime_ns) for path in directory.iterdir()}
    assert content(directory) == {"total_cpu": "24\n", "job_id": "13.0\n", "notes.txt": "the site's own\n"}
    assert after["total_cpu"] == before["total_cpu"]
    assert after["notes.txt"] == before["notes.txt"]
    assert update_directory(str(directory), {"total_cpu": "24", "job_id": "13.0"}) == 0


def test_an_update_does_not_bring_back_a_directory_the_job_removed(tmp_path: Path) -> None:
    """HOSTILE 49: half a directory would be worse than none."""
    assert "gone" in refused(lambda: update_directory(str(tmp_path / "mf"), VALUES))
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("text", ["", " ", "1 2", "1\n", "1\n2", "\x1b[0m", "caf\u00e9", "x" * 256])
def test_a_text_that_breaks_the_writer_rules_is_never_written(tmp_path: Path, text: str) -> None:
    """HOSTILE 23, 41."""
    refused(lambda: write_directory(str(tmp_path / "mf"), {"total_cpu": "24", "job_id": text}))
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("key", ["", "..", "../hs06", "a/b", "a b", "hs06\n", "caf\u00e9"])
def test_a_name_that_is_no_key_is_never_written(tmp_path: Path, key: str) -> None:
    """HOSTILE 15."""
    refused(lambda: write_directory(str(tmp_path / "mf"), {key: "1"}))
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("name", ["", ".", "..", "absent/mf", "file/mf", "x" * 255, "n\n\x1b" * 85])
def test_a_path_that_cannot_be_is_refused_in_one_printable_line(tmp_path: Path, name: str) -> None:
    """HOSTILE 15: 255 bytes leave no room for a temporary name."""
    (tmp_path / "file").write_text("")
    refused(lambda: write_directory(f"{tmp_path}/{name}", VALUES))
    assert os.listdir(tmp_path) == ["file"]


# --- squatters: the user was there first ---------------------------------------------------------------------------


def squat_link(place: Path, outside: Path) -> None:
    place.symlink_to(outside)


def squat_dangling(place: Path, outside: Path) -> None:
    place.symlink_to(outside / "nowhere")


def squat_file(place: Path, outside: Path) -> None:
    place.write_text("the user's input\n")


def squat_fifo(place: Path, outside: Path) -> None:
    os.mkfifo(place)


def squat_socket(place: Path, outside: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(place))


@pytest.mark.parametrize("squat", [squat_link, squat_dangling, squat_file, squat_fifo, squat_socket])
def test_what_stands_in_the_place_of_the_directory_is_left_alone(
    tmp_path: Path, squat: Callable[[Path, Path], None]
) -> None:
    """HOSTILE 1, 5, 6, 47: it may be an input file of the job; the caller logs one line and the job runs."""
    outside = tmp_path / "outside"
    outside.mkdir()
    squat(tmp_path / "mf", outside)
    before = (tmp_path / "mf").lstat()
    message = refused(lambda: write_directory(str(tmp_path / "mf"), VALUES))
    assert message.startswith("mf: ")
    assert "left alone" in message
    assert (tmp_path / "mf").lstat() == before
    assert os.listdir(outside) == []
    assert sorted(os.listdir(tmp_path)) == ["mf", "outside"]


def test_a_squatted_directory_of_our_own_is_brought_in_order_even_from_mode_000(sandbox: Path, attack: Attack) -> None:
    """HOSTILE 8, 10, 47: keys that are links, FIFOs, sockets and empty directories are replaced, never followed."""
    outside = sandbox / "outside"

    def squat_and_write() -> int:
        outside.write_text("untouched\n")
        directory = sandbox / "mf"
        directory.mkdir()
        (directory / "total_cpu").symlink_to(outside)
        os.mkfifo(directory / "hs06")
        (directory / "job_id").mkdir()
        squat_socket(directory / "jobslots", outside)
        (directory / "theirs").write_text("x")
        directory.chmod(0)
        return write_directory(str(directory), VALUES)

    assert attack.run_as(attack.user, squat_and_write) == 4
    assert content(sandbox / "mf") == {**WRITTEN, "theirs": "x"}
    assert mode(sandbox / "mf") == 0o755
    assert outside.read_text() == "untouched\n"


def test_a_file_with_the_right_content_but_wrong_mode_or_a_second_link_is_replaced(tmp_path: Path) -> None:
    """HOSTILE 4, 10: through another link the content could be changed later, and mode 000 is read by nobody."""
    write_directory(str(tmp_path / "mf"), VALUES)
    (tmp_path / "mf/hs06").chmod(0)
    os.link(tmp_path / "mf/job_id", tmp_path / "second")
    assert write_directory(str(tmp_path / "mf"), VALUES) == 2
    assert mode(tmp_path / "mf/hs06") == 0o644
    assert (tmp_path / "mf/job_id").stat().st_nlink == 1


def test_a_key_that_is_a_hard_link_to_another_file_is_not_written_through(tmp_path: Path) -> None:
    """HOSTILE 4."""
    (tmp_path / "victim").write_text("precious\n")
    (tmp_path / "mf").mkdir()
    os.link(tmp_path / "victim", tmp_path / "mf/total_cpu")
    write_directory(str(tmp_path / "mf"), VALUES)
    assert (tmp_path / "victim").read_text() == "precious\n"
    assert content(tmp_path / "mf") == WRITTEN


def test_a_squatted_key_costs_that_key_and_no_other(tmp_path: Path) -> None:
    """HOSTILE 8, 47: a directory with something in it is the user's, and stays."""
    (tmp_path / "mf/total_cpu/deep").mkdir(parents=True)
    (tmp_path / "mf/jobslots/deep").mkdir(parents=True)
    message = refused(lambda: write_directory(str(tmp_path / "mf"), VALUES))
    assert message == "mf: total_cpu: Directory not empty (and 1 more keys)"
    assert (tmp_path / "mf/hs06").read_text() == "300.5\n"
    assert (tmp_path / "mf/job_id").read_text() == "12.0\n"
    assert (tmp_path / "mf/total_cpu/deep").is_dir()
    assert sorted(os.listdir(tmp_path / "mf")) == ["hs06", "job_id", "jobslots", "total_cpu"]


def test_another_users_directory_is_left_alone(sandbox: Path, attack: Attack) -> None:
    """HOSTILE 11: even one that everybody may write."""
    attack.need_root()
    sandbox.chmod(0o777)
    (sandbox / "mf").mkdir()
    (sandbox / "mf").chmod(0o777)
    os.chown(sandbox / "mf", attack.user + 1, 0)
    message = attack.run_as(attack.user, lambda: refused(lambda: write_directory(str(sandbox / "mf"), VALUES)))
    assert f"belongs to uid {attack.user + 1}" in message
    assert os.listdir(sandbox / "mf") == []
    assert refused(lambda: write_directory(str(sandbox / "mf"), VALUES)).endswith("left alone")


def test_sticky_and_setgid_bits_do_no_harm(sandbox: Path, attack: Attack) -> None:
    """HOSTILE 14."""
    sandbox.chmod(0o3777)

    def write() -> None:
        write_directory(str(sandbox / "mf"), VALUES)
        (sandbox / "mf").chmod(0o3755)
        write_directory(str(sandbox / "mf"), {"total_cpu": "12", "hs06": None})

    attack.run_as(attack.user, write)
    assert content(sandbox / "mf") == {"total_cpu": "12\n", "job_id": "12.0\n"}


def test_an_immutable_key_is_one_line_and_the_others_are_written(tmp_path: Path) -> None:
    """HOSTILE 14."""
    (tmp_path / "mf").mkdir()
    (tmp_path / "mf/total_cpu").write_text("1\n")
    if subprocess.run(["chattr", "+i", tmp_path / "mf/total_cpu"], check=False, capture_output=True).returncode:
        pytest.skip("no immutable files here")
    try:
        assert "total_cpu: Operation not permitted" in refused(lambda: write_directory(str(tmp_path / "mf"), VALUES))
        assert sorted(os.listdir(tmp_path / "mf")) == ["hs06", "job_id", "total_cpu"]
    finally:
        subprocess.run(["chattr", "-i", tmp_path / "mf/total_cpu"], check=True)


def test_a_directory_swapped_for_a_link_in_a_loop_never_leads_outside(sandbox: Path, attack: Attack) -> None:
    """HOSTILE 2, 3, 16: whichever directory was opened is the one that is written."""
    decoy, target, spare = sandbox / "decoy", sandbox / "mf", sandbox / "spare"

    def prepare() -> None:
        decoy.mkdir()
        target.mkdir()

    def swap(_: int) -> None:
        os.rename(target, spare)
        os.symlink(decoy, target)
        os.unlink(target)
        os.rename(spare, target)

    def write() -> set[str]:
        outcomes: set[str] = set()
        writes = 0
        while len(outcomes) < 2 or writes < 100:
            writes += 1
            try:
                update_directory(str(target), {"total_cpu": f"{writes}"})
                outcomes.add("written")
            except FeatureError:
                outcomes.add("refused")
        return outcomes

    attack.run_as(attack.user, prepare)
    with attack.looping(swap, attack.user):
        assert attack.run_as(attack.user, write) == {"written", "refused"}
    assert os.listdir(decoy) == []


# --- broken systems -------------------------------------------------------------------------------------------------


@pytest.fixture
def tiny(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    mounted: list[Path] = []

    def mount(options: str) -> Path:
        place = tmp_path / "tiny"
        place.mkdir()
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tiny", place], check=False, capture_output=True)
        if done.returncode:
            pytest.skip("cannot mount a tmpfs here")
        mounted.append(place)
        return place

    yield mount
    for place in mounted:
        subprocess.run(["umount", "-l", place], check=True)


def test_a_full_disk_leaves_no_half_directory(tiny: Callable[[str], Path], fds: Callable[[], int]) -> None:
    """HOSTILE 27, 28: no space, and no inodes half-way through."""
    place = tiny("size=16k,nr_inodes=64")
    (place / "filler").write_bytes(b"x" * 12288)
    before = fds()
    message = refused(lambda: write_directory(str(place / "mf"), {f"key{n}": "1" for n in range(20)}))
    assert message == "mf: No space left on device"
    assert os.listdir(place) == ["filler"]
    assert fds() == before


def test_no_inodes_leaves_no_half_directory(tiny: Callable[[str], Path]) -> None:
    """HOSTILE 28."""
    place = tiny("size=1m,nr_inodes=4")
    assert "No space left" in refused(lambda: write_directory(str(place / "mf"), VALUES))
    assert os.listdir(place) == []


def test_an_update_on_a_full_disk_keeps_the_old_values_whole(tiny: Callable[[str], Path]) -> None:
    """HOSTILE 27: and a key can still be removed."""
    place = tiny("size=32k,nr_inodes=64")
    write_directory(str(place / "mf"), VALUES)
    with contextlib.suppress(OSError):
        (place / "filler").write_bytes(b"x" * 65536)
    message = refused(lambda: update_directory(str(place / "mf"), {"total_cpu": "99", "hs06": "99", "job_id": None}))
    assert message == "mf: total_cpu: No space left on device (and 1 more keys)"
    assert content(place / "mf") == {"total_cpu": "24\n", "hs06": "300.5\n"}


def test_a_file_size_limit_of_the_user_leaves_nothing_half_written(tmp_path: Path, attack: Attack) -> None:
    """HOSTILE 27: a short write is no write."""

    def write() -> str:
        resource.setrlimit(resource.RLIMIT_FSIZE, (3, 3))
        return refused(lambda: write_directory(str(tmp_path / "mf"), VALUES))

    assert attack.run_as(None, write).startswith("mf: ")
    assert os.listdir(tmp_path) == []


def test_no_file_descriptors_left_is_one_line(tmp_path: Path, attack: Attack) -> None:
    """HOSTILE 28: at whichever open it runs out, nothing half-made stays."""

    def write(spare: int) -> str:
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
        taken = []
        with contextlib.suppress(OSError):
            while True:
                taken.append(os.open("/dev/null", os.O_RDONLY))
        for fd in taken[:spare]:
            os.close(fd)
        return refused(lambda: write_directory(str(tmp_path / "mf"), VALUES))

    for spare in range(3):
        assert "Too many open files" in attack.run_as(None, functools.partial(write, spare))
        assert os.listdir(tmp_path) == []


def test_closed_standard_streams_do_no_harm(tmp_path: Path, attack: Attack) -> None:
    """Descriptor 0 is a descriptor like any other."""

    def write() -> int:
        os.close(0)
        return write_directory(str(tmp_path / "mf"), VALUES)

    assert attack.run_as(None, write) == 3
    assert content(tmp_path / "mf") == WRITTEN


# --- timing ---------------------------------------------------------------------------------------------------------


def has_more_than(directory: Path, count: int) -> bool:
    return len(os.listdir(directory)) > count


@pytest.mark.daemons
def test_killed_at_any_moment_a_new_directory_is_whole_or_absent(tmp_path: Path, attack: Attack) -> None:
    """HOSTILE 51: and what was left behind does not hinder the next one."""
    whole = {f"key{number}": f"{number}" for number in range(20)}

    def write(count: int) -> None:
        write_directory(f"{tmp_path}/mf{count}", whole)

    for number in range(15):
        seen = len(os.listdir(tmp_path)) + number % 3
        with attack.looping(write):  # killed when the block ends
            wait_for(functools.partial(has_more_than, tmp_path, seen))
        for directory in tmp_path.iterdir():
            if not directory.name.startswith("."):
                assert len(os.listdir(directory)) == len(whole), directory
    write_directory(f"{tmp_path}/mf0", whole)
    assert content(tmp_path / "mf0") == {key: f"{text}\n" for key, text in whole.items()}


def test_leftovers_of_a_killed_process_with_our_id_do_not_hinder(tmp_path: Path) -> None:
    """HOSTILE 48, 51."""
    (tmp_path / f".mf.{os.getpid()}.0").mkdir()
    write_directory(str(tmp_path / "mf"), VALUES)
    (tmp_path / "mf" / f".total_cpu.{os.getpid()}.0").write_text("half")
    write_directory(str(tmp_path / "mf"), {"total_cpu": "12"})
    assert (tmp_path / "mf/total_cpu").read_text() == "12\n"


def test_names_that_are_all_taken_are_one_line(tmp_path: Path) -> None:
    """HOSTILE 47."""
    write_directory(str(tmp_path / "mf"), VALUES)
    for number in range(8):
        (tmp_path / f".jf.{os.getpid()}.{number}").mkdir()
        (tmp_path / f"mf/.hs06.{os.getpid()}.{number}").mkdir()
    assert "no free temporary name" in refused(lambda: write_directory(str(tmp_path / "jf"), VALUES))
    assert "no free temporary name" in refused(lambda: write_directory(str(tmp_path / "mf"), {"hs06": "1"}))


def test_a_reader_never_sees_a_torn_or_missing_value(tmp_path: Path, attack: Attack) -> None:
    """HOSTILE 17: old content or new, at any moment."""
    values = ["1" * 200, "2" * 7]
    directory = str(tmp_path / "mf")
    write_directory(directory, {"job_id": values[0]})
    seen: set[str] = set()

    def rewrite(count: int) -> None:
        update_directory(directory, {"job_id": values[count % 2]})

    with attack.looping(rewrite):
        reads = 0
        while len(seen) < 2 or reads < 2000:
            reads += 1
            seen.add((tmp_path / "mf/job_id").read_text())
    assert seen == {f"{value}\n" for value in values}


def test_two_hooks_at_once_make_one_whole_directory(tmp_path: Path, attack: Attack) -> None:
    """HOSTILE 52."""
    values = {f"key{number}": "1" for number in range(10)}
    read_from, write_to = os.pipe()

    def write() -> None:
        os.close(write_to)
        os.read(read_from, 1)  # ends when the parent closes its end
        for number in range(40):
            write_directory(f"{tmp_path}/mf{number}", values)

    children = []
    for _ in range(3):
        pid = os.fork()
        if pid == 0:
            try:
                write()
                os._exit(0)
            except BaseException:
                os._exit(1)
        children.append(pid)
    os.close(read_from)
    os.close(write_to)
    assert [os.waitpid(pid, 0)[1] for pid in children] == [0, 0, 0]
    assert len(os.listdir(tmp_path)) == 40
    for directory in tmp_path.iterdir():
        assert content(directory) == dict.fromkeys(values, "1\n")


def test_twenty_new_keys_cost_little_more_than_their_system_calls(tmp_path: Path) -> None:
    """Compared with nothing but mkdir, open, write and close, the best of many runs each: the disk may be busy."""
    values = {f"key{number}": "1795249000" for number in range(20)}

    def bare(path: str) -> None:
        os.mkdir(path)
        for key in values:
            fd = os.open(f"{path}/{key}", os.O_WRONLY | os.O_CREAT, 0o644)
            os.write(fd, b"1795249000\n")
            os.close(fd)

    best = {"bare": 1.0, "ours": 1.0}
    for number in range(60):
        for name, write in (("bare", bare), ("ours", lambda path: write_directory(path, values))):
            started = time.perf_counter()
            write(f"{tmp_path}/{name}{number}")
            best[name] = min(best[name], time.perf_counter() - started)
    assert best["ours"] < 2.5 * best["bare"]
