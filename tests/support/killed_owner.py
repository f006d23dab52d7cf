"""A program that is killed while the site of real daemons that it starts comes up."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import real_daemons
from real_daemons.traces import child_of, host_state, namespace_of, processes_in
from real_daemons.waiting import wait_for

SCRIPTS = str(Path(real_daemons.__file__).parents[1])
_START = """
import sys
sys.path.insert(0, sys.argv[1])
from {module} import {name}
with {name}({options}):
    print("complete", flush=True)
    sys.stdin.read()
"""


def require_nothing_left(module: str, name: str, options: str, ending: signal.Signals, place: Path) -> None:
    """Require that neither a process nor a mount, user or file is left of a `name`(`options`) that was coming up."""
    before = host_state()
    with subprocess.Popen(
        [sys.executable, "-c", _START.format(module=module, name=name, options=options), SCRIPTS],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(place)},
    ) as owner:
        first = 0

        def daemons_run() -> bool:
            nonlocal first
            first = child_of(child_of(owner.pid) or -1)
            return first > 0 and len(processes_in({namespace_of(first, "pid")})) > 3

        wait_for(daemons_run, 20, "the first daemons")
        namespaces = {namespace_of(first, kind) for kind in ("pid", "mnt")}
        owner.send_signal(ending)
        assert owner.wait(20) == -ending
    wait_for(lambda: not processes_in(namespaces), 10, "the end of the site's processes")
    assert host_state() == before
    assert os.listdir(place) == []
