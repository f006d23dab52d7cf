"""The recipe of a root file system with Slurm and its database in it. Trees are named after the text of this file and
of the common part: change it, and they are built anew.

The database is laid out here, once: a cluster starts from a private copy of it.
"""

from __future__ import annotations

import glob
import os

from real_daemons.errors import DaemonsError
from real_daemons.roots import CACHE_DIR, Recipe, Root, obtain
from real_daemons.unpack import EXPIRED, add_user, output_of, unpack

_PLUGINS = ("slurm-wlm-basic-plugins", "slurm-wlm-mysql-plugin")
# Release → packages beyond the common ones, further options of mmdebstrap; Slurm 22.05, 24.11, 26.05.
RELEASES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "bookworm": ((), ()),
    "trixie": (_PLUGINS, ()),
    "sid": (_PLUGINS, EXPIRED),
}
SUPPORTED = ("bookworm", "trixie")
"""The releases on which drainwise is tested."""
PACKAGES = (
    *("munge", "mariadb-server-core", "mariadb-client-core", "iproute2"),
    *("slurmctld", "slurmd", "slurmdbd", "slurm-client"),
)
DATABASE_DIR = "/var/lib/mysql"

_SYSTEM_USERS = {"munge": "/var/lib/munge", "mysql": DATABASE_DIR, "slurm": "/var/lib/slurm"}
# Small and careless: it lives in memory for minutes.
_DATABASE_CONFIG = f"""\
[client-server]
socket = /run/mysqld/mysqld.sock
[mariadbd]
user = mysql
datadir = {DATABASE_DIR}
bind_address = 127.0.0.1
skip_name_resolve = ON
# Since 11.4 it would make a key and a certificate at each start, for seconds.
skip_ssl
performance_schema = OFF
innodb_buffer_pool_size = 64M
innodb_log_file_size = 8M
innodb_flush_log_at_trx_commit = 0
innodb_flush_method = fsync
innodb_use_native_aio = OFF
innodb_snapshot_isolation = OFF
innodb_lock_wait_timeout = 900
"""
# slurmdbd proves by the socket who it is; nobody else in the cluster can.
_DATABASE_USER = """\
FLUSH PRIVILEGES;
CREATE DATABASE slurm_acct_db;
CREATE USER slurm@localhost IDENTIFIED VIA unix_socket;
GRANT ALL ON slurm_acct_db.* TO slurm@localhost;
"""


def recipe_of(release: str) -> Recipe:
    """The recipe of a release's tree; raises DaemonsError if there is none."""
    if release not in RELEASES:
        raise DaemonsError(f"unknown release {release!r}; known: {', '.join(RELEASES)}")
    return Recipe(f"slurm-{release}", release, (__file__,), lambda root, archive: build_root(release, root, archive))


def obtain_root(release: str, cache_dir: str = CACHE_DIR) -> Root:
    """The tree of a release, built if it is not there yet (some 15 s, 300 MB on disk).

    Raises MissingToolError if this machine lacks a tool, RootUnavailableError if the archive does not give it.
    """
    return obtain(recipe_of(release), cache_dir)


def build_root(release: str, root: str, archive: str) -> None:
    """Make the tree of a release in the empty directory `root`, from the Debian archive at an address.

    Raises RootUnavailableError with the last words of the program that failed.
    """
    plugins, options = RELEASES[release]
    unpack(release, [*PACKAGES, *plugins], root, archive, options)
    for name, home in _SYSTEM_USERS.items():
        add_user(root, name, range(100, 1000), home, "/usr/sbin/nologin")
    for daemon in ("slurmctld", "slurmd", "slurmstepd"):
        # Debian calls them so because another package has a slurmd; its scripts would make these links.
        os.symlink(f"{daemon}-wlm", f"{root}/usr/sbin/{daemon}")
    for plugin in glob.glob(f"{root}/usr/lib/*/slurm-wlm/mpi_pmix*.so"):
        os.unlink(plugin)  # every daemon and tool would complain that PMIx is not there
    _lay_out_database(root)


def _lay_out_database(root: str) -> None:
    with open(f"{root}/etc/mysql/my.cnf", "w", encoding="utf-8") as file:
        file.write(_DATABASE_CONFIG)
    script = f"{root}/etc/mysql/accounting.sql"
    with open(script, "w", encoding="utf-8") as file:
        file.write(_DATABASE_USER)
    clean = ["chroot", root, "/usr/bin/env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin"]
    install = ["mariadb-install-db", "--skip-test-db", "--force", "--extra-file=/etc/mysql/accounting.sql"]
    output_of("laying out the database", [*clean, *install])
