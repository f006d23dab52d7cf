"""Running Grid Engine's commands: what they must know, and whether a failure is a refusal or no answer."""

from __future__ import annotations

import os

from drainwise.errors import ActionRefused, PoolUnreachable
from drainwise.launch.bounded_command import Answer, run_bounded
from drainwise.sge.settings import SgeSettings

# What the commands say when sge_qmaster did not answer, or not whole, rather than refuse. Measured with 8.1.9.
_NO_ANSWER = ("unable to send message to qmaster", "commlib error", "error reading answer list", "unable to contact")
# A limit on the number of jobs that is reached passes.
_PASSES = ("jobs are allowed per", "try again later")
_PASSED_ON = ("SGE_QMASTER_PORT", "SGE_EXECD_PORT", "SGE_CELL", "HOME")  # HOME: of ~/.sge_request


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
        """A question's answer. Raises PoolUnreachable when there is none."""
        answer = self.answer(name, *arguments)
        if answer.code != 0:
            raise PoolUnreachable(f"{name} failed: {answer.complaint}")
        return answer.out

    def order(self, name: str, *arguments: str, stdin: str = "") -> str:
        """Give an order; what was printed. Raises ActionRefused when it is refused, PoolUnreachable for no answer."""
        answer = self.answer(name, *arguments, stdin=stdin)
        if answer.code == 0:
            return answer.out
        if answer.code < 0 or is_no_answer(answer):
            raise PoolUnreachable(f"{name} failed: {answer.complaint}")
        raise ActionRefused(f"{name} refused: {answer.complaint}")


def is_no_answer(answer: Answer) -> bool:
    """Whether a failed command says that sge_qmaster did not answer or cannot now, rather than that it refused."""
    said = answer.said.lower()
    return any(sign in said for sign in (*_NO_ANSWER, *_PASSES))
