"""All that a process started is found and ended, wherever it hid."""

from __future__ import annotations

import os
import signal
import subprocess

from apart import apart
from drainwise.processes.process import children
from drainwise.processes.tree import adopt_orphans, die_with_parent, kill_all_below, lead_group
from real_daemons.waiting import wait_for


@apart
def test_orphans_come_to_the_pilot_and_all_can_be_ended() -> None:
    """A daemon in a session of its own, without environment, and its children: gone at once, whatever time there is."""
    assert adopt_orphans()
    script = "setsid env -i sh -c 'sleep 61 & setsid sleep 62' & setsid sleep 63 & exit 0"
    assert subprocess.run(["sh", "-c", script], check=True).returncode == 0
    wait_for(lambda: len(children()) == 2, what="both orphans are ours")
    assert kill_all_below(1e6) == []
    assert children() == []


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

    wait_for(gone, what="the payload is gone")


@apart
def test_who_is_not_below_is_spared_though_a_child_joined_its_group() -> None:
    """Within a session anybody may enter any group: there only those that are below are killed, one by one."""
    with subprocess.Popen(["sleep", "60"], preexec_fn=lead_group) as beside:  # noqa: PLW1509 - it has one thread
        parent = os.fork()
        if parent == 0:
            joined = subprocess.Popen(["sleep", "61"], preexec_fn=lambda: os.setpgid(0, beside.pid))  # noqa: PLW1509
            os._exit(0 if kill_all_below(1e6) == [] and not os.path.exists(f"/proc/{joined.pid}") else 1)
        assert os.waitpid(parent, 0)[1] == 0
        assert beside.poll() is None
        beside.kill()
