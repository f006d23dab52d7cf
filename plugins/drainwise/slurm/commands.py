"""Running Slurm's commands: by absolute path, with an environment of our own, never longer than they may take.

`scontrol` against a dead slurmctld tries for 9 s before it says so, and a hanging name service can hold any of them for
minutes: each runs in a session of its own, which is ended as a whole when its time is over.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from dataclasses import dataclass

from drainwise.errors import ActionRefused, OrderUnanswered, PoolUnreachable, RightsRefused

_LONGEST_WORD = 200
# Times as UNIX s, lists of array tasks in full, messages as they are in the source.
_ENVIRONMENT = {
    "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
    "LC_ALL": "C",
    "SLURM_TIME_FORMAT": "%s",
    "SLURM_BITSTR_LEN": "0",
    # scontrol reads its standard input as if somebody typed: with nobody's key bindings.
    "INPUTRC": "/dev/null",
    "TERM": "dumb",
}
_PASSED_ON = ("SLURM_CONF",)  # where the site keeps slurm.conf, if not in the usual place
# What the commands say when slurmctld or slurmdbd did not answer, rather than refuse.
_NO_ANSWER = ("unable to contact", "unexpected message received", "connection refused", "timed out", "communication")
# What slurmctld says to one who may not give this order: the first for `scontrol update`, the second for the others.
_NO_RIGHTS = ("invalid user id", "permission denied")


@dataclass(frozen=True)
class Answer:
    """How a command ended and what it printed."""

    code: int
    out: bytes
    said: str

    def is_none(self) -> bool:
        """Whether it says that a daemon did not answer, rather than that it refused."""
        return any(sign in self.said.lower() for sign in _NO_ANSWER)


class Running:
    """A command that has been started; `end` is a time of the monotonic clock."""

    def __init__(self, name: str, process: subprocess.Popen[bytes], seconds: float, stdin: bytes) -> None:
        self._name, self._process, self._seconds, self._stdin = name, process, seconds, stdin
        self._end = time.monotonic() + seconds

    def answer(self) -> Answer:
        """What came of it. Raises PoolUnreachable when its time is over."""
        try:
            out, said = self._process.communicate(self._stdin, max(0.0, self._end - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.end()
            raise PoolUnreachable(f"{self._name} did not answer within {self._seconds:g} s") from None
        return Answer(self._process.returncode, out, _words(said))

    def output(self) -> bytes:
        """What it printed. Raises PoolUnreachable when it failed or its time is over."""
        answer = self.answer()
        if answer.code != 0:
            raise PoolUnreachable(f"{self._name} failed: {answer.said or f'code {answer.code}'}")
        return answer.out

    def end(self) -> None:
        """Have it and its children gone, whatever they do."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.communicate()


class SlurmCommands:
    """Slurm's commands in `bin_dir` (absolute); `seconds`: how long one may take, unless the call says otherwise."""

    def __init__(self, bin_dir: str = "/usr/bin", seconds: float = 5.0) -> None:
        self._bin_dir, self._seconds = bin_dir, seconds

    def start(self, name: str, *arguments: str, seconds: float | None = None, stdin: str = "") -> Running:
        """Start a command. Raises PoolUnreachable when it is not there."""
        environment = {**_ENVIRONMENT, **{key: os.environ[key] for key in _PASSED_ON if key in os.environ}}
        try:
            process = subprocess.Popen(
                [f"{self._bin_dir}/{name}", *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=environment,
                cwd="/",
                start_new_session=True,
            )
        except OSError as fault:
            what = f"{self._bin_dir}/{name} cannot be run: {fault.strerror}; see [slurm] bin_dir"
            raise PoolUnreachable(what) from None
        return Running(name, process, self._seconds if seconds is None else seconds, stdin.encode("ascii"))

    def ask(self, name: str, *arguments: str) -> str:
        """A question's answer. Raises PoolUnreachable when there is none."""
        return self.start(name, *arguments).output().decode("utf-8", "replace")

    def order(self, name: str, *arguments: str, stdin: str = "") -> None:
        """Give an order.

        Raises ActionRefused when Slurm refuses it, RightsRefused when it refuses whoever gives it, OrderUnanswered when
        it does not answer (what a socket of slurmctld holds may still be carried out), PoolUnreachable when the command
        cannot be run.
        """
        running = self.start(name, *arguments, stdin=stdin)
        try:
            answer = running.answer()
        except PoolUnreachable as fault:
            raise OrderUnanswered(str(fault)) from None
        if answer.code == 0:
            return
        if answer.is_none():
            raise OrderUnanswered(f"{name} failed: {answer.said}")
        said = f"{name} refused: {answer.said or f'code {answer.code}'}"
        if any(sign in answer.said.lower() for sign in _NO_RIGHTS):
            raise RightsRefused(f"{said}: orders need root or SlurmUser; run the agent as one of them")
        raise ActionRefused(said)


def _words(said: bytes) -> str:
    """What a command complained of, in one line of printable characters."""
    text = " ".join(said.decode("utf-8", "replace").split())
    return "".join(letter for letter in text if letter.isprintable())[:_LONGEST_WORD]
