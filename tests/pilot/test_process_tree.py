"""Processes below the pilot are found and ended, wherever they fled to."""

from __future__ import annotations

import os
import signal
import subprocess
import time

from drainwise.pilot.process_tree import (
    adopt_orphans,
    children,
    die_with_parent,
    environment_of,
    kill_all_below,
    kill_group,
)

from .apart import apart, wait_until


@apart
def test_orphans_come_to_the_pilot_and_all_can_be_ended() -> None:
    """A daemon in a session of its own, without environment, and its children: gone within a second."""
    assert adopt_orphans()
    script = "setsid env -i sh -c 'sleep 61 & setsid sleep 62' & setsid sleep 63 & exit 0"
    assert subprocess.run(["sh", "-c", script], check=True).returncode == 0
    wait_until(lambda: len(children()) == 2, "both orphans are ours")
    began = time.monotonic()
    assert kill_all_below(5) == []
    assert time.monotonic() - began < 1
    assert children() == []


@apart
def test_children_where_the_kernel_keeps_no_list() -> None:
    """What stands in /proc for every process gives the same answer."""
    import builtins

    with subprocess.Popen(["sleep", "60"]) as child:
        found = children()

        def no_list(path: str, mode: str = "r") -> object:
            if path.endswith("/children"):
                raise FileNotFoundError(path)
            return plain(path, mode)

        plain, builtins.open = builtins.open, no_list  # type: ignore[assignment]
        try:
            assert children() == found == [child.pid]
        finally:
            builtins.open = plain
        child.kill()


@apart
def test_a_payload_dies_with_its_pilot() -> None:
    """Nobody has to look for the main processes of a pilot that was killed with -9."""
    read, write = os.pipe()
    pilot = os.fork()
    if pilot == 0:
        child = subprocess.Popen(["sleep", "60"], preexec_fn=die_with_parent)  # noqa: PLW1509 - it has one thread
        os.write(write, str(child.pid).encode())
        signal.pause()
    payload = int(os.read(read, 20))
    os.kill(pilot, signal.SIGKILL)
    os.waitpid(pilot, 0)

    def gone() -> bool:
        try:
            with open(f"/proc/{payload}/stat") as stream:
                return stream.read().rpartition(")")[2].split()[0] in "ZX"
        except OSError:
            return True

    wait_until(gone, "the payload is gone")


@apart
def test_environment_and_groups() -> None:
    """A process is asked for its variables; one that is gone has none, and its group cannot be signalled."""
    child = subprocess.Popen(["sleep", "60"], env={"MARK": "x=y"}, start_new_session=True)
    # In the middle of exec a process has no environment.
    wait_until(lambda: environment_of(child.pid).get(b"MARK") == b"x=y", "the variables")
    assert kill_group(child.pid, signal.SIGKILL)
    child.wait()
    assert environment_of(child.pid) == {}
    assert not kill_group(child.pid, 0)
