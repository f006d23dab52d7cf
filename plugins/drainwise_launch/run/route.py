"""Route each job to its backend: the one it names or, where that cannot be used or is not wanted, the local one.

Source: SPEC §5; open-lmake's "backend conversion to local".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from drainwise.facts.errors import PoolUnreachable, UsageError
from drainwise_launch.backend import Backend
from drainwise_launch.choice.resources import Resources
from drainwise_launch.choice.work import Work
from drainwise_launch.files.job_reader import LOCAL
from drainwise_launch.this_machine.slots import mapped

Opener = Callable[[], Backend]


class Routes:
    """`openers`: how each backend is opened, by name; done when the first job needs it.

    `backends` are those that were. One warning is said for each that cannot be configured.
    only_here: every job goes to the local backend, whichever it names, and is mapped as for one that cannot be used.
    """

    def __init__(self, openers: Mapping[str, Opener], say: Callable[[str], None], only_here: bool = False) -> None:
        self._openers, self._say, self._only_here = openers, say, only_here
        self.backends: dict[str, Backend] = {}
        self._replaced: set[str] = set()
        self._pool: dict[str, int] = {}
        self._known: dict[tuple[str, Resources], tuple[str, Resources | None]] = {}

    def place(self, work: Work) -> Work:
        """Return the job with its backend. Raises UsageError when it can never run there."""
        key = (work.backend, work.resources)
        found = self._known.get(key)
        if found is None:
            try:
                found = self._known[key] = self._found(*key)
            except UsageError as fault:
                raise UsageError(f"job {work.name[:100]!a}: {fault}") from None
        backend, reserved = found
        return (
            work if (backend, reserved) == (work.backend, None) else work._replace(backend=backend, reserved=reserved)
        )

    def _found(self, name: str, resources: Resources) -> tuple[str, Resources | None]:
        backend = None if self._only_here else self.opened(name)
        if backend is not None:
            why = backend.fits(resources)
            if why:
                raise UsageError(f"it can never run in {name}: {why}")
            return name, None
        if self.opened(LOCAL) is None:
            raise UsageError(
                f"neither {name} nor the local backend can be used" if name != LOCAL else f"{LOCAL} cannot be used"
            )
        return LOCAL, mapped(resources, self._pool)

    def opened(self, name: str) -> Backend | None:
        """Return the backend, opened if need be; None when it cannot be used here. Raises UsageError if unknown."""
        if name in self.backends:
            return self.backends[name]
        if name in self._replaced:
            return None
        if name not in self._openers:
            raise UsageError(f"backend = {name[:60]!a}: expected one of {', '.join(self._openers)}")
        try:
            self.backends[name] = self._openers[name]()
        except PoolUnreachable as fault:
            self._replaced.add(name)
            self._say(f"{name} cannot be used here: {fault}; its jobs run on this machine")
            return None
        if name == LOCAL:  # nothing has started there yet: what is free is all there is
            self._pool = dict(self.backends[name].free() or {})
        return self.backends[name]

    def close(self) -> None:
        """Let go of all backends, each once."""
        while self.backends:
            self.backends.popitem()[1].close()
