"""Scratch directories: empty for whoever gets one, gone in the end, and nothing else is touched."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from drainwise_launch.this_machine import scratch
from drainwise_launch.this_machine.scratch import ScratchSpace, Usage


def put_file(path: Path) -> None:
    (path / "file").touch()


def close_it(path: Path) -> None:
    path.chmod(0o500)


def swap_it(path: Path) -> None:
    path.rmdir()
    path.symlink_to(path.parent.parent / "precious")


def take_it_away(path: Path) -> None:
    path.rmdir()


def make_it_anew(path: Path) -> None:
    path.rename(path.parent.parent / "elsewhere")
    path.mkdir(mode=0o700)


@pytest.mark.parametrize("when", ["while its job runs", "after it"])
@pytest.mark.parametrize("act", [put_file, close_it, swap_it, take_it_away])
def test_only_one_that_is_as_it_was_made_is_given_to_another_job(
    tmp_path: Path, act: Callable[[Path], None], when: str
) -> None:
    """Removing and making one costs more than a process, so an empty one is given again: empty, or not at all."""
    (tmp_path / "precious").mkdir(mode=0o700)
    (tmp_path / "precious" / "file").touch()
    space = ScratchSpace(f"{tmp_path}/scratch")
    first = space.make()
    space.remove(first)
    assert space.make() == first
    if when == "after it":
        space.remove(first)
    act(Path(first))
    if when != "after it":
        space.remove(first)
    again = space.make()
    assert not os.path.islink(again) and os.listdir(again) == [] and os.stat(again).st_mode & 0o7777 == 0o700
    space.remove(again)
    space.close()
    assert os.listdir(tmp_path / "scratch") == [] and os.listdir(tmp_path / "precious") == ["file"]


def test_another_directory_in_its_place_is_no_scratch_of_ours(tmp_path: Path) -> None:
    space = ScratchSpace(f"{tmp_path}/scratch")
    first = space.make()
    space.remove(first)
    make_it_anew(Path(first))
    assert space.make() != first
    space.close()
    assert (tmp_path / "elsewhere").is_dir()


def test_what_an_earlier_launch_has_left_is_taken_away(tmp_path: Path) -> None:
    for name in ("1/a/b", "job-x"):
        (tmp_path / "scratch" / name).mkdir(parents=True)
    (tmp_path / "scratch" / "file").touch()
    space = ScratchSpace(f"{tmp_path}/scratch")
    assert os.listdir(tmp_path / "scratch") == [] and os.listdir(space.make()) == []


def test_a_large_scratch_is_added_up_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """HOSTILE 26: each look sees so many entries at most; what it has seen so far counts; then it rests."""
    monkeypatch.setattr(scratch, "_ENTRIES", 10)
    for number in range(25):
        (tmp_path / f"{number}").write_bytes(b"x" * 4096)
    usage = Usage(str(tmp_path))
    assert [usage.look(0.0) // 4096 for _ in range(4)] == [10, 20, 25, 25]
    (tmp_path / "more").write_bytes(b"x" * 4096)
    assert usage.look(scratch._LOOK - 0.1) // 4096 == 25
    assert [usage.look(scratch._LOOK) // 4096 for _ in range(3)] == [10, 20, 26]
