"""From a job to what a backend receives of it: tag, environment, output file."""

from __future__ import annotations

import errno
import os
import re
import secrets
from collections.abc import Mapping
from hashlib import blake2b

from drainwise.facts.errors import PoolUnreachable
from drainwise_launch.backend import Start
from drainwise_launch.choice.resources import STANDARD, Resources
from drainwise_launch.choice.work import LaunchJob

NAME_VARIABLE = "DRAINWISE_LAUNCH_JOB"
AMOUNT_PREFIX = "DRAINWISE_"
OTHER_PREFIX = "DRAINWISE_RESOURCE_"

_UNSAFE = re.compile(r"[^A-Za-z0-9._+-]")
_EMPTIED = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_PASSING = {errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EINTR}
_LONGEST_FILE = 100
_DIGITS = 6  # bytes of a digest in a tag


def tag_of(state: str, digest: bytes) -> str:
    """Return a new tag: the state, the job's contents then, and this one start."""
    return f"{state}-{digest[:_DIGITS].hex()}-{secrets.token_hex(4)}"


def is_of(tag: str, digest: bytes) -> bool:
    """Tell whether the tag is of a start of the job as it is now."""
    return tag.split("-")[-2:-1] == [digest[:_DIGITS].hex()]


def amounts_environment(resources: Resources) -> dict[str, str]:
    """Return the resources of a job as variables."""
    variables = {f"{AMOUNT_PREFIX}{name.upper()}": str(resources.get(name)) for name in STANDARD}
    for name, amount in resources.others:
        variables[OTHER_PREFIX + re.sub(r"[^A-Z0-9_]", "_", name.upper())] = str(amount)
    return variables


def file_name(name: str) -> str:
    """Return a file's name for a job's name; two jobs never share one."""
    safe = _UNSAFE.sub("_", name)[:_LONGEST_FILE]
    if safe == name and not name.startswith("."):
        return name
    mark = blake2b(name.encode("utf-8", "surrogateescape"), digest_size=5).hexdigest()
    return f"{safe.lstrip('.')}~{mark}"


class Starts:
    """Makes them. base: the environment all share; output: the directory of their output files."""

    def __init__(self, base: Mapping[str, str], output: str) -> None:
        self._base, self._output = base, output
        self._amounts: dict[Resources, dict[str, str]] = {}

    def output_of(self, job: LaunchJob) -> str:
        """Return the file that the job's output goes to."""
        return f"{self._output}/{file_name(job.name)}.out"

    def start_of(self, job: LaunchJob, tag: str, priority: float) -> Start:
        """Return the start of a job for its backend; its output file is emptied.

        Raises OSError when it cannot be, PoolUnreachable when that may pass.
        """
        work, stdout = job.work, self.output_of(job)
        try:
            os.close(os.open(stdout, _EMPTIED, 0o666))
        except OSError as fault:
            if fault.errno in _PASSING:
                raise PoolUnreachable(f"{stdout}: {fault.strerror}") from None
            raise
        amounts = self._amounts.get(work.resources)
        if amounts is None:
            amounts = self._amounts[work.resources] = amounts_environment(work.resources)
        return Start(
            name=work.name,
            tag=tag,
            argv=work.argv,
            cwd=work.cwd,
            resources=job.reserved,
            stdout=stdout,
            environment={**self._base, **amounts, **dict(work.environment), NAME_VARIABLE: work.name},
            priority=priority,
            wall_limit=work.wall_limit,
        )
