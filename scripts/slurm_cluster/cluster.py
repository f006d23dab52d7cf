"""`SlurmCluster`: start a real cluster, reconfigure it, kill its daemons and have them back, end it."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Sequence

from real_daemons.errors import CommandError, DaemonsError
from real_daemons.furnish import write_file
from real_daemons.namespaces import Enclosure
from real_daemons.site import CENTRAL
from slurm_cluster import daemons, furnish, layout, settings
from slurm_cluster.access import ClusterAccess
from slurm_cluster.daemons import Daemon
from slurm_cluster.layout import CONFIG_DIR, PRIVATE, Account, Qos

_LAUNCH_SECONDS = 10.0
_START_SECONDS = 30.0
_STOP_SECONDS = 20.0
_RECONFIGURE_SECONDS = 20.0
# What a slurmd logs each time it has read its configuration (there is no /sys in a cluster).
_CONFIGURED = "CPU frequency setting not configured"
_UNREACHABLE = ("UNKNOWN", "DOWN", "*")


class SlurmCluster(ClusterAccess):
    """A cluster of one controller with database and accounting and `nodes` compute nodes, on loopback addresses.

    Parameters
    * nodes: number of compute nodes, called node1, node2 …; the other machine is called `central`. Each has its own
      host name, /run, /tmp and /var/tmp; all share the rest, as from a file server.
    * cpus: cores that each node pretends to have (2 GiB of memory each).
    * release: Debian release: bookworm has Slurm 22.05, trixie 24.11, sid 26.05.
    * config: lines of slurm.conf that are added or take the place of the harness's own, see `settings.merged`.
    * gres: text of gres.conf; a GPU needs a `File=` that exists, such as /dev/null.
    * accounts: accounts with their shares and users (alice and bob exist); qos: further qualities of service.

    alice and bob are plain users; root and slurm administer.
    """

    def __init__(
        self,
        nodes: int = 4,
        cpus: int = 8,
        release: str = "trixie",
        config: str = "",
        accounts: Sequence[Account] = layout.ACCOUNTS,
        qos: Sequence[Qos] = (),
        gres: str = "",
    ) -> None:
        super().__init__(release, nodes)
        self._config = settings.merged(layout.slurm_conf(release, self.node_names, cpus), config)
        self._gres = gres
        self._accounting = layout.accounting_script(accounts, qos)

    # ---- life ----

    def _bring_up(self, enclosure: Enclosure) -> None:
        furnish.add_machines(self.root, self.node_names, self.release)
        write_file(self.root, f"{CONFIG_DIR}/slurm.conf", self._config)
        if self._gres:
            write_file(self.root, f"{CONFIG_DIR}/gres.conf", self._gres)
        enclosure.add_machine(CENTRAL, CENTRAL)
        for node in self.node_names:
            enclosure.add_machine(node, node, {path: layout.private_place(node, path) for path in PRIVATE})
        self._hasten_network()
        for name in ("munged", "mariadbd", "slurmdbd"):
            self.start_daemon(name)
        for script in self._accounting:
            self.run(["sacctmgr", "--immediate"], stdin=script)
        for name in ("slurmctld", *self.node_names):
            self.start_daemon(name)
        self.wait_until_complete()

    def _hasten_network(self) -> None:
        # Slurm 22.05 writes its messages to slurmdbd in two pieces, so each waits 40 ms for a delayed acknowledgement:
        # half a second for every sacctmgr.
        for destination in ("127.0.0.0/8", "127.0.0.1"):
            route = ["local", destination, "dev", "lo", "proto", "kernel", "scope", "host", "src", "127.0.0.1"]
            self.run(["ip", "route", "change", "table", "local", *route, "quickack", "1"])

    def _answers(self, daemon: Daemon) -> bool:
        if daemon.port:
            with open(f"/proc/{self.pid}/net/tcp", encoding="ascii") as sockets:
                # Its number is in hexadecimal; 0A is LISTEN.
                listening = {line.split()[1] for line in sockets if line.split()[3] == "0A"}
            return any(place.endswith(f":{daemon.port:04X}") for place in listening)
        with socket.socket(socket.AF_UNIX) as client:
            return client.connect_ex(self.root + daemon.socket) == 0

    def wait_until_complete(self, seconds: float = _START_SECONDS) -> None:
        """Wait until slurmctld answers and has heard of every node whose slurmd runs (whatever else their state)."""
        self.wait_for(lambda: not self._missing_nodes(), seconds, "all nodes to be known to slurmctld")

    def _missing_nodes(self) -> list[str]:
        answer = self.run(["scontrol", "--oneliner", "show", "node"], check=False).stdout
        nodes = [dict(word.partition("=")[::2] for word in line.split()) for line in answer.splitlines()]
        states = {node["NodeName"]: node["State"] for node in nodes if "State" in node}
        running = [node for node in self.node_names if self.is_running(node)]
        lost = [node for node in running if any(sign in states.get(node, "UNKNOWN") for sign in _UNREACHABLE)]
        return lost or ([] if states else ["slurmctld"])

    # ---- configuration ----

    def configure(self, fragment: str) -> None:
        """Write slurm.conf anew: the cluster's own with the lines of `fragment` (`Key=` removes a line).

        Each call begins from the cluster's own again, so `""` takes everything back; see `reconfigure`, `restart`.
        """
        write_file(self.root, f"{CONFIG_DIR}/slurm.conf", settings.merged(self._config, fragment))

    def reconfigure(self) -> None:
        """Have all daemons read slurm.conf again and wait until each has done so."""
        before = {node: self.log(node).count(_CONFIGURED) for node in self.node_names if self.is_running(node)}
        self.run(["scontrol", "reconfigure"])
        self.wait_for(
            lambda: all(self.log(node).count(_CONFIGURED) > count for node, count in before.items()),
            _RECONFIGURE_SECONDS,
            "every slurmd to read its configuration",
        )
        self.wait_until_complete()

    def restart(self) -> None:
        """Stop slurmctld and every slurmd in order, start them and wait until they are complete; jobs go on running."""
        # Without slurmctld, a slurmd that is starting a job would not stop before it has given up reporting that.
        for name in (*self.node_names, "slurmctld"):
            if self.is_running(name):
                self.kill_daemon(name, signal.SIGTERM)
        for name in ("slurmctld", *self.node_names):
            self.start_daemon(name)
        self.wait_until_complete()

    # ---- daemons ----

    def daemon_pid(self, name: str) -> int:
        """Number, inside the cluster, of the daemon called `name` (a node's name stands for its slurmd); 0: none."""
        daemon = daemons.find(self._daemons, name)
        try:
            with open(self.root + daemon.pid_file, encoding="ascii") as file:
                number = int(file.read() or "0")
            with open(f"{self.root}/proc/{number}/cmdline", encoding="utf-8") as file:
                # The file may be of a killed daemon whose number another program has now.
                return number if file.read().split("\0")[: len(daemon.argv)] == list(daemon.argv) else 0
        except FileNotFoundError:
            return 0

    def seen_on(self, node: str, path: str) -> str:
        """Where this machine's root finds the file that programs on a node call `path`, also in what is mounted there.

        As long as the node's slurmd runs.
        """
        return f"{self.root}/proc/{self.daemon_pid(node)}/root{path}"

    def is_running(self, name: str) -> bool:
        """Whether the daemon called `name` lives."""
        return self.daemon_pid(name) != 0

    def kill_daemon(self, name: str, how: signal.Signals = signal.SIGKILL) -> None:
        """Send a daemon a signal and wait for its end; jobs go on running. Raises DaemonsError if it does not run.

        SIGKILL is a crash: slurmctld then forgets what is younger than its last saved state (up to 5 s), jobs included;
        SIGTERM lets it save everything.
        """
        number = self.daemon_pid(name)
        if not number:
            raise DaemonsError(f"{name} does not run")
        self.run(["kill", f"-{int(how)}", str(number)])
        self.wait_for_end_of(number, _STOP_SECONDS, name)

    def start_daemon(self, name: str) -> None:
        """Start a daemon and wait until it answers; see `wait_until_complete` for what the others know of it.

        Raises CommandError or DeadlineError, with the ends of the logs, if it does not start.
        """
        daemon = daemons.find(self._daemons, name)

        def said() -> str:
            return self.log(name) if os.path.exists(self.root + daemon.log) else ""

        before = len(said())
        try:
            self.run(daemon.launch, user=daemon.user, node=daemon.node)
        except CommandError as error:
            raise CommandError(f"{error}\n{self.log_tails()}") from None
        self.wait_for(lambda: self.is_running(name) or "fatal: " in said()[before:], _LAUNCH_SECONDS, f"{name} to run")
        self.wait_for(lambda: self._answers(daemon) or not self.is_running(name), _START_SECONDS, f"{name} to answer")
        if not self.is_running(name):
            raise CommandError(f"{name} has ended\n{self.log_tails()}")
