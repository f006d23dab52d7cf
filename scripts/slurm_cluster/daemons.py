"""The daemons of a cluster: as whom and where each runs, its command, its number and its log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from real_daemons.errors import DaemonsError
from real_daemons.site import CENTRAL
from slurm_cluster.furnish import MUNGE_KEY
from slurm_cluster.layout import CONTROLLER_PORT, DATABASE_PORT, MUNGE_SOCKET, slurmd_port


@dataclass(frozen=True)
class Daemon:
    """One daemon. It answers on a TCP `port` or a `socket`'s path; if it does not detach by itself, a shell does it."""

    name: str
    argv: tuple[str, ...]
    user: str
    pid_file: str
    log: str
    node: str = CENTRAL
    port: int = 0
    socket: str = ""
    detaches: bool = True

    @property
    def output(self) -> str:
        """File for what it says before it has opened its log."""
        return f"{self.log}.out"

    @property
    def launch(self) -> list[str]:
        """The command that starts it: it goes into the background and takes none of the caller's pipes along."""
        script = 'exec "$@" >>"$0" 2>&1 </dev/null'
        if not self.detaches:
            script = f"echo $$ >{self.pid_file}; {script}"
            return ["sh", "-c", 'setsid "$@" &', "sh", "sh", "-c", script, self.output, *self.argv]
        return ["sh", "-c", script, self.output, *self.argv]


_MUNGE = ("--key-file", MUNGE_KEY, "--socket", MUNGE_SOCKET, "--pid-file", "/srv/munge/pid")
_MUNGE_FILES = ("--log-file", "/srv/munge/log", "--seed-file", "/srv/munge/seed")

SERVICES = (
    Daemon(
        "munged", ("munged", *_MUNGE, *_MUNGE_FILES), "munge", "/srv/munge/pid", "/srv/munge/log", socket=MUNGE_SOCKET
    ),
    Daemon(
        "mariadbd",
        ("mariadbd",),
        "mysql",
        "/run/mysqld/pid",
        "/run/mysqld/log",
        socket="/run/mysqld/mysqld.sock",
        detaches=False,
    ),
    Daemon(
        "slurmdbd",
        ("slurmdbd",),
        "slurm",
        f"/srv/{CENTRAL}/slurmdbd.pid",
        f"/srv/{CENTRAL}/slurmdbd.log",
        port=DATABASE_PORT,
    ),
)
# A slurmctld of 26.05 that was killed before it had saved its state for the first time does not start without it.
_YOUNG = {"sid": ("-i",)}


def daemons_of(release: str, nodes: Sequence[str]) -> dict[str, Daemon]:
    """Name → daemon, in the order in which they are started; the slurmd of a node is called after the node."""
    slurmctld = Daemon(
        "slurmctld",
        ("slurmctld", *_YOUNG.get(release, ())),
        "slurm",
        f"/srv/{CENTRAL}/slurmctld.pid",
        f"/srv/{CENTRAL}/slurmctld.log",
        port=CONTROLLER_PORT,
    )
    slurmds = (
        Daemon(
            node,
            ("slurmd", "-N", node),
            "root",
            f"/srv/{node}/slurmd.pid",
            f"/srv/{node}/slurmd.log",
            node,
            port=slurmd_port(node),
        )
        for node in nodes
    )
    return {daemon.name: daemon for daemon in (*SERVICES, slurmctld, *slurmds)}


def find(daemons: dict[str, Daemon], name: str) -> Daemon:
    """The daemon called `name`; raises DaemonsError with the names there are."""
    if name not in daemons:
        raise DaemonsError(f"no daemon {name!r} in this cluster; known: {', '.join(daemons)}")
    return daemons[name]
