"""How programs reach a running pool: inside, as one of its users on one of its machines, or outside, with a token."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence

from condor_pool import furnish, layout
from condor_pool.errors import CommandError, PoolError
from condor_pool.layout import CENTRAL, DOMAIN, Node
from condor_pool.logs import log_tails
from condor_pool.namespaces import Enclosure

ADMIN_IDENTITY = f"plugin@{DOMAIN}"
_CLIENTS_DIR = "/srv/clients"


class PoolAccess:
    """The running pool as others see it: its machines, its files, commands in it and from outside."""

    def __init__(self, nodes: tuple[Node, ...]) -> None:
        self.nodes = nodes
        self._enclosure: Enclosure | None = None

    @property
    def _inside(self) -> Enclosure:
        if self._enclosure is None:
            raise PoolError("the pool is not running: use it as `with CondorPool(…) as pool:`")
        return self._enclosure

    @property
    def pid(self) -> int:
        """The host's number of the pool's PID 1, whose end is the end of everything in the pool."""
        return self._inside.pid

    @property
    def root(self) -> str:
        """Path of the pool's root file system as this machine's root sees it (to read logs, to place files).

        An absolute symbolic link on the way leads out of the pool; what the pool itself makes has none.
        """
        return self._inside.root

    @property
    def node_names(self) -> tuple[str, ...]:
        """Names of the execute machines."""
        return tuple(node.name for node in self.nodes[1:])

    @property
    def version(self) -> tuple[int, int, int]:
        """HTCondor's version, e.g. (23, 9, 6)."""
        major, minor, patch = self.run(["condor_version"]).stdout.split()[1].split(".")
        return int(major), int(minor), int(patch)

    def node(self, name: str) -> Node:
        """The machine called `name`, with the places of its files."""
        return layout.nodes_of(self.nodes, name)[0]

    def uid(self, user: str) -> int:
        """Number of a user of the pool."""
        return furnish.user_number(self.root, user)

    def log_tails(self) -> str:
        """The last lines of every daemon's log."""
        return log_tails(self.root, self.nodes)

    def run(
        self,
        argv: Sequence[str],
        user: str = "root",
        node: str = CENTRAL,
        stdin: str = "",
        check: bool = True,
        timeout: float = 60.0,
        environment: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run a program of the pool on a machine, as a user, in the user's home, with a clean environment.

        Raises CommandError if `check` and it ends with a code other than 0 (124: not done within `timeout` seconds).
        """
        where = self.node(node)
        variables = {"CONDOR_CONFIG": where.config_file, **(environment or {})}
        command = self._inside.command(argv, where.name, user, furnish.HOMES[user], variables, timeout)
        return _finish(command, argv, stdin, check, timeout + 10.0, None)

    def outside_env(self, identity: str = ADMIN_IDENTITY) -> dict[str, str]:
        """Environment for a program of the host that shall talk to the pool as `identity` (user@pool.test).

        Its token and client configuration live in the pool and go with it; only the host's root can read them.
        """
        directory = f"{_CLIENTS_DIR}/{identity}"
        if not os.path.isdir(self.root + directory):
            token = self.run(["condor_token_create", "-identity", identity]).stdout
            os.makedirs(f"{self.root}{directory}/tokens.d", mode=0o700)
            furnish.write_file(self.root, f"{directory}/tokens.d/pool", token, mode=0o600)
            text = layout.client_config(self.nodes[0], f"{self.root}{directory}/tokens.d")
            furnish.write_file(self.root, f"{directory}/condor_config", text)
        environment = {name: value for name, value in os.environ.items() if "CONDOR" not in name.upper()}
        return {**environment, "CONDOR_CONFIG": f"{self.root}{directory}/condor_config"}

    def outside_command(self, argv: Sequence[str]) -> list[str]:
        """The command line that runs a program of the host in the pool's network (with `outside_env`)."""
        return self._inside.network_command(argv)

    def run_outside(
        self,
        argv: Sequence[str],
        identity: str = ADMIN_IDENTITY,
        stdin: str = "",
        check: bool = True,
        timeout: float = 60.0,
        environment: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run a program of the host (the tests' own Python, say) in the pool's network, authenticated by a token.

        Raises CommandError if it is not done within `timeout` seconds, or if `check` and its code is not 0.
        """
        variables = {**self.outside_env(identity), **(environment or {})}
        return _finish(self.outside_command(argv), argv, stdin, check, timeout, variables)


def _finish(
    command: Sequence[str],
    argv: Sequence[str],
    stdin: str,
    check: bool,
    timeout: float,
    environment: Mapping[str, str] | None,
) -> subprocess.CompletedProcess[str]:
    """Run `command`, of which the reader knows `argv`."""
    try:
        result = subprocess.run(
            command, input=stdin, capture_output=True, text=True, check=False, timeout=timeout, env=environment
        )
    except subprocess.TimeoutExpired as error:
        raise CommandError(f"{' '.join(argv)} was not done within {timeout:g} s") from error
    if check and result.returncode != 0:
        said = f"{result.stdout}{result.stderr}".rstrip()
        raise CommandError(f"{' '.join(argv)} ended with code {result.returncode}\n{said}")
    return result
