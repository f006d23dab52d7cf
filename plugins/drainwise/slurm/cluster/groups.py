"""The operating system's groups of who waits for a partition that allows some groups alone."""

from __future__ import annotations

import grp
import os
import pwd
from collections.abc import Iterable, Mapping

from drainwise.slurm.cluster.partitions import Partition
from drainwise.slurm.jobs.job import SlurmJob


def groups_of(waiting: Iterable[SlurmJob], partitions: Mapping[str, Partition]) -> dict[str, frozenset[str]]:
    """Return the groups of each user who waits for such a partition; one whom this machine does not know is absent."""
    restricted = {name for name, one in partitions.items() if one.groups}
    users = {job.user for job in waiting if restricted.intersection(job.partitions)} if restricted else set()
    found = {}
    for user in users:
        try:
            numbers = os.getgrouplist(user, pwd.getpwnam(user).pw_gid)
            found[user] = frozenset(grp.getgrgid(number).gr_name for number in numbers)
        except KeyError:
            continue
    return found
