"""Whole machines for tests: a Debian release with systemd as process 1, and the units of Debian's own packages.

    with WholeMachines(release="trixie", packages=("condor",)) as site:
        site.systemctl("enable", "--now", "condor")

A machine boots in about two seconds. It is `systemd` that cannot tell it from a machine of its own: mounts, processes,
host name, network and control groups are its own, devices, clock and kernel settings stay the host's and cannot be
changed. There are no controllers for its control groups where the host uses those of version 1. What it has in common
with other sites stands in `real_daemons`.
"""

from real_daemons.errors import CommandError, DaemonsError, DeadlineError, MissingToolError, RootUnavailableError
from whole_machine.machines import WholeMachines
from whole_machine.recipe import RELEASES

__all__ = [
    "RELEASES",
    "CommandError",
    "DaemonsError",
    "DeadlineError",
    "MissingToolError",
    "RootUnavailableError",
    "WholeMachines",
]
