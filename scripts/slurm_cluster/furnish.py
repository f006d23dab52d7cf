"""What makes a site a cluster: host names, each machine's folders, the key of munge, configuration files."""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence

from real_daemons.furnish import make_directory, person, write_file
from real_daemons.site import CENTRAL
from slurm_cluster import layout
from slurm_cluster.layout import CONFIG_DIR, PRIVATE

MUNGE_KEY = "/srv/munge/key"


def add_machines(root: str, nodes: Sequence[str], release: str) -> None:
    """Make the folders and files of all machines, except slurm.conf."""
    munge, slurm, mysql = (person(root, name)[0] for name in ("munge", "slurm", "mysql"))
    write_file(root, "/etc/hosts", layout.hosts_file(nodes))
    make_directory(f"{root}/srv/munge", munge, 0o755)
    write_file(root, MUNGE_KEY, secrets.token_hex(64), 0o400, munge)
    make_directory(f"{root}/run/mysqld", mysql, 0o755)
    os.symlink("mysqld", f"{root}/run/mariadbd")  # where sid's library looks for the socket
    # All that slurmctld and slurmdbd, as slurm, write: state, logs, numbers.
    make_directory(f"{root}/srv/{CENTRAL}", slurm, 0o755)
    make_directory(f"{root}/srv/{CENTRAL}/state", slurm, 0o700)
    for node in nodes:
        make_directory(f"{root}/srv/{node}/spool", 0, 0o755)
        for path in PRIVATE:
            make_directory(f"{root}{layout.private_place(node, path)}", 0, 0o755 if path == "/run" else 0o1777)
    os.makedirs(root + CONFIG_DIR, exist_ok=True)
    write_file(root, f"{CONFIG_DIR}/slurmdbd.conf", layout.slurmdbd_conf(), 0o600, slurm)
    write_file(root, f"{CONFIG_DIR}/cgroup.conf", layout.cgroup_conf(release))
