"""Who is where in a test pool, and the configuration text of each machine. Pure: text in, text out."""

from __future__ import annotations

import collections
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from condor_pool.errors import PoolError

DOMAIN = "pool.test"
CENTRAL = "central"
PORT = 9618
ROLES = ("all", "central", "access", "execute")
EXTRA_FILE = "50-extra.conf"

_COMMON = """\
# What tells this machine of the pool from the others.
LOCAL_DIR = {local_dir}
LOCAL_CONFIG_DIR = {config_dir}/config.d
NETWORK_INTERFACE = {address}
BIND_ALL_INTERFACES = False
ENABLE_IPV6 = False
SHARED_PORT_PORT = {port}
DEFAULT_DOMAIN_NAME = {domain}
UID_DOMAIN = {domain}
TRUST_UID_DOMAIN = True
TRUST_DOMAIN = {domain}
CONDOR_HOST = {central}
COLLECTOR_HOST = {central}:{port}
DAEMON_LIST = {daemons}

# Who is who. Several masters on one machine refuse each other with a family session.
SEC_USE_FAMILY_SESSION = False
SEC_DEFAULT_AUTHENTICATION = REQUIRED
SEC_DEFAULT_AUTHENTICATION_METHODS = FS, IDTOKENS
ALLOW_READ = *
ALLOW_WRITE = *@{domain}
ALLOW_ADMINISTRATOR = root@{domain}, condor@{domain}, plugin@{domain}
ALLOW_CONFIG = $(ALLOW_ADMINISTRATOR)
ALLOW_DAEMON = root@{domain}, condor@{domain}
ALLOW_NEGOTIATOR = root@{domain}, condor@{domain}
QUEUE_SUPER_USERS = root, condor, plugin
# 25.x asks for 1 GiB for a job that does not say, so that few would fit on the pool's small disk.
JOB_DEFAULT_REQUESTDISK = 16384

# The kernel's settings are the host's.
ENABLE_KERNEL_TUNING = False

# No job fetches from a cloud. Each starter would ask three Python programs what they can: a second of CPU for each job.
FILETRANSFER_PLUGINS = $(LIBEXEC)/curl_plugin, $(LIBEXEC)/data_plugin

# A pool of a few seconds.
SCHEDD_INTERVAL = 5
SCHEDD_MIN_INTERVAL = 1
NEGOTIATOR_INTERVAL = 5
NEGOTIATOR_CYCLE_DELAY = 2
NEGOTIATOR_MIN_INTERVAL = 1
STARTER_UPDATE_INTERVAL = 5
STARTER_INITIAL_UPDATE_INTERVAL = 2
UPDATE_INTERVAL = 3
MASTER_UPDATE_INTERVAL = 5
RUNBENCHMARKS = 0
# Nor one that needs a process of its own for each question.
COLLECTOR_QUERY_WORKERS = 0
SCHEDD_QUERY_WORKERS = 0
MAIL = /bin/true
"""

_EXECUTE = """
# A machine of {cpus} cores, whatever this one has.
NUM_CPUS = {cpus}
MEMORY = {memory}
START = True
RANK = 0.0
{slots}
"""

_PARTITIONABLE = """\
NUM_SLOTS_TYPE_1 = 1
SLOT_TYPE_1 = 100%
SLOT_TYPE_1_PARTITIONABLE = True"""

_CLIENT = """\
# Tools of the host, which are no machine of the pool.
RELEASE_DIR = /usr
LOCAL_DIR = /tmp
LOCAL_CONFIG_DIR =
CONDOR_HOST = {central}
COLLECTOR_HOST = {central}:{port}
NETWORK_INTERFACE = {central}
ENABLE_IPV6 = False
DEFAULT_DOMAIN_NAME = {domain}
UID_DOMAIN = {domain}
TRUST_DOMAIN = {domain}
SEC_CLIENT_AUTHENTICATION = REQUIRED
SEC_CLIENT_AUTHENTICATION_METHODS = IDTOKENS
SEC_TOKEN_DIRECTORY = {tokens}
"""


