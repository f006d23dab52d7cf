"""One batch system as the commands know it: an object that opens its pool, renders, checks and launches.

A system overrides what it offers; what it leaves out, no command offers for it. Nothing here imports a batch system:
a method imports what it needs when it is called.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from drainwise.agent.health import ServiceManager
    from drainwise.doctor.facts import BatchFacts
    from drainwise.install.rendered_tree import RenderedFile
    from drainwise.pilotad.report import PilotReport
    from drainwise.pool.facts import Pool
    from drainwise.pool.finding import Finding
    from drainwise.siteconfig import SiteConfig
    from drainwise_launch.backend import Backend, LaunchPlace

    AgentFindings = Callable[[bool, "ServiceManager | None", str], Iterable[Finding]]
    """Inspect the agent, given whether one belongs on this machine, what keeps it running, and the machine's name."""


class Timings(NamedTuple):
    """The delays of a batch system, in seconds.

    vacate: how long before a deadline it begins to end a pilot. order_latency: until a pilot knows of an order.
    """

    vacate: int = 0
    order_latency: int = 0


class System:
    """A batch system. A subclass gives it a `name` and overrides the methods of what it offers."""

    name = ""
    """Its name for users: small letters, digits, - and _. It is also the name of its section of the site file."""

    site_keys: type[Any] | None = None
    """The keys of that section: a frozen dataclass of `siteconfig.kinds.key` fields. None: any key, as text."""

    takes_directory = False
    """True where --directory names the directory of its state."""

    extra = ""
    """The extra of drainwise that installs what it needs, and `packages` those that no other extra has."""
    packages: tuple[str, ...] = ()

    roles: tuple[str, ...] = ()
    """The roles of machines for which `render` knows the files."""

    scope_keys: tuple[str, ...] = ("user", "account")
    """What it tells of running jobs for the conditions of [reclaim] preemptible and exempt, and of [scope NAME]."""

    about_check = ""
    """A few words for the help of `drainwise check`."""

    def offers(self, method: Callable[..., object]) -> bool:
        """Return whether it overrides that method of `System`: `system.offers(System.open_pool)`."""
        return getattr(type(self), method.__name__) is not method

    def settings(self, site: SiteConfig) -> Any:
        """Return the values of its section: `site_keys` filled, or a dictionary of text."""
        default = {} if self.site_keys is None else self.site_keys()
        return site.others.get(self.name, default)

    def missing(self, site: SiteConfig) -> str:
        """Return why it cannot be used on this machine; "" when `--pool auto` may take it."""
        raise NotImplementedError

    def open_pool(self, site: SiteConfig, directory: str | None) -> Pool:
        """Open the pool. No batch system is asked yet. directory: of the command line, None where it has none."""
        raise NotImplementedError

    def describe(self, directory: str | None) -> str:  # noqa: ARG002
        """Return how a message calls the pool."""
        return self.name

    def require(self, pool: Pool) -> None:
        """Raise UsageError where the software of this machine cannot serve an agent; called once as it starts."""

    def ask_ahead(self, pool: Pool) -> None:
        """Begin to ask for a snapshot that is taken in a moment, where that saves time."""

    def timings(self, site: SiteConfig) -> Timings:  # noqa: ARG002
        """Return its delays."""
        return Timings()

    def agent_label(self, site: SiteConfig, directory: str | None) -> str:  # noqa: ARG002
        """Return a name of the pool that no other pool of this machine has: one agent acts on each."""
        return self.name

    def agent_directory(self, directory: str | None) -> str | None:  # noqa: ARG002
        """Return where its agent keeps lock and journal when the site file does not say; None: the usual place."""
        return None

    def add_render_options(self, parser: argparse.ArgumentParser) -> None:
        """Add its own options to `drainwise config NAME`."""

    def render(self, site: SiteConfig, args: argparse.Namespace) -> Sequence[RenderedFile]:
        """Return the files of a machine of `args.role`. Raises UsageError, ConfigurationError."""
        raise NotImplementedError

    def add_check_options(self, parser: argparse.ArgumentParser) -> None:
        """Add its own options to `drainwise check NAME`."""

    def findings(
        self, site: SiteConfig, args: argparse.Namespace, agent: AgentFindings, progress: Callable[[int, int], None]
    ) -> Sequence[Finding]:
        """Inspect the live pool. progress: takes how many daemons have answered, of how many. Raises PoolError."""
        raise NotImplementedError

    def payload_reports(self, address: str, now: int) -> Mapping[str, PilotReport]:
        """Return what pilots advertise of their payloads at an address, by their job's id; now: UNIX s.

        Raises PoolUnreachable.
        """
        raise NotImplementedError

    def machine_facts(self, site: SiteConfig) -> BatchFacts | None:
        """Return what this machine is there; None where it has nothing of it. Raises PoolError."""
        raise NotImplementedError

    def open_backend(self, settings: Mapping[str, object], options: str, place: LaunchPlace) -> Backend:
        """Open the launcher's backend. settings: its table of the launch file. options: the command line's.

        Raises PoolUnreachable where it cannot be used here, UsageError for wrong settings.
        """
        raise NotImplementedError
