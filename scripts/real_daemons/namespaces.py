"""A set of Linux namespaces around a private copy of a root file system, and the way in.

One process (init.py, PID 1 inside) holds everything. It ends when its standard input is closed, so it cannot outlive
the program that started it; with it the kernel ends every process, mount and address of the site.
"""

from __future__ import annotations

import os
import select
import shlex
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence

from real_daemons.errors import DaemonsError

_INIT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "init.py")
# A limit, not a reservation: a site writes some tens of megabytes.
_SIZE = "8g"
_START_SECONDS = 30.0
_END_SECONDS = 20.0
_UTS_DIR = "/run/uts"
# The host's modules, clock and ports belong to no namespace: nothing in a site, though it be root, may change them.
_DENIED = "--bounding-set=-sys_module,-sys_time,-sys_rawio"
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# The host's PATH means nothing inside. Each program in between takes a millisecond, thousands of times in a suite.
_ENV, _SETPRIV = "/usr/bin/env", "/usr/bin/setpriv"


class Enclosure:
    """The namespaces of one site.

    Parameters: `root`, the tree to copy from (never changed); `mount_point`, an existing directory that is only used
    in the private mount namespace.
    """

    def __init__(self, root: str, mount_point: str) -> None:
        isolate = ["unshare", "--mount", "--uts", "--ipc", "--pid", "--net", "--fork", "--kill-child=SIGKILL"]
        init = [sys.executable, "-I", "-S", _INIT, root, mount_point, _SIZE]
        self._machines: dict[str, list[str]] = {}  # the beginning of a command line on each
        # A session of its own: Ctrl-C is for the program that uses the site, which then ends it in order.
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
        """Path of the site's root as seen from outside; for root on this machine only."""
        return f"/proc/{self.pid}/root"

    def network_command(self, argv: Sequence[str]) -> list[str]:
        """The command line that runs a program of the host in the site's network."""
        return ["nsenter", f"--target={self.pid}", "--net", "--", *argv]

    def add_machine(self, name: str, host: str, private: Mapping[str, str] | None = None) -> None:
        """Make a machine called `name`: a UTS namespace in which the host is called `host`, and, if some directories
        shall be `private` to the machine (path → existing directory that takes its place), a mount namespace.
        """
        steps = [f"hostname {shlex.quote(host)}"]
        if not private:
            os.makedirs(self.root + _UTS_DIR, exist_ok=True)
            with open(f"{self.root}{_UTS_DIR}/{name}", "x", encoding="utf-8"):
                pass
            self._in_new_spaces(host, [f"--uts={_UTS_DIR}/{name}"], steps)
            self._machines[name] = self._enter_site("--mount", f"--uts={self.root}{_UTS_DIR}/{name}")
            return
        steps += [f"mount --bind {shlex.quote(source)} {shlex.quote(path)}" for path, source in private.items()]
        # A process holds these two: Linux 6.18 numbers mount namespaces out of order and then refuses, now and then, to
        # bind one to a file.
        steps += ["echo $$", "exec setsid sleep infinity </dev/null >/dev/null 2>&1"]
        holder = self._in_new_spaces(host, ["--uts", "--mount"], steps, " &").strip()
        spaces = f"{self.root}/proc/{holder}/ns"
        self._machines[name] = self._enter_site(f"--mount={spaces}/mnt", f"--uts={spaces}/uts")

    def enter_by(self, name: str, *options: str) -> None:
        """Give the name `name` to the machine that nsenter, in the site, enters by these options."""
        self._machines[name] = [*self._inside(), "nsenter", *options, "--"]

    def _in_new_spaces(self, host: str, spaces: Sequence[str], steps: Sequence[str], end: str = "") -> str:
        """Run a shell's `steps` in new namespaces of the site, in the background if `end` says so; what they print."""
        line = shlex.join(["unshare", *spaces, "sh", "-ec", "\n".join(steps)])
        command = [*self._inside(), "sh", "-c", line + end]
        result = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if result.returncode != 0 or (end and not result.stdout):
            raise DaemonsError(f"cannot make the machine {host}: {result.stderr.strip()}")
        return result.stdout

    def command(
        self, argv: Sequence[str], name: str, user: str, home: str, environment: Mapping[str, str], seconds: float
    ) -> list[str]:
        """The command line that runs `argv` in the site: on machine `name`, as `user` with its groups, in `home`, with
        `environment` and the basic variables alone, ended by SIGTERM after `seconds` and SIGKILL 2 s later.
        """
        variables = {"PATH": _PATH, "LANG": "C.UTF-8", "USER": user, "LOGNAME": user, "HOME": home, **environment}
        become = [_SETPRIV, _DENIED, f"--reuid={user}", f"--regid={user}", "--init-groups", "--"]
        clean = [_ENV, "-i", "-C", home, *(f"{key}={value}" for key, value in variables.items())]
        bounded = ["timeout", "--kill-after=2", f"{seconds:.3f}"]
        return [*self._enter(name), *become, *clean, *bounded, *argv]

    def tool_command(self, program: str, name: str, user: str, home: str) -> list[str]:
        """The command line that lets a program of the host use `program` of the site as if it were its own.

        It runs on machine `name` as `user`, with the caller's environment but for the user's names, and dies with the
        process that this command line is.
        """
        become = [_SETPRIV, f"--reuid={user}", f"--regid={user}", "--init-groups", "--pdeathsig=KILL", "--"]
        named = [_ENV, "-C", home, f"PATH={_PATH}", f"USER={user}", f"LOGNAME={user}", f"HOME={home}"]
        return [*self._enter(name), *become, *named, program]

    def end(self) -> None:
        """End every process of the site; its mounts and files go with them. Harmless when it has ended."""
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

    def _enter(self, name: str) -> list[str]:
        """The beginning of a command line on machine `name`; raises DaemonsError if there is none."""
        if name not in self._machines:
            raise DaemonsError(f"no machine {name!r} in this site; known: {', '.join(self._machines)}")
        return self._machines[name]

    def _enter_site(self, *spaces: str) -> list[str]:
        """The beginning of a command line in the site's network and processes, and in these spaces."""
        return ["nsenter", f"--target={self.pid}", "--ipc", "--pid", "--net", *spaces, "--"]

    def _inside(self) -> list[str]:
        return [*self._enter_site("--mount"), _ENV, f"PATH={_PATH}"]

    def _read_start(self) -> int:
        """Read the number and the `ready` of init; raises DaemonsError with what it said instead."""
        output = self._process.stdout
        if output is None:
            raise DaemonsError("no pipe from the site's first process")
        text = b""
        deadline = time.monotonic() + _START_SECONDS
        while not text.endswith(b"ready\n"):
            readable, _, _ = select.select([output], [], [], max(0.0, deadline - time.monotonic()))
            part = os.read(output.fileno(), 65536) if readable else b""
            if not part:
                raise DaemonsError(f"the site's namespaces did not come up: {text.decode(errors='replace').strip()}")
            text += part
        return int(text.split()[0])
