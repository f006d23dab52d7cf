"""`SgeCluster`: start a real Grid Engine, talk to it, kill its daemons and have them back, end it."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping, Sequence

from real_daemons.errors import CommandError, DaemonsError
from real_daemons.furnish import write_file
from real_daemons.logs import tails
from real_daemons.namespaces import Enclosure
from real_daemons.site import CENTRAL, USERS, Site
from sge_cluster import layout
from sge_cluster.recipe import RELEASES, recipe_of

_START_SECONDS = 30.0
_STOP_SECONDS = 20.0
# Name → file with its number, its log.
_DAEMONS = {
    "sge_qmaster": (layout.QMASTER_PID, layout.QMASTER_LOG),
    "sge_execd": (layout.EXECD_PID, layout.EXECD_LOG),
}


class SgeCluster(Site):
    """A cell of one machine, called `central`, that is master, submit host and execution host.

    Parameters: `slots`, how many jobs of one core the machine takes (2 GiB of memory and 10 GB of scratch each, 4
    licences in all, as the consumable resources cpu_r, mem_r, tmp_r and licence); `release`, a Debian release.

    alice and bob are plain users; root and sgeadmin administer.
    """

    def __init__(self, slots: int = 8, release: str = RELEASES[0]) -> None:
        super().__init__(recipe_of(release))
        self._slots = slots

    # ---- life ----

    def _variables(self, node: str) -> Mapping[str, str]:  # noqa: ARG002 - there is but one machine
        return layout.ENVIRONMENT

    def _bring_up(self, enclosure: Enclosure) -> None:
        enclosure.add_machine(CENTRAL, CENTRAL)
        self.start_daemon("sge_qmaster")
        self._configure()
        self.start_daemon("sge_execd")
        self.run(["qconf", "-mattr", "exechost", "complex_values", layout.host(self._slots), CENTRAL])
        template = self.run(["qconf", "-sq"]).stdout
        self._load("-Aq", layout.queue(template, self._slots))
        self.wait_for(self._has_room, _START_SECONDS, "the queue to take jobs")

    def _configure(self) -> None:
        self.configure(layout.GLOBAL)
        self._load("-Msconf", layout.edited(self.run(["qconf", "-ssconf"]).stdout, layout.SCHEDULER))
        self._load("-Mc", self.run(["qconf", "-sc"]).stdout + layout.COMPLEXES)
        for switch, name in (("-as", CENTRAL), ("-ah", CENTRAL)):
            self.run(["qconf", switch, name], check=False)

    def configure(self, changes: Mapping[str, str]) -> None:
        """Change keys of the cell's configuration; raises DaemonsError for one that it does not have."""
        self._load("-Mconf", layout.edited(self.run(["qconf", "-sconf"]).stdout, changes), "global")

    def _load(self, switch: str, text: str, name: str = "settings") -> None:
        """Have qconf read a file; the name of one with a configuration is the host's."""
        path = f"/srv/{name}"
        write_file(self.root, path, text)
        self.run(["qconf", switch, path])

    def _has_room(self) -> bool:
        """Whether the machine has told its load: before that, nothing starts on it."""
        lines = self.run(["qstat", "-f"], check=False).stdout.splitlines()
        words = next((line.split() for line in lines if line.startswith(f"{layout.QUEUE}@")), [])
        return len(words) == 5 and words[3] != "-NA-"

    # ---- daemons ----

    def daemon_pid(self, name: str) -> int:
        """Number, inside, of sge_qmaster or sge_execd; 0: it does not run."""
        if name not in _DAEMONS:
            raise DaemonsError(f"no daemon {name!r} in this cell; known: {', '.join(_DAEMONS)}")
        try:
            with open(self.root + _DAEMONS[name][0], encoding="ascii") as file:
                number = int(file.read() or "0")
            with open(f"{self.root}/proc/{number}/comm", encoding="utf-8") as file:
                return number if file.read().strip() == name else 0
        except FileNotFoundError:
            return 0

    def start_daemon(self, name: str) -> None:
        """Start a daemon and wait until it answers."""
        # It goes into the background and must take none of our pipes along.
        self.run(["sh", "-c", 'exec "$0" </dev/null >>"/srv/$0.out" 2>&1', name])
        self.wait_for(lambda: self.daemon_pid(name), _START_SECONDS, f"{name} to run")
        if name == "sge_qmaster":
            asked = ["qconf", "-sm"]
            self.wait_for(lambda: not self.run(asked, check=False).returncode, _START_SECONDS, "sge_qmaster to answer")
        else:
            asked = ["qconf", "-se", CENTRAL]
            self.wait_for(lambda: "load_avg" in self.run(asked, check=False).stdout, _START_SECONDS, "load of the host")

    def kill_daemon(self, name: str, how: signal.Signals = signal.SIGKILL) -> None:
        """Send a daemon a signal and wait for its end; jobs go on running. Raises DaemonsError if it does not run."""
        number = self.daemon_pid(name)
        if not number:
            raise DaemonsError(f"{name} does not run")
        self.run(["kill", f"-{int(how)}", str(number)])
        self.wait_for_end_of(number, _STOP_SECONDS, name)

    # ---- jobs ----

    def submit(self, script: str, user: str, options: Sequence[str] = ()) -> int:
        """Submit a script of sh as `user`, in the user's home; its number."""
        said = self.run(["qsub", "-terse", *options], user=user, stdin=f"#!/bin/sh\n{script}\n").stdout
        return int(said)

    def numbers(self, states: str = "prs") -> set[int]:
        """The jobs that qmaster has, of all users: p those that wait, r those that run, s those suspended."""
        lines = self.run(["qstat", "-u", "*", "-s", states]).stdout.splitlines()
        return {int(line.split()[0]) for line in lines[2:]}

    def accounting(self) -> list[dict[str, str]]:
        """What the accounting file has of all jobs that have ended; see `layout.accounted`."""
        try:
            with open(self.root + layout.ACCOUNTING, encoding="utf-8", errors="replace") as file:
                return layout.accounted(file.read())
        except FileNotFoundError:  # nothing has ended yet
            return []

    def cancel_all(self, seconds: float = 30.0) -> None:
        """Delete every user's jobs and wait until none is left."""
        for user in USERS:
            self.run(["qdel", "-u", user], check=False)
        self.wait_for(lambda: not self.numbers(), seconds, "the end of all jobs")

    def log_tails(self) -> str:
        """The last lines of every daemon's log."""
        found = [(name, self.root + log) for name, (_number, log) in _DAEMONS.items()]
        return tails((name, path) for name, path in found if os.path.exists(path))


__all__ = ["CommandError", "SgeCluster"]
