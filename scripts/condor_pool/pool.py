"""`CondorPool`: start a real pool, talk to it, end it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from condor_pool import furnish, layout, reader
from condor_pool.access import PoolAccess
from condor_pool.ads import Ad, parse_ads
from condor_pool.errors import CommandError
from condor_pool.layout import Node
from real_daemons.furnish import write_file
from real_daemons.namespaces import Enclosure
from real_daemons.site import running_sites

_GENERATION = "CONDOR_POOL_GENERATION"
_START_SECONDS = 60.0
_RECONFIGURE_SECONDS = 20.0
_STOP_SECONDS = 30.0


def running_pools() -> tuple[CondorPool, ...]:
    """The pools this program runs now."""
    return tuple(site for site in running_sites() if isinstance(site, CondorPool))


class CondorPool(PoolAccess):
    """A pool of one central manager with the access point and `nodes` execute machines, on loopback addresses.

    Parameters
    * nodes: number of execute machines, called node1, node2 …; the other machine is called `central`.
    * cpus: cores that each execute machine pretends to have (2 GiB of memory each).
    * release: Debian release, see `roots.RELEASES`.
    * config: role (`all`, `central`, `access`, `execute`) or machine → configuration text added to it.
    * static_slots: cores of each static slot; none means one partitionable slot.

    Users `alice` and `bob` may read and submit; root, condor and the token identity plugin@pool.test administer.
    """

    def __init__(
        self,
        nodes: int = 3,
        cpus: int = 24,
        release: str = "trixie",
        config: Mapping[str, str] | None = None,
        static_slots: Sequence[int] = (),
    ) -> None:
        super().__init__(release, layout.plan_nodes(nodes))
        extra = layout.extra_config(self.nodes, config or {})
        self._configs = {
            node: (layout.node_config(node, self.nodes[0], cpus, static_slots), extra[node.name]) for node in self.nodes
        }
        self._generation = 0

    # ---- life ----

    def _bring_up(self, enclosure: Enclosure) -> None:
        furnish.add_machines(self.root, self._configs)
        for node in self.nodes:
            enclosure.add_machine(node.name, node.host)
            self._launch(node)
        self._wait_until_complete()

    def _launch(self, node: Node) -> None:
        # The master goes into the background and takes its pipes along, so they must not be ours.
        script = 'exec condor_master -pidfile "$0" >>"$1" 2>&1 </dev/null'
        try:
            self.run(["sh", "-c", script, node.pid_file, f"{node.log_dir}/master.out"], node=node.name)
        except CommandError as error:
            raise CommandError(f"{error}\n{self.log_tails()}") from None

    def _missing_daemons(self) -> list[tuple[str, str]]:
        """Kind and host of the masters, slots, schedd and negotiator that the collector does not have yet."""
        query = ["condor_status", "-any", "-json", "-attributes", "MyType,Machine"]
        ads = parse_ads(self.run(query, check=False).stdout)
        seen = {(ad.text("MyType"), ad.text("Machine")) for ad in ads if "Machine" in ad}
        wanted = [("DaemonMaster", node.host) for node in self.nodes]
        wanted += [("Machine", node.host) for node in self.nodes[1:]]
        wanted += [("Scheduler", self.nodes[0].host), ("Negotiator", self.nodes[0].host)]
        return [daemon for daemon in wanted if daemon not in seen]

    def _wait_until_complete(self) -> None:
        self.wait_for(lambda: not self._missing_daemons(), _START_SECONDS, "all daemons in the collector")

    # ---- jobs and ads ----

    def submit(self, text: str, user: str) -> int:
        """Submit a description as `user` (in the user's home) and return the cluster's number."""
        result = self.run(["condor_submit", "-terse", "-"], user=user, stdin=text)
        return int(result.stdout.split(".")[0])

    def queue(self, constraint: str = "True", attributes: Sequence[str] = ()) -> list[Ad]:
        """Ads of the jobs in the queue (all users'); all attributes unless some are named."""
        return self.reader.ads(reader.JOBS, constraint, attributes)

    def history(self, constraint: str = "True", attributes: Sequence[str] = ()) -> list[Ad]:
        """Ads of the jobs that have left the queue."""
        projection = ["-attributes", ",".join(attributes)] if attributes else []
        return parse_ads(self.run(["condor_history", "-json", "-constraint", constraint, *projection]).stdout)

    def slots(self, constraint: str = "True", attributes: Sequence[str] = ()) -> list[Ad]:
        """Ads of the slots as the collector has them."""
        return self.reader.ads(reader.SLOTS, constraint, attributes)

    # ---- configuration, daemons ----

    def configure(self, role_or_node: str, name: str, text: str) -> None:
        """Write `text` as file `name` of config.d on the machines of a role or on one; see `reconfigure`, `restart`."""
        for node in layout.nodes_of(self.nodes, role_or_node):
            write_file(self.root, f"{node.config_dir}/config.d/{name}", text)

    def reconfigure(self, role_or_node: str = "all") -> None:
        """Have the daemons of these machines read their configuration again and wait until each has done so."""
        nodes = layout.nodes_of(self.nodes, role_or_node)
        self._generation += 1
        for node in nodes:
            self.configure(node.name, "99-generation.conf", f"{_GENERATION} = {self._generation}\n")
            self.run(["condor_reconfig"], node=node.name)
        for node in nodes:
            for daemon in ("master", *node.daemons):
                what = f"the new configuration in the {daemon} of {node.name}"
                self.wait_for(partial(self._has_generation, node, daemon), _RECONFIGURE_SECONDS, what)

    def _has_generation(self, node: Node, daemon: str) -> bool:
        said = self.run(["condor_config_val", f"-{daemon}", _GENERATION], node=node.name, check=False).stdout
        return said.strip() == str(self._generation)

    def restart(self, name: str, graceful: bool = False) -> None:
        """Stop the daemons of one machine, start them and wait until the collector has them."""
        self.stop(name, graceful)
        self.start(name)

    def stop(self, name: str, graceful: bool = False) -> None:
        """Stop the daemons of one machine and wait until they are gone; its jobs are killed, unless `graceful`."""
        with open(f"{self.root}{self.node(name).pid_file}", encoding="utf-8") as file:
            master = int(file.read())
        self.run(["kill", "-TERM" if graceful else "-QUIT", str(master)])
        self.wait_for_end_of(master, _STOP_SECONDS, f"the daemons of {name}")

    def start(self, name: str) -> None:
        """Start the daemons of one machine and wait until the collector has them."""
        self._launch(self.node(name))
        self._wait_until_complete()
