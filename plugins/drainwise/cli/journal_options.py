"""The options of the commands that read the journal."""

from __future__ import annotations

import argparse
import contextlib
import glob
import os
import sys
from collections.abc import Sequence

from drainwise.cli.command_line.options import option
from drainwise.cli.screen.wanted import PilotFilter
from drainwise.cli.site_file import SITE, site_of
from drainwise.facts.errors import UsageError
from drainwise.journal.read import PassedOver, files_of, names_in
from drainwise.journal.views import VIEWS, views_in
from drainwise.pool.identity import ANYBODY, PilotIdentity, identity_of
from drainwise.siteconfig import SiteConfig
from drainwise.systems.find import offering
from drainwise.systems.system import System

JOURNAL = (option("--journal FILE", "the journal (default: [journal] file, or the agent's in [agent] state_dir)"), SITE)
IDENTITY = (
    option("--vo VO", "only pilots of this virtual organisation"),
    option("--ce-job ID", "only pilots with this job id at the computing element"),
)
"""Who sent a pilot."""


def wanted_identity(args: argparse.Namespace) -> PilotIdentity:
    """Return who must have sent a pilot by those options, bounded as the journal has it. Raises UsageError."""
    values = {name: value for name in ("vo", "ce_job") if (value := getattr(args, name)) is not None}
    wanted = identity_of(values) or ANYBODY
    for name in values:
        if not getattr(wanted, name):
            raise UsageError(f"--{name.replace('_', '-')}: expected a name")
    return wanted


def journal_files(args: argparse.Namespace) -> list[str]:
    """Return the journal's files, the oldest first: of the one that is named, else of the one that an agent keeps.

    Raises UsageError when there is none, or several agents keep one each.
    """
    path = args.journal
    if path is None:
        site = site_of(args)
        path = site.journal.file or _kept_journal(site)
    files = files_of(path)
    if not files:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            os.stat(path)  # a directory that this user may not enter hides it
        raise UsageError(f"there is no journal {path!r}: `drainwise reclaim` writes one where it acts")
    return files


def readable_files(args: argparse.Namespace) -> tuple[list[str], bool]:
    """Return the journal's files; where none is named and this one may not be read, the views that may.

    The second value is whether they are views. Raises UsageError when there is neither.
    """
    if args.journal is not None:
        return journal_files(args), False
    try:
        files = journal_files(args)
        if all(os.access(path, os.R_OK) for path in files):
            return files, False
    except UsageError:
        if views := _views(args):
            return views, True
        raise
    views = _views(args)
    return (views, True) if views else (files, False)


def _views(args: argparse.Namespace) -> list[str]:
    places = _agent_places(site_of(args))
    found = sorted(path for place in places for path in glob.glob(f"{glob.escape(place)}/*{VIEWS}"))
    return [view for path in found for view in views_in(path)]


def _kept_journal(site: SiteConfig) -> str:
    places = _agent_places(site)
    found = sorted(path for place in places for path in glob.glob(f"{glob.escape(place)}/*.journal"))
    if len(found) == 1:
        return found[0]
    where = f"several agents keep one: {', '.join(found)}" if found else f"no agent keeps one in {' or '.join(places)}"
    raise UsageError(f"which journal? {where}; name it with --journal FILE, or in the site file as [journal] file")


def _agent_places(site: SiteConfig) -> list[str]:
    systems = offering(System.agent_directory)
    return [site.agent.state_dir, *(place for system in systems if (place := system.agent_directory(None)))]


def require_known(files: Sequence[str], wanted: PilotFilter) -> None:
    """Raise UsageError for a user, an account or a node that the journal does not name."""
    if wanted.is_some:
        wanted.require("in the journal", *names_in(files))


def say_passed_over(lines: PassedOver) -> None:
    """Say on standard error which parts of the journal could not be used."""
    if lines.lines:
        print(f"drainwise: {lines}", file=sys.stderr)
