"""What makes a copy of a root file system a site: people, files in place, trees copied in.

All functions work on the tree at `root` from outside and write nothing else.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Sequence

from real_daemons.errors import DaemonsError
from real_daemons.unpack import add_user


def person(root: str, name: str) -> tuple[int, str]:
    """Number and home of the user `name` of `root`; raises DaemonsError if there is none."""
    with open(f"{root}/etc/passwd", encoding="utf-8") as lines:
        for line in lines:
            if line.startswith(f"{name}:"):
                fields = line.split(":")
                return int(fields[2]), fields[5]
    raise DaemonsError(f"no user {name!r} in {root}")


def add_people(root: str, users: Sequence[str]) -> None:
    """Add plain users, each with a number and a private home of its own."""
    for user in users:
        home = f"/home/{user}"
        number = add_user(root, user, range(1001, 2000), home, "/bin/bash")
        make_directory(root + home, number, 0o700)


def write_file(root: str, path: str, text: str, mode: int = 0o644, owner: int = 0) -> None:
    """Replace the file `path` of `root` in one step, so that no daemon reads half of it."""
    directory, name = os.path.split(path)
    # A daemon that lists a folder of settings in this moment ignores dot files.
    temporary = f"{root}{directory}/.{name}.{uuid.uuid4().hex}"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "w", encoding="utf-8") as file:
        os.fchown(descriptor, owner, owner)
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


def make_directory(path: str, owner: int, mode: int) -> None:
    """Make a directory and its parents."""
    os.makedirs(path)
    os.chmod(path, mode)
    os.chown(path, owner, owner)
