"""Write the agent's page and its JSON after each cycle: into the site's directory, to the port, or both."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from drainwise.common.faults import Faults
from drainwise.common.local_file import replace_file
from drainwise.facts.errors import ConfigurationError
from drainwise.siteconfig.export_sections import PageSection

if TYPE_CHECKING:
    from drainwise.agent.cycle import Cycle
    from drainwise.agent.export.listener import AgentAnswers
    from drainwise.agent.export.site_status import SiteStatus

PAGE, DOCUMENT = "index.html", "status.json"


def page_observer(
    section: PageSection,
    site_file: str,
    pool: str,
    policy: str,
    say: Callable[[str], None],
    answers: AgentAnswers | None = None,
) -> Callable[[Cycle], None] | None:
    """Return what to call with each cycle so that the page shows it; None when the site wants no page.

    pool: the pool in words. policy: with which the agent begins. answers: what the port serves, None where it serves
    no page. `say` takes a line when the page cannot be made or written, and one when it can again: no cycle fails.
    Raises ConfigurationError when jinja2 is missing.
    """
    if section.directory is None and answers is None:
        return None
    if importlib.util.find_spec("jinja2") is None:
        key, value = ("served", section.served) if section.directory is None else ("directory", section.directory)
        raise ConfigurationError(site_file, "page", key, value, "jinja2 on this machine, or no such line")
    from drainwise.agent.export.site_status import SiteStatus  # noqa: PLC0415 - only who shows a page needs jinja2

    return _PageExport(SiteStatus(pool, policy, section.pilots), section.directory, answers, say).observe


class _PageExport:
    def __init__(
        self, status: SiteStatus, directory: str | None, answers: AgentAnswers | None, say: Callable[[str], None]
    ) -> None:
        self._status, self._directory, self._answers = status, directory, answers
        self._faults = Faults(say)

    def observe(self, cycle: Cycle) -> None:
        """Take in a cycle that has ended."""
        fault = ""
        try:
            self._show(cycle)
        except OSError as error:
            fault = error.strerror or str(error)
        except Exception as error:  # a page is worth no cycle
            fault = f"a fault of drainwise itself: {error!r}"
        self._faults.set(f"page, {self._directory or 'served'}", fault, "works again")

    def _show(self, cycle: Cycle) -> None:
        from drainwise.agent.export.status_page import document, page  # noqa: PLC0415

        status = self._status.after(cycle)
        shown, plain = page(status), document(status)
        if self._answers is not None:
            self._answers.show(shown, plain)
        if self._directory is None:
            return
        directory = os.open(self._directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            replace_file(PAGE, shown.encode(), directory)
            replace_file(DOCUMENT, plain.encode(), directory)
        finally:
            os.close(directory)
