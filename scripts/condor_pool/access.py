"""How programs reach a running pool: inside, as one of its users on one of its machines, or outside, with a token."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence

from condor_pool import layout, reader
from condor_pool.layout import DOMAIN, Node
from condor_pool.logs import daemon_logs
from condor_pool.roots import recipe_of
from real_daemons.furnish import write_file
from real_daemons.logs import tails
from real_daemons.site import Site, finish

ADMIN_IDENTITY = f"plugin@{DOMAIN}"
_CLIENTS_DIR = "/srv/clients"


class PoolAccess(Site):
    """The running pool as others see it: its machines, its files, commands in it and from outside."""

    def __init__(self, release: str, nodes: tuple[Node, ...]) -> None:
        super().__init__(recipe_of(release))
        self.nodes = nodes

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

    def log_tails(self) -> str:
        """The last lines of every daemon's log."""
        return tails(daemon_logs(self.root, self.nodes))

    def _variables(self, node: str) -> Mapping[str, str]:
        return {"CONDOR_CONFIG": self.node(node).config_file}

    def outside_env(self, identity: str = ADMIN_IDENTITY) -> dict[str, str]:
        """Environment for a program of the host that shall talk to the pool as `identity` (user@pool.test).

        Its token and client configuration live in the pool and go with it; only the host's root can read them.
        """
        directory = f"{_CLIENTS_DIR}/{identity}"
        if not os.path.isdir(self.root + directory):
            token = self.run(["condor_token_create", "-identity", identity]).stdout
            os.makedirs(f"{self.root}{directory}/tokens.d", mode=0o700)
            write_file(self.root, f"{directory}/tokens.d/pool", token, mode=0o600)
            text = layout.client_config(self.nodes[0], f"{self.root}{directory}/tokens.d")
            write_file(self.root, f"{directory}/condor_config", text)
        environment = {name: value for name, value in os.environ.items() if "CONDOR" not in name.upper()}
        return {**environment, "CONDOR_CONFIG": f"{self.root}{directory}/condor_config"}

    @functools.cached_property
    def reader(self) -> reader.Reader:
        """What reads the pool's slots and jobs; it ends with the pool."""
        command = self.outside_command([sys.executable, "-m", "condor_pool.reader"])
        scripts = os.path.dirname(os.path.dirname(os.path.abspath(reader.__file__)))
        return reader.Reader(command, {**self.outside_env(), "PYTHONPATH": scripts})

    def _end(self) -> None:
        if "reader" in self.__dict__:
            self.reader.end()
        super()._end()

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
        return finish(self.outside_command(argv), argv, stdin, check, timeout, variables)