@dataclass(frozen=True)
class Node:
    """One machine of the pool: short name, loopback address, the roles it plays."""

    name: str
    address: str
    roles: tuple[str, ...]

    @property
    def host(self) -> str:
        """Fully qualified host name."""
        return f"{self.name}.{DOMAIN}"

    @property
    def config_dir(self) -> str:
        """Folder of its configuration, inside the pool as all of these: `condor_config` and `config.d`."""
        return f"/etc/condor/nodes/{self.name}"

    @property
    def config_file(self) -> str:
        """Main configuration file."""
        return f"{self.config_dir}/condor_config"

    @property
    def local_dir(self) -> str:
        """HTCondor's LOCAL_DIR."""
        return f"/srv/{self.name}"

    @property
    def log_dir(self) -> str:
        """Folder of the daemons' logs."""
        return f"{self.local_dir}/log/condor"

    @property
    def execute_dir(self) -> str:
        """Folder of the jobs' sandboxes."""
        return f"{self.local_dir}/lib/condor/execute"

    @property
    def pid_file(self) -> str:
        """File in which the master, as condor, leaves its number."""
        return f"{self.local_dir}/run/condor/master.pid"

    @property
    def daemons(self) -> tuple[str, ...]:
        """Daemons under its master, in lower case."""
        return ("startd",) if "execute" in self.roles else ("collector", "negotiator", "schedd")


def plan_nodes(count: int) -> tuple[Node, ...]:
    """The central manager (which is the access point, too) and `count` execute nodes."""
    if not 1 <= count <= 200:
        raise PoolError(f"a test pool has 1 to 200 execute nodes, not {count}")
    central = Node(CENTRAL, "127.0.0.10", ("all", "central", "access"))
    return (central, *(Node(f"node{i}", f"127.0.0.{10 + i}", ("all", "execute")) for i in range(1, count + 1)))


def nodes_of(nodes: Sequence[Node], role_or_node: str) -> list[Node]:
    """The machines that play a role or bear a name; raises PoolError if there is none."""
    chosen = [node for node in nodes if role_or_node == node.name or role_or_node in node.roles]
    if not chosen:
        known = ", ".join([*ROLES, *(node.name for node in nodes)])
        raise PoolError(f"no role or node {role_or_node!r} in this pool; known: {known}")
    return chosen


def hosts_file(nodes: Sequence[Node]) -> str:
    """Text of /etc/hosts."""
    return "127.0.0.1 localhost\n" + "".join(f"{node.address} {node.host} {node.name}\n" for node in nodes)


def slot_text(cpus: int, static_slots: Sequence[int]) -> str:
    """One partitionable slot of the whole machine, or a static slot of each given number of cores."""
    if not static_slots:
        return _PARTITIONABLE
    if min(static_slots) < 1 or sum(static_slots) > cpus:
        raise PoolError(f"static slots of {list(static_slots)} cores do not fit in {cpus} cores")
    share = 100 // len(static_slots)
    lines = []
    for number, (cores, count) in enumerate(sorted(collections.Counter(static_slots).items()), start=1):
        lines.append(f"NUM_SLOTS_TYPE_{number} = {count}")
        lines.append(f"SLOT_TYPE_{number} = cpus={cores}, mem={share}%, swap={share}%, disk={share}%")
        lines.append(f"SLOT_TYPE_{number}_PARTITIONABLE = False")
    return "\n".join(lines)


def node_config(node: Node, central: Node, cpus: int, static_slots: Sequence[int]) -> str:
    """Main configuration file of one machine: Debian's own, then what the pool needs, then its config.d."""
    text = "include : /etc/condor/condor_config\n\n" + _COMMON.format(
        local_dir=node.local_dir,
        config_dir=node.config_dir,
        address=node.address,
        port=PORT,
        domain=DOMAIN,
        central=central.address,
        daemons=", ".join(["master", *node.daemons]).upper(),
    )
    if "execute" in node.roles:
        text += _EXECUTE.format(cpus=cpus, memory=2048 * cpus, slots=slot_text(cpus, static_slots))
    return text


def client_config(central: Node, token_dir: str) -> str:
    """Configuration of a client outside the pool's file system that shows the tokens in `token_dir`."""
    return _CLIENT.format(central=central.address, port=PORT, domain=DOMAIN, tokens=token_dir)


def extra_config(nodes: Sequence[Node], extra: Mapping[str, str]) -> dict[str, str]:
    """Node name → extra text: `all` first, then the roles, then what is meant for this node alone."""
    for key in extra:
        nodes_of(nodes, key)
    return {
        node.name: "\n".join(extra[key] for key in (*node.roles, node.name) if key in extra) + "\n" for node in nodes
    }
