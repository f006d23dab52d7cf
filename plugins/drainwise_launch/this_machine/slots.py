"""The resources of this machine for jobs: usable CPUs, physical memory, free scratch, and amounts of the user.

Source: SPEC §5; open-lmake's local backend.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from drainwise.facts.errors import ConfigurationError
from drainwise_launch.choice.resources import CPU, MEM, STANDARD, TMP, Resources, parse_resources

_MB = 1 << 20


def found_here(scratch: str) -> dict[str, int]:
    """Return cpu: those this process may use; mem: physical, MB; tmp: free in the directory `scratch`, MB."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    disk = os.statvfs(scratch)
    return {CPU: len(os.sched_getaffinity(0)), MEM: memory // _MB, TMP: disk.f_bavail * disk.f_frsize // _MB}


def pool_of(settings: Mapping[str, object], scratch: str, file: str) -> dict[str, int]:
    """Return what is found here, replaced and extended by the user's amounts. Raises UsageError for another value."""
    section = "backends.local"
    given = parse_resources(settings, f"{file}: [{section}]").amounts()
    for name, value in settings.items():
        if name not in given or (name in STANDARD and given[name] < 1):
            raise ConfigurationError(file, section, name, str(value)[:60], "a whole number above 0")
    return {**found_here(scratch), **{name: given[name] for name in settings}}


def misfit(resources: Resources, pool: Mapping[str, int]) -> str:
    """Say why a pool can never run this; empty when it can."""
    for name in resources.texts():
        return f"{name} is not a resource that is counted here: there are {', '.join(pool)}"
    for name, amount in resources.amounts().items():
        if amount and name not in pool:
            return f"there is no resource {name} here: there are {', '.join(pool)}"
        if amount > pool.get(name, 0):
            return f"{name} = {amount}, and there are {pool[name]} here"
    return ""


def enough(resources: Resources, free: Mapping[str, int]) -> bool:
    """Return whether all that is counted is free."""
    if resources.cpu > free.get(CPU, 0) or resources.mem > free.get(MEM, 0) or resources.tmp > free.get(TMP, 0):
        return False
    return all(isinstance(amount, int) and amount <= free.get(name, 0) for name, amount in resources.others)


def mapped(resources: Resources, pool: Mapping[str, int]) -> Resources:
    """Return what a job meant for another batch system reserves: the same where that can be, else all there is."""
    if not misfit(resources, pool):
        return resources
    others = tuple(sorted((name, amount) for name, amount in pool.items() if name not in STANDARD))
    return Resources(pool[CPU], pool[MEM], pool[TMP], others)
