"""The recipe of a root file system with HTCondor in it. Trees are named after the text of this file and of the common
part: change it, and they are built anew.
"""

from __future__ import annotations

import os

from real_daemons.unpack import EXPIRED, add_user, unpack

# Release → further options of mmdebstrap.
RELEASES: dict[str, tuple[str, ...]] = {
    "trixie": (),
    "sid": EXPIRED,
}
CONDOR_HOME = "/var/lib/condor"


def build_root(release: str, root: str, archive: str) -> None:
    """Make the tree of a release in the empty directory `root`, from the Debian archive at an address.

    Raises RootUnavailableError with the last words of the program that failed.
    """
    unpack(release, ["condor"], root, archive, RELEASES[release])
    add_user(root, "condor", range(100, 1000), home=CONDOR_HOME, login="/usr/sbin/nologin")
    for directory in ("passwords.d", "tokens.d"):
        os.makedirs(f"{root}/etc/condor/{directory}", mode=0o700, exist_ok=True)
    os.makedirs(root + CONDOR_HOME, exist_ok=True)
