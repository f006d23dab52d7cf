"""A set of Linux namespaces around a private copy of a root file system, and the way in.

One process (init.py, PID 1 inside) holds everything. It ends when its standard input is closed, so it cannot outlive
the program that started it; with it the kernel ends every process, mount and address of the pool.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence

from condor_pool.errors import PoolError

_INIT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "init.py")
# A limit, not a reservation: a pool writes some tens of megabytes.
_SIZE = "8g"
_START_SECONDS = 30.0
_END_SECONDS = 20.0
_UTS_DIR = "/run/uts"
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Enclosure:
    """The namespaces of one pool.

    Parameters: `root`, the tree to copy from (never changed); `mount_point`, an existing directory that is only used
    in the private mount namespace.
    """

    def __init__(self, root: str, mount_point: str) -> None:
        isolate = ["unshare", "--mount", "--uts", "--ipc", "--pid", "--net", "--fork", "--kill-child=SIGKILL"]
        init = [sys.executable, "-I", "-S", _INIT, root, mount_point, _SIZE]
        # A session of its own: Ctrl-C is for the program that uses the pool, which then ends it in order.
        self._process = subprocess.Popen(
            [*isolate, *init],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            cwd="/",
        )
        try:
            self.pid = self._read_start()
        except BaseException:
            self.end()
            raise

    @property
    def root(self) -> str:
        """Path of the pool's root as seen from outside; for root on this machine only."""
        return f"/proc/{self.pid}/root"

    def network_command(self, argv: Sequence[str]) -> list[str]:
        """The command line that runs a program of the host in the pool's network."""
        return ["nsenter", f"--target={self.pid}", "--net", "--", *argv]

    def name_host(self, name: str, host: str) -> None:
        """Make a UTS namespace called `name` in which the host is called `host`."""
        os.makedirs(self.root + _UTS_DIR, exist_ok=True)
        with open(f"{self.root}{_UTS_DIR}/{name}", "x", encoding="utf-8"):
            pass
        command = [*self._inside(), "unshare", f"--uts={_UTS_DIR}/{name}", "hostname", host]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode != 0:
            raise PoolError(f"cannot name host {host}: {result.stderr.strip()}")

    def command(
        self, argv: Sequence[str], name: str, user: str, home: str, environment: Mapping[str, str], seconds: float
    ) -> list[str]:
        """The command line that runs `argv` in the pool: on host `name`, as `user` with its groups, in `home`, with
        `environment` and the basic variables alone, ended by SIGTERM after `seconds` and SIGKILL 2 s later."""
        variables = {"PATH": _PATH, "LANG": "C.UTF-8", "USER": user, "LOGNAME": user, "HOME": home, **environment}
        become = ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups", "--"]
        clean = ["env", "-i", "-C", home, *(f"{key}={value}" for key, value in variables.items())]
        bounded = ["timeout", "--kill-after=2", f"{seconds:.3f}"]
        return [*self._inside(), "nsenter", f"--uts={_UTS_DIR}/{name}", "--", *become, *clean, *bounded, *argv]

    def end(self) -> None:
        """End every process of the pool; its mounts and files go with them. Harmless when it has ended."""
        process = self._process
        if process.stdin is not None:
            process.stdin.close()
        try:
            # A child this program forked may still hold the other end of the pipe: then a kill does it.
            process.wait(0.5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(_END_SECONDS)
        if process.stdout is not None:
            process.stdout.close()

    def _inside(self) -> list[str]:
        spaces = ["--mount", "--ipc", "--pid", "--net"]
        # The host's PATH means nothing inside, so the first program within is looked up in the pool's.
        return ["nsenter", f"--target={self.pid}", *spaces, "--", "/usr/bin/env", f"PATH={_PATH}"]

    def _read_start(self) -> int:
        """Read the number and the `ready` of init; raises PoolError with what it said instead."""
        output = self._process.stdout
        if output is None:
            raise PoolError("no pipe from the pool's first process")
        text = b""
        deadline = time.monotonic() + _START_SECONDS
        while not text.endswith(b"ready\n"):
            readable, _, _ = select.select([output], [], [], max(0.0, deadline - time.monotonic()))
            part = os.read(output.fileno(), 65536) if readable else b""
            if not part:
                raise PoolError(f"the pool's namespaces did not come up: {text.decode(errors='replace').strip()}")
            text += part
        return int(text.split()[0])
