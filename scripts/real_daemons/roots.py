"""Root file systems with a batch system in them: built once per recipe, kept in a cache, only read by test sites.

The archive is the one this machine's own apt knows. Delete a tree below `CACHE_DIR` to have it built anew from what the
archive holds today.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from real_daemons import unpack
from real_daemons.errors import MissingToolError, RootUnavailableError
from real_daemons.unpack import KEYRING

CACHE_DIR = "/var/cache/drainwise/roots"
# Names the archive where apt's own sources do not (a machine that is not Debian).
MIRROR_VARIABLE = "DRAINWISE_DEBIAN_MIRROR"
UNUSED_DAYS = 14
_HASH = 12
"""Digits of the hash in a tree's name."""

# Program → Debian package.
TOOLS = {
    "mmdebstrap": "mmdebstrap",
    "unshare": "util-linux",
    "nsenter": "util-linux",
    "setpriv": "util-linux",
    "chroot": "coreutils",
    "apt-get": "apt",
}


@dataclass(frozen=True)
class Root:
    """A finished tree."""

    release: str
    path: str


@dataclass(frozen=True)
class Recipe:
    """How the tree of a release is made: trees are called `name` and the hash of what stands in the files `sources`.

    `build(root, archive)` makes the tree in the empty directory `root` and raises RootUnavailableError if it can not.
    """

    name: str
    release: str
    sources: tuple[str, ...]
    build: Callable[[str, str], None]


def require_tools() -> None:
    """Raise MissingToolError, saying what to do, unless this machine can bring up a test site."""
    if os.geteuid() != 0:
        raise MissingToolError("a test site needs root (namespaces, mounts, jobs of several users): run it as root")
    missing = sorted({package for program, package in TOOLS.items() if shutil.which(program) is None})
    if not os.path.exists(KEYRING):
        missing.append("debian-archive-keyring")
    if missing:
        raise MissingToolError(f"a test site needs programs this machine lacks: apt-get install {' '.join(missing)}")


def debian_archive() -> str:
    """Address of the main Debian archive, from $DRAINWISE_DEBIAN_MIRROR or apt's configuration."""
    if named := os.environ.get(MIRROR_VARIABLE):
        return named
    with open("/etc/os-release", encoding="utf-8") as lines:
        system = dict(line.rstrip("\n").replace('"', "").split("=", 1) for line in lines if "=" in line)
    codename = system.get("VERSION_CODENAME", "")
    form = "$(SITE) $(RELEASE) $(COMPONENT)"
    command = ["apt-get", "indextargets", "--format", form, "Created-By: Packages"]
    listing = unpack.output_of("asking apt for its archives", command)
    site = main_archive(listing, codename) if system.get("ID") == "debian" else ""
    if not site:
        raise RootUnavailableError(
            f"apt's sources name no main archive of Debian {codename or '(no codename)'}; "
            f"name one in the environment variable {MIRROR_VARIABLE}"
        )
    return site


def main_archive(listing: str, codename: str) -> str:
    """The site of the suite called just like the system, out of lines `site suite component`; "" if there is none.

    The suites of updates and of security bear a suffix; the latter come from another archive.
    """
    targets = [line.split() for line in listing.splitlines()]
    return next((target[0] for target in targets if target[1:] == [codename, "main"]), "")


def obtain(recipe: Recipe, cache_dir: str = CACHE_DIR) -> Root:
    """The tree of a recipe, built if it is not there yet.

    Raises MissingToolError if this machine lacks a tool, RootUnavailableError if the archive does not give it.
    """
    require_tools()
    path = f"{cache_dir}/{recipe.name}-{_hash_of(recipe)}"
    if not os.path.isdir(path):
        os.makedirs(cache_dir, exist_ok=True)
        with lock(f"{cache_dir}/{recipe.name}.lock"):
            if not os.path.isdir(path):
                _build(recipe, path)
                _remove_unused(cache_dir, recipe.name)
    os.utime(path)
    return Root(recipe.release, path)


def mount_point(cache_dir: str = CACHE_DIR) -> str:
    """An empty directory, on which every site mounts its own tree in a mount namespace of its own."""
    path = f"{cache_dir}/mnt"
    os.makedirs(path, exist_ok=True)
    return path


def _hash_of(recipe: Recipe) -> str:
    digest = hashlib.sha256()
    for source in (unpack.__file__, *recipe.sources):
        with open(source, "rb") as text:
            digest.update(text.read())
    return digest.hexdigest()[:_HASH]


@contextlib.contextmanager
def lock(path: str) -> Iterator[None]:
    """Hold an exclusive lock, which the kernel takes back whatever happens to the holder."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _build(recipe: Recipe, path: str) -> None:
    """Build beside `path` and rename; nothing is left of a build that breaks. Call it with the lock held."""
    parent, name = os.path.split(path)
    for leftover in _trees(parent, f".{recipe.name}"):
        shutil.rmtree(leftover)  # of a builder that was killed
    work = tempfile.mkdtemp(prefix=f".{name}.", dir=parent)
    try:
        os.chmod(work, 0o755)  # noqa: S103 - apt's and the site's users work in it; mkdtemp made it private
        recipe.build(work, debian_archive())
        os.rename(work, path)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _remove_unused(cache_dir: str, name: str) -> None:
    """Remove trees of this name whose recipe nobody has used for two weeks."""
    oldest = time.time() - UNUSED_DAYS * 86400
    for tree in _trees(cache_dir, name):
        if os.stat(tree).st_mtime < oldest:
            shutil.rmtree(tree, ignore_errors=True)


def _trees(place: str, name: str) -> list[str]:
    """The trees of a recipe, whatever its hash was: those of one whose name begins like this are not among them."""
    of_it = re.compile(rf"{re.escape(name)}-[0-9a-f]{{{_HASH}}}(\..*)?")
    return [one.path for one in os.scandir(place) if of_it.fullmatch(one.name) and one.is_dir(follow_symlinks=False)]
