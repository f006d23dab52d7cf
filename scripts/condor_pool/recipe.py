"""The recipe of a root file system: what is unpacked from a Debian release and what is then done by hand.

Packages are only unpacked (their scripts would need a running system and a minute), so the few things that HTCondor and
a batch job miss afterwards are made here. A tree is called after the text of this file: change it, and trees are built
anew.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterable

from condor_pool.errors import RootUnavailableError

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
PACKAGES = (
    "condor,bash,dash,coreutils,sed,grep,util-linux,base-passwd,base-files,passwd,mawk,libc-bin,mount,hostname,"
    "findutils,debianutils,python3,procps"
)
# Release → further options of mmdebstrap. A mirror may hold sid's Release file past its date.
RELEASES: dict[str, tuple[str, ...]] = {
    "trixie": (),
    "sid": ("--aptopt=Acquire::Check-Valid-Until false", "--aptopt=Acquire::Check-Date false"),
}
CONDOR_HOME = "/var/lib/condor"

_NSSWITCH = "passwd: files\ngroup: files\nshadow: files\nhosts: files\nservices: files\nprotocols: files\n"
# Without this every hook would compile the library again: it runs as a user who cannot write the result beside it.
_COMPILE = """
import compileall, re, sys, sysconfig
library = sysconfig.get_path("stdlib")
sys.exit(not compileall.compile_dir(library, quiet=1, rx=re.compile(r"/(test|idlelib|tkinter|lib2to3|ensurepip)/")))
"""


def build_root(release: str, root: str, archive: str) -> None:
    """Make the tree of a release in the empty directory `root`, from the Debian archive at an address.

    Raises RootUnavailableError with the last words of the program that failed.
    """
    # Its mounts and processes live in namespaces that end with it, and it ends with us.
    isolated = ["setpriv", "--pdeathsig=KILL", "unshare", "--mount", "--pid", "--fork", "--kill-child=SIGKILL"]
    options = ["--mode=root", "--format=directory", "--variant=extract", f"--include={PACKAGES}"]
    arguments = [*options, f"--keyring={KEYRING}", *RELEASES[release], release, root, archive]
    output_of(f"unpacking {release} by mmdebstrap", [*isolated, "mmdebstrap", *arguments])
    _configure(root)


def _configure(root: str) -> None:
    for name in ("passwd", "group"):
        shutil.copyfile(f"{root}/usr/share/base-passwd/{name}.master", f"{root}/etc/{name}")
    add_user(root, "condor", range(100, 1000), home=CONDOR_HOME, login="/usr/sbin/nologin")
    with open(f"{root}/etc/nsswitch.conf", "w", encoding="utf-8") as file:
        file.write(_NSSWITCH)
    for unwanted in ("resolv.conf", "hostname", "fstab"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{root}/etc/{unwanted}")
    if not os.path.lexists(f"{root}/usr/bin/awk"):
        os.symlink("mawk", f"{root}/usr/bin/awk")
    for directory in ("passwords.d", "tokens.d"):
        os.makedirs(f"{root}/etc/condor/{directory}", mode=0o700, exist_ok=True)
    for directory in (CONDOR_HOME, "/srv", "/home"):
        os.makedirs(root + directory, exist_ok=True)
    output_of("ldconfig", ["chroot", root, "/sbin/ldconfig"])
    clean = ["chroot", root, "/usr/bin/env", "-i"]
    output_of("compiling Python's library", [*clean, "/usr/bin/python3", "-I", "-c", _COMPILE])


def add_user(root: str, name: str, ids: Iterable[int], home: str, login: str) -> int:
    """Add a user and its group under the first number of `ids` that is free in `root`; return the number."""
    used: set[int] = set()
    for file in ("passwd", "group"):
        with open(f"{root}/etc/{file}", encoding="utf-8") as lines:
            used.update(int(line.split(":")[2]) for line in lines if line.count(":") >= 3)
    number = next(number for number in ids if number not in used)
    for file, line in (("passwd", f"{name}:*:{number}:{number}::{home}:{login}\n"), ("group", f"{name}:*:{number}:\n")):
        with open(f"{root}/etc/{file}", "a", encoding="utf-8") as lines:
            lines.write(line)
    return number


def output_of(what: str, command: list[str]) -> str:
    """Standard output of a command; raises RootUnavailableError, with `what` failed and its last words, if it fails."""
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        tail = "\n".join((result.stderr or result.stdout).splitlines()[-15:])
        raise RootUnavailableError(f"{what} failed with code {result.returncode}:\n{tail}")
    return result.stdout
