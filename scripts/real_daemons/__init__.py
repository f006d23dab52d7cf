"""Real daemons for tests and demonstrations: a Debian release's own batch system in namespaces of its own.

What HTCondor and Slurm have in common here: trees of a release, unpacked once and cached; a private copy of one with
its own network, mounts, host names and processes; users, machines, commands, waiting. Needs root, Linux and mmdebstrap;
reaches out only to build a tree. While a site runs, the host sees a few processes and nothing else: every mount is
private to it, everything it writes lives in a tmpfs of its own, and the death of one process (or of the program that
started it) ends and removes it all.
"""

from real_daemons.errors import CommandError, DaemonsError, DeadlineError, MissingToolError, RootUnavailableError
from real_daemons.roots import Recipe, Root, mount_point, obtain, require_tools
from real_daemons.site import CENTRAL, USERS, Site, running_sites

__all__ = [
    "CENTRAL",
    "USERS",
    "CommandError",
    "DaemonsError",
    "DeadlineError",
    "MissingToolError",
    "Recipe",
    "Root",
    "RootUnavailableError",
    "Site",
    "mount_point",
    "obtain",
    "require_tools",
    "running_sites",
]
