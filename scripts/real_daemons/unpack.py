"""A root file system out of a Debian release: packages are only unpacked, then the basics are done by hand.

Running the packages' own scripts would need a running system and a minute, so the few things that daemons and batch
jobs miss afterwards are made here. Trees are named after the text of this file, too: change it, and they are built
anew.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterable, Sequence

from real_daemons.errors import RootUnavailableError

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
# What a batch job, a hook and the harness itself need beside the batch system.
BASICS = (
    *("bash", "dash", "coreutils", "sed", "grep", "util-linux", "base-passwd", "base-files", "passwd", "mawk"),
    *("libc-bin", "mount", "hostname", "findutils", "debianutils", "python3", "procps"),
)

EXPIRED = ("--aptopt=Acquire::Check-Valid-Until false", "--aptopt=Acquire::Check-Date false")
"""Options of mmdebstrap: a mirror may hold the Release file of a suite past its date."""

_NSSWITCH = "passwd: files\ngroup: files\nshadow: files\nhosts: files\nservices: files\nprotocols: files\n"
# Without this every hook would compile the library again: it runs as a user who cannot write the result beside it.
_COMPILE = """
import compileall, re, sys, sysconfig
library = sysconfig.get_path("stdlib")
sys.exit(not compileall.compile_dir(library, quiet=1, rx=re.compile(r"/(test|idlelib|tkinter|lib2to3|ensurepip)/")))
"""


def unpack(release: str, packages: Sequence[str], root: str, archive: str, options: Sequence[str] = ()) -> None:
    """Unpack `packages` and the basics of a release into the empty directory `root`, and make a usable system of it.

    Parameters: `archive`, address of a Debian archive; `options`, further ones of mmdebstrap.
    Raises RootUnavailableError with the last words of the program that failed.
    """
    fetch(release, [*packages, *BASICS], root, archive, ("--variant=extract", *options))
    _make_usable(root)


def fetch(release: str, packages: Sequence[str], root: str, archive: str, options: Sequence[str] = ()) -> None:
    """Make the tree of a release with `packages` in the empty directory `root` by mmdebstrap; see `unpack`."""
    # Its mounts and processes live in namespaces that end with it, and it ends with us.
    isolated = ["setpriv", "--pdeathsig=KILL", "unshare", "--mount", "--pid", "--fork", "--kill-child=SIGKILL"]
    fixed = ["--mode=root", "--format=directory", f"--include={','.join(packages)}", f"--keyring={KEYRING}"]
    output_of(f"unpacking {release} by mmdebstrap", [*isolated, "mmdebstrap", *fixed, *options, release, root, archive])


def _make_usable(root: str) -> None:
    for name in ("passwd", "group"):
        shutil.copyfile(f"{root}/usr/share/base-passwd/{name}.master", f"{root}/etc/{name}")
    with open(f"{root}/etc/nsswitch.conf", "w", encoding="utf-8") as file:
        file.write(_NSSWITCH)
    for unwanted in ("resolv.conf", "hostname", "fstab"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{root}/etc/{unwanted}")
    if not os.path.lexists(f"{root}/usr/bin/awk"):
        os.symlink("mawk", f"{root}/usr/bin/awk")
    for directory in ("/srv", "/home"):
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


def output_of(what: str, command: Sequence[str]) -> str:
    """Standard output of a command; raises RootUnavailableError, with `what` failed and its last words, if it fails."""
    # HTCondor's bindings set CONDOR_CONFIG where there is no configuration: its package would lay out the tree by it.
    clean = {name: value for name, value in os.environ.items() if "CONDOR" not in name}
    result = subprocess.run(command, capture_output=True, text=True, check=False, env=clean)
    if result.returncode != 0:
        tail = "\n".join((result.stderr or result.stdout).splitlines()[-15:])
        raise RootUnavailableError(f"{what} failed with code {result.returncode}:\n{tail}")
    return result.stdout
