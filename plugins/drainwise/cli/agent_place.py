"""What an agent needs around its pool: its setup, the place of its lock, its journal and memory, its log."""

from __future__ import annotations

import argparse
import os
import re
import sys
import syslog
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from drainwise.agent.lock import AgentLock, lock_path
from drainwise.agent.setup import Setup
from drainwise.cli.local_directory import default_directory
from drainwise.cli.pool_options import (
    CONDOR_CONFIG,
    CONDOR_FILES,
    HTCONDOR,
    LOCAL,
    SLURM,
    open_pool,
    pool_name,
    settings_of,
    site_of,
)
from drainwise.cli.text import printable
from drainwise.errors import UsageError
from drainwise.journal.file import JournalFile
from drainwise.journal.read import files_of
from drainwise.siteconfig import SiteConfig

if TYPE_CHECKING:
    from drainwise.journal.memory import Memory

_LONGEST_LINE = 500
_USUAL = SiteConfig()


def setup_of(args: argparse.Namespace) -> Setup:
    """The setup by the site file, as it is now, and the command line. Raises UsageError."""
    agent, site = site_of(args).agent, settings_of(args)
    return Setup(
        pool=open_pool(args),
        settings=site,
        acting=args.act or (args.loop and agent.act == "yes"),
        period=agent.period if args.period is None else args.period,
        longest_pause=agent.longest_pause,
        kill_switch=agent.kill_switch,
    )


def lock_of(args: argparse.Namespace) -> AgentLock:
    """The lock of the agent of this pool; that of a local batch system lies with it where the site says nothing."""
    site, name = site_of(args), pool_name(args)
    directory = args.directory or default_directory()
    state_dir = site.agent.state_dir
    if name == LOCAL and state_dir == _USUAL.agent.state_dir:
        state_dir = directory
    return AgentLock(lock_path(os.path.abspath(state_dir), _label(name, directory, site, os.environ)))


def _label(name: str, directory: str, site: SiteConfig, environment: Mapping[str, str]) -> str:
    """The pool's name for the lock: two pools of one machine have two, one has one however its place is spelled."""
    if name == LOCAL:
        return f"{name} {os.path.realpath(directory)}"
    if name == SLURM:
        usual = f"{_USUAL.slurm.config_dir}/slurm.conf"
        config = environment.get("SLURM_CONF") or f"{site.slurm.config_dir}/slurm.conf"
    elif name == HTCONDOR:
        places = [os.path.expanduser(path) for path in CONDOR_FILES]
        usual = next(filter(os.path.exists, places), places[0])
        config = environment.get(CONDOR_CONFIG) or usual
    else:
        return name
    real = os.path.realpath(config)
    return name if real == os.path.realpath(usual) else f"{name} {real}"


def named_journal(args: argparse.Namespace) -> str | None:
    """The journal's file by the command line or the site; None where neither names one."""
    named: str | None = args.journal or site_of(args).journal.file
    return named


def journal_path(args: argparse.Namespace) -> str:
    """The journal that whoever acts keeps: the one that is named, else one beside the lock.

    Without any, an agent that is started anew for each cycle could keep no limit of an hour.
    """
    return named_journal(args) or _own_journal(args)


def _own_journal(args: argparse.Namespace) -> str:
    return f"{lock_of(args).path.removesuffix('.lock')}.journal"


def journal_at(path: str, args: argparse.Namespace) -> JournalFile:
    """The journal in this file, rotated as the site says. Raises UsageError when it cannot be written."""
    section = site_of(args).journal
    return JournalFile(path, section.max_size, section.keep)


def memory_of(path: str | None, must_read: bool) -> Memory:
    """What the journal at `path` remembers. Raises UsageError when it cannot be read, if it must be."""
    from drainwise.journal.memory import Memory

    if path is None:
        return Memory()
    try:
        return Memory.load(files_of(path), int(time.time()))
    except UsageError as fault:
        if must_read:
            raise
        print(f"drainwise: limits and trust of earlier cycles are not known: {printable(str(fault))}", file=sys.stderr)
        return Memory()


def journal_to_look_at(args: argparse.Namespace) -> str | None:
    """The journal that a command which only looks reads: the site's, else the agent's own where it can be read."""
    named: str | None = site_of(args).journal.file
    if named is None and os.access(own := _own_journal(args), os.R_OK):
        return own
    return named


def to_log(text: str) -> None:
    """A line on standard error; and to the system's log, unless that is where standard error goes, or to a terminal."""
    line = re.sub(r"[^ -~]", "?", f"drainwise: {' '.join(text.split())}"[:_LONGEST_LINE])
    if not _is_systemd_journal(os.environ.get("JOURNAL_STREAM", "")) and not os.isatty(2):
        syslog.syslog(syslog.LOG_NOTICE, line)
    try:
        os.write(2, f"{line}\n".encode("ascii"))
    except OSError:
        return


def _is_systemd_journal(named: str) -> bool:
    """Whether standard error is the stream that JOURNAL_STREAM names: the variable alone may come from a parent."""
    try:
        here = os.fstat(2)
    except OSError:
        return False
    return named == f"{here.st_dev}:{here.st_ino}"
