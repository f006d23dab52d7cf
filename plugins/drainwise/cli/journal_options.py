"""The options of the commands that read the journal."""

from __future__ import annotations

import argparse
import sys

from drainwise.facts.errors import UsageError
from drainwise.identity.identity import ANYBODY, PilotIdentity, identity_of
from drainwise.journal.read import PassedOver, files_of
from drainwise.siteconfig import DEFAULT_SITE_FILE

_IDENTITY = {
    "vo": ("VO", "of this virtual organisation"),
    "ce_job": ("ID", "with this job id at the computing element"),
    "subject": ("SUBJECT", "with this subject of their credential"),
    "factory": ("NAME", "that this pilot factory submitted"),
    "entry": ("NAME", "that the factory calls so: its entry, or a worker of Harvester"),
}


def add_journal_options(parser: argparse.ArgumentParser) -> None:
    """Add --journal and --site."""
    parser.add_argument("--journal", metavar="FILE", help="the journal (default: the site's, [journal] file)")
    parser.add_argument(
        "--site", metavar="FILE", help=f"the site's settings (default: {DEFAULT_SITE_FILE} where there is one)"
    )


def add_identity_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that name who sent a pilot."""
    for name, what in _IDENTITY.items():
        parser.add_argument(f"--{name.replace('_', '-')}", metavar=what[0], help=f"only pilots {what[1]}")


def wanted_identity(args: argparse.Namespace) -> PilotIdentity:
    """Return who must have sent a pilot by those options, bounded as the journal has it. Raises UsageError."""
    values = {name: value for name in _IDENTITY if (value := getattr(args, name)) is not None}
    wanted = identity_of(values) or ANYBODY
    for name in values:
        if not getattr(wanted, name):
            raise UsageError(f"--{name.replace('_', '-')}: expected a name")
    return wanted


def journal_files(args: argparse.Namespace) -> list[str]:
    """Return the journal's files, the oldest first. Raises UsageError when there is none."""
    path = args.journal
    if path is None:
        from drainwise.cli.pool_options import site_of

        path = site_of(args).journal.file
    if path is None:
        raise UsageError("which journal? name it with --journal FILE, or in the site file as [journal] file")
    files = files_of(path)
    if not files:
        raise UsageError(f"there is no journal {path!r}: `drainwise reclaim` writes one where it acts")
    return files


def say_passed_over(lines: PassedOver) -> None:
    """Say on standard error which parts of the journal could not be used."""
    if lines.lines:
        print(f"drainwise: {lines}", file=sys.stderr)
