"""Running Slurm's commands: by absolute path, with an environment of our own, bounded in time and in what they print.

`scontrol` against a dead slurmctld tries for 9 s before it says so, and a hanging name service can hold any of them for
minutes.
"""

from __future__ import annotations

import os
import re

from drainwise.common.bounded_command import MOST_OUTPUT, Answer, Running
from drainwise.facts.errors import ActionRefused, OrderUnanswered, PoolUnreachable, RightsRefused

# Messages as they are in the source; scontrol reads its input as if somebody typed: with nobody's key bindings.
PLAIN = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C", "INPUTRC": "/dev/null", "TERM": "dumb"}
"""The environment of all commands."""
# Times as UNIX s, lists of array tasks in full.
_ENVIRONMENT = {**PLAIN, "SLURM_TIME_FORMAT": "%s", "SLURM_BITSTR_LEN": "0"}
_PASSED_ON = ("SLURM_CONF",)  # where the site keeps slurm.conf, if not in the usual place
NO_ANSWER = ("unable to contact", "unexpected message received", "connection refused", "timed out", "communication")
"""What the commands say when slurmctld or slurmdbd did not answer, rather than refuse."""
SHOW_CONFIG = ("scontrol", "show", "config")
UNSET_VALUES = frozenset({"", "(null)", "N/A", "none", "NONE"})

_SETTING = re.compile(r"^([A-Za-z0-9_]+)(\[\d+\])?[ \t]*=[ \t]*(.*?)[ \t]*$", re.MULTILINE)
# What slurmctld says to one who may not give this order: the first for `scontrol update`, the second for the others.
_NO_RIGHTS = ("invalid user id", "permission denied")


def is_no_answer(answer: Answer) -> bool:
    """Tell whether a command that failed says that a daemon did not answer, rather than that it refused."""
    return any(sign in answer.said.lower() for sign in NO_ANSWER)


class SlurmCommands:
    """Slurm's commands in `bin_dir` (absolute); `seconds`: how long one may take, unless the call says otherwise."""

    def __init__(self, bin_dir: str = "/usr/bin", seconds: float = 5.0) -> None:
        self._bin_dir, self._seconds = bin_dir, seconds

    def start(
        self, name: str, *arguments: str, seconds: float | None = None, stdin: str = "", most: int = MOST_OUTPUT
    ) -> Running:
        """Start a command; `most`: bytes that it may print. Raises PoolUnreachable when it is not there."""
        environment = {**_ENVIRONMENT, **{key: os.environ[key] for key in _PASSED_ON if key in os.environ}}
        limit = self._seconds if seconds is None else seconds
        try:
            return Running([f"{self._bin_dir}/{name}", *arguments], environment, limit, stdin, most)
        except PoolUnreachable as fault:
            raise PoolUnreachable(f"{fault}; see [slurm] bin_dir") from None

    def ask(self, name: str, *arguments: str) -> str:
        """Return a question's answer. Raises PoolUnreachable when there is none."""
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
        if is_no_answer(answer):
            raise OrderUnanswered(f"{name} failed: {answer.said}")
        said = f"{name} refused: {answer.complaint}"
        if any(sign in answer.said.lower() for sign in _NO_RIGHTS):
            raise RightsRefused(f"{said}: orders need root or SlurmUser; run the agent as one of them")
        raise ActionRefused(said)


def live_values(config: str) -> dict[str, tuple[str, ...]]:
    """Return the values of each key that is set, by the key in lower case; some keys stand there several times."""
    found: dict[str, tuple[str, ...]] = {}
    for key, _, value in _SETTING.findall(config):
        if value not in UNSET_VALUES:
            found[key.lower()] = (*found.get(key.lower(), ()), value)
    return found


def settings_in(config: str) -> dict[str, str]:
    """Return the value of each key that is set, by the key in lower case; several with blanks between."""
    return {key: " ".join(values) for key, values in live_values(config).items()}
