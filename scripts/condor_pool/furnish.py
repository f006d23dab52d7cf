"""What makes a copy of a root file system this pool: users, host names, each machine's folders and configuration.

All functions work on the tree at `root` from outside and write nothing else.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Mapping

from condor_pool.errors import PoolError
from condor_pool.layout import EXTRA_FILE, Node, hosts_file
from condor_pool.recipe import CONDOR_HOME, add_user

USERS = ("alice", "bob")
HOMES = {"root": "/root", "condor": CONDOR_HOME, **{user: f"/home/{user}" for user in USERS}}


def user_number(root: str, name: str) -> int:
    """Number of the user `name` of `root`; raises PoolError if there is none."""
    with open(f"{root}/etc/passwd", encoding="utf-8") as lines:
        for line in lines:
            if line.startswith(f"{name}:"):
                return int(line.split(":")[2])
    raise PoolError(f"no user {name!r} in the pool")


def add_people(root: str) -> None:
    """Add the plain users, each with a number and a private home of its own."""
    for user in USERS:
        number = add_user(root, user, range(1001, 2000), HOMES[user], "/bin/bash")
        _make_directory(root + HOMES[user], number, 0o700)


def add_machines(root: str, configs: Mapping[Node, tuple[str, str]]) -> None:
    """Make each machine's folders and write its configuration (main text, extra text)."""
    write_file(root, "/etc/hosts", hosts_file(tuple(configs)))
    condor = user_number(root, "condor")
    for node, (text, extra) in configs.items():
        # LOCAL_DIR of the machine, with the folders that Debian's package has below /var.
        for directory in ("log/condor", "lock/condor", "run/condor", "spool/condor", "lib/condor/execute"):
            _make_directory(f"{root}{node.local_dir}/{directory}", condor, 0o755)
        os.makedirs(f"{root}{node.config_dir}/config.d")
        write_file(root, node.config_file, text)
        write_file(root, f"{node.config_dir}/config.d/{EXTRA_FILE}", extra)


def write_file(root: str, path: str, text: str, mode: int = 0o644) -> None:
    """Replace the file `path` of `root` in one step, so that no daemon reads half of it."""
    directory, name = os.path.split(path)
    # A daemon that lists config.d in this moment ignores dot files.
    temporary = f"{root}{directory}/.{name}.{uuid.uuid4().hex}"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with open(descriptor, "w", encoding="utf-8") as file:
        os.fchmod(descriptor, mode)
        file.write(text)
    os.rename(temporary, root + path)


def copy_tree(root: str, source: str, target: str, owner: int) -> None:
    """Copy a file or folder of the host to `target` in `root`, with its modes, as `owner`'s."""
    path = root + target
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if not os.path.isdir(source):
        shutil.copy2(source, path)
        os.chown(path, owner, owner)
        return
    shutil.copytree(source, path, symlinks=True, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    for directory, _names, files in os.walk(path):
        for entry in (directory, *(f"{directory}/{file}" for file in files)):
            os.chown(entry, owner, owner, follow_symlinks=False)


def _make_directory(path: str, owner: int, mode: int) -> None:
    os.makedirs(path)
    os.chmod(path, mode)
    os.chown(path, owner, owner)
