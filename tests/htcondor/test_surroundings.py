"""What an operating system keeps from a node's cron is found, with the command that ends it."""

from __future__ import annotations

from pathlib import Path

import pytest

from drainwise.htcondor.setup.surroundings import Surroundings, judge_clock, judge_surroundings, surroundings

NOW = 1795249000
PLAIN = "proc /proc proc rw,nosuid,relatime 0 0\n"


@pytest.mark.parametrize(
    ("proc", "line"),
    [
        ("rw,relatime", ""),
        ("rw,hidepid=0", ""),
        ("rw,hidepid=off", ""),
        ("rw,hidepid=2", "mount -o remount,hidepid=2,gid=65 /proc"),
        ("rw,hidepid=invisible", "mount -o remount,hidepid=invisible,gid=65 /proc"),
        ("rw,hidepid=1,gid=9", "mount -o remount,hidepid=1,gid=65 /proc"),
        ("rw,gid=65,hidepid=invisible", ""),
    ],
)
def test_a_proc_that_hides_processes_from_htcondors_user_is_found(proc: str, line: str) -> None:
    found = list(judge_surroundings(Surroundings("/e", (64, 65), True, "/e", proc)))
    assert [one.line.partition("   ")[0] for one in found] == ([line] if line else [])


def test_a_file_system_without_access_lists_is_found(tmp_path: Path) -> None:
    """The kernel's own file systems have none."""
    mounts = tmp_path / "mounts"
    mounts.write_text(f"tmpfs /tmp tmpfs rw 0 0\n{PLAIN}")
    sound, bare = surroundings(str(tmp_path), str(mounts)), surroundings("/proc/self", str(mounts))
    assert sound is not None and list(judge_surroundings(sound)) == []
    assert bare is not None and not bare.has_lists and bare.proc == "rw,nosuid,relatime"
    [found] = judge_surroundings(Surroundings("/mnt/e", (64, 65), False, "/srv", ""))
    assert found.line.startswith("install -d -m 755 -o 64 -g 65 /srv/execute-with-lists; echo 'EXECUTE = /srv/execute")
    [found] = judge_surroundings(Surroundings("/mnt/e", (64, 65), False))
    assert "DIR-ON-EXT4-OR-XFS" in found.line
    assert surroundings(str(tmp_path / "none")) is None


@pytest.mark.parametrize(
    ("clock", "heard", "is_wrong"),
    [(NOW, NOW, 0), (NOW + 30, NOW, 0), (NOW + 31, NOW, 1), (NOW - 120, NOW, 0), (NOW - 600, NOW, 1), (0, NOW, 0)],
)
def test_a_clock_is_wrong_beside_the_collectors(clock: int, heard: int, is_wrong: int) -> None:
    """A busy collector takes an ad in later than it was sent, never sooner."""
    assert len(list(judge_clock("n1", clock, heard))) == is_wrong
