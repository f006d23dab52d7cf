"""Running Grid Engine's commands: what they must know, and whether a failure is a refusal or no answer."""

from __future__ import annotations

import os

from drainwise.common.bounded_command import Answer, run_bounded
from drainwise.facts.errors import PoolUnreachable
from drainwise.sge.settings import SgeSettings

# What the commands say when sge_qmaster did not answer, or not whole, rather than refuse. Measured with 8.1.9.
_NO_ANSWER = (
    *("unable to send message to qmaster", "commlib error", "error reading answer list", "unable to contact"),
    # The file system of $SGE_ROOT is away.
    *("unable to initialize environment", "unable to read qmaster name", "directory doesn't exist"),
)
_PASSED_ON = ("SGE_QMASTER_PORT", "SGE_EXECD_PORT", "SGE_CELL", "HOME", "TZ")


class SgeCommands:
    """Grid Engine's commands, as [backends.sge] says where they are and what they need to know."""

    def __init__(self, settings: SgeSettings) -> None:
        self._bin, self._seconds = settings.bin, settings.command_seconds
        environment = {key: os.environ[key] for key in _PASSED_ON if key in os.environ}
        environment |= {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C", "SGE_ROOT": settings.root}
        if settings.cell:
            environment["SGE_CELL"] = settings.cell
        if settings.cluster:
            environment |= {"SGE_CLUSTER": settings.cluster, "SGE_CLUSTER_NAME": settings.cluster}
        self._environment = environment

    def answer(self, name: str, *arguments: str, stdin: str = "") -> Answer:
        """Run a command. Raises PoolUnreachable when it is not there, hangs, or prints without end."""
        return run_bounded([f"{self._bin}/{name}", *arguments], self._environment, self._seconds, stdin)

    def ask(self, name: str, *arguments: str) -> str:
        """Return the answer to a query. Raises PoolUnreachable when there is none."""
        answer = self.answer(name, *arguments)
        if answer.code != 0:
            raise PoolUnreachable(f"{name} failed: {answer.complaint}")
        return answer.text

    def order(self, name: str, *arguments: str, stdin: str = "") -> Answer:
        """Give an order; how it ended, well or refused. Raises PoolUnreachable for no answer."""
        answer = self.answer(name, *arguments, stdin=stdin)
        if answer.code < 0 or any(sign in answer.whole.lower() for sign in _NO_ANSWER):
            raise PoolUnreachable(f"{name} failed: {answer.complaint}")
        return answer
