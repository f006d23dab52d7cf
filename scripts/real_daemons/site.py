"""`Site`: real daemons in namespaces of their own, as their administrator, their users and the tests reach them."""

from __future__ import annotations

import glob
import os
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import TypeVar

from real_daemons import furnish, waiting
from real_daemons.compiled import compile_once
from real_daemons.errors import CommandError, DaemonsError
from real_daemons.namespaces import Enclosure
from real_daemons.roots import CACHE_DIR, Recipe, mount_point, obtain

T = TypeVar("T")
S = TypeVar("S", bound="Site")

CENTRAL = "central"
USERS = ("alice", "bob")

_running: list[Site] = []


def running_sites() -> tuple[Site, ...]:
    """The sites this program runs now."""
    return tuple(_running)


class Site(ABC):
    """One machine called `central` and others around it, used as `with …Site(…) as site:`.

    A batch system says how its tree is made (`recipe`), how its daemons come up and where their logs are. The plain
    users alice and bob are there before anything comes up.
    """

    def __init__(self, recipe: Recipe) -> None:
        self.release = recipe.release
        self._recipe = recipe
        self._tree = ""  # what it is a copy of
        self._enclosure: Enclosure | None = None

    @abstractmethod
    def log_tails(self) -> str:
        """The last lines of every daemon's log."""

    @abstractmethod
    def _bring_up(self, enclosure: Enclosure) -> None:
        """Make the machines, start the daemons and wait until the batch system is complete."""

    def _variables(self, node: str) -> Mapping[str, str]:  # noqa: ARG002 - for batch systems that tell by it
        """What programs on a machine have in their environment beside the basics; raises DaemonsError if it is none."""
        return {}

    # ---- life ----

    def __enter__(self: S) -> S:
        self._tree = obtain(self._recipe).path
        try:
            self._enclosure = Enclosure(self._tree, mount_point())
            _running.append(self)
            furnish.add_people(self.root, USERS)
            self._bring_up(self._enclosure)
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def _end(self) -> None:
        if self in _running:
            _running.remove(self)
        if self._enclosure is not None:
            enclosure, self._enclosure = self._enclosure, None
            enclosure.end()

    @property
    def _inside(self) -> Enclosure:
        if self._enclosure is None:
            name = type(self).__name__
            raise DaemonsError(f"the {name} is not running: use it as `with {name}(…) as site:`")
        return self._enclosure

    # ---- places and people ----

    @property
    def pid(self) -> int:
        """The host's number of the site's PID 1, whose end is the end of everything in the site."""
        return self._inside.pid

    @property
    def root(self) -> str:
        """Path of the site's root file system as this machine's root sees it (to read logs, to place files).

        An absolute symbolic link on the way leads out of the site; what the site itself makes has none.
        """
        return self._inside.root

    def uid(self, user: str) -> int:
        """Number of a user of the site."""
        return furnish.person(self.root, user)[0]

    def copy_in(self, source: str, target: str, owner: str = "root") -> None:
        """Copy a file or folder of the host to the absolute path `target` of the site, with its modes.

        Packages of Python are compiled there, as by pip: hooks run as users who cannot keep what they compile.
        """
        furnish.copy_tree(self.root, source, target, self.uid(owner))
        if any(os.path.exists(f"{place}/__init__.py") for place in (source, *glob.glob(f"{source}/*"))):
            command = ["python3", "-m", "compileall", "-q", target]
            compile_once(
                self.root + target,
                f"{CACHE_DIR}/compiled",
                f"{self._tree} {target}",
                lambda: self.run(command, check=False),  # a test may have spoilt it
            )

    # ---- commands ----

    def run(
        self,
        argv: Sequence[str],
        user: str = "root",
        node: str = CENTRAL,
        stdin: str = "",
        check: bool = True,
        timeout: float = 60.0,
        environment: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run a program of the site on a machine, as a user, in the user's home, with a clean environment.

        Raises CommandError if `check` and it ends with a code other than 0 (124: not done within `timeout` seconds).
        """
        variables = {**self._variables(node), **(environment or {})}
        home = furnish.person(self.root, user)[1]
        command = self._inside.command(argv, node, user, home, variables, timeout)
        return finish(command, argv, stdin, check, timeout + 10.0, None)

    def outside_command(self, argv: Sequence[str]) -> list[str]:
        """The command line that runs a program of the host in the site's network."""
        return self._inside.network_command(argv)

    def wait_for(self, condition: Callable[[], T], seconds: float, what: str) -> T:
        """Call `condition` until it gives something true and return that; `seconds`: how long that may take when idle.

        Raises DeadlineError after `waiting.STALLS` times as long, with the last value and the ends of the logs.
        """
        return waiting.wait_for(condition, seconds, what, self.log_tails)

    def wait_for_end_of(self, number: int, seconds: float, what: str) -> None:
        """Wait until the process with this number (the site's own) is gone."""
        self.wait_for(lambda: not os.path.exists(f"{self.root}/proc/{number}"), seconds, f"the end of {what}")


def finish(
    command: Sequence[str],
    argv: Sequence[str],
    stdin: str,
    check: bool,
    timeout: float,
    environment: Mapping[str, str] | None,
) -> subprocess.CompletedProcess[str]:
    """Run `command`, of which the reader knows `argv`.

    Raises CommandError if it is not done within `timeout` seconds, or if `check` and its code is not 0.
    """
    try:
        result = subprocess.run(
            command, input=stdin, capture_output=True, text=True, check=False, timeout=timeout, env=environment
        )
    except subprocess.TimeoutExpired as error:
        raise CommandError(f"{' '.join(argv)} was not done within {timeout:g} s") from error
    if check and result.returncode != 0:
        said = f"{result.stdout}{result.stderr}".rstrip()
        raise CommandError(f"{' '.join(argv)} ended with code {result.returncode}\n{said}")
    return result
