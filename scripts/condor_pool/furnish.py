"""What makes a site a pool: host names, each machine's folders and its configuration."""

from __future__ import annotations

import os
from collections.abc import Mapping

from condor_pool.layout import EXTRA_FILE, Node, hosts_file
from real_daemons.furnish import make_directory, person, write_file


def add_machines(root: str, configs: Mapping[Node, tuple[str, str]]) -> None:
    """Make each machine's folders and write its configuration (main text, extra text) in the tree at `root`."""
    write_file(root, "/etc/hosts", hosts_file(tuple(configs)))
    condor, _home = person(root, "condor")
    for node, (text, extra) in configs.items():
        # LOCAL_DIR of the machine, with the folders that Debian's package has below /var.
        for directory in ("log/condor", "lock/condor", "run/condor", "spool/condor", "lib/condor/execute"):
            make_directory(f"{root}{node.local_dir}/{directory}", condor, 0o755)
        os.makedirs(f"{root}{node.config_dir}/config.d")
        write_file(root, node.config_file, text)
        write_file(root, f"{node.config_dir}/config.d/{EXTRA_FILE}", extra)
