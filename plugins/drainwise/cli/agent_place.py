"""Find the surroundings of an agent: its settings, the place of its lock, its journal and memory, its log."""

from __future__ import annotations

import argparse
import os
import sys
import syslog
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from drainwise.agent.lock import LOOP, AgentLock, lock_path
from drainwise.agent.settings import AgentSettings
from drainwise.cli.pool_options import open_pool, settings_of, system_of
from drainwise.cli.site_file import site_of
from drainwise.common.printable import ascii_line, printable
from drainwise.facts.errors import UsageError
from drainwise.journal.file import Journal, JournalFile
from drainwise.journal.read import files_of
from drainwise.journal.views import NOBODY, VIEWS, JournalWithViews
from drainwise.requests.request import RequestFiles
from drainwise.siteconfig import SiteConfig

if TYPE_CHECKING:
    from drainwise.journal.memory import Memory
    from drainwise.pool.facts import Snapshot
    from drainwise.reclaim.history import History

_LONGEST_LINE = 500


def setup_of(args: argparse.Namespace) -> AgentSettings:
    """Make the agent's settings by the site file, as it is now, and the command line. Raises UsageError."""
    agent, site, is_loop = site_of(args).agent, settings_of(args), getattr(args, "loop", False)
    return AgentSettings(
        pool=open_pool(args),
        settings=site,
        acting=args.act or (is_loop and agent.act == "yes"),
        period=agent.period if not is_loop or args.period is None else args.period,
        kill_switch=agent.kill_switch,
        requests=requests_of(args),
    )


def lock_of(args: argparse.Namespace) -> AgentLock:
    """Return the lock of the agent of this pool; it lies where the site says, else where the batch system wants it."""
    site, system = site_of(args), system_of(args)
    state_dir = site.agent.state_dir
    if state_dir == SiteConfig().agent.state_dir:
        state_dir = system.agent_directory(args.directory) or state_dir
    path = lock_path(os.path.abspath(state_dir), system.agent_label(site, args.directory))
    return AgentLock(path, LOOP if getattr(args, "loop", False) else "")


def requests_of(args: argparse.Namespace) -> RequestFiles:
    """Return where this pool's requests lie: beside the lock."""
    return RequestFiles(_beside_lock(args, ".requests"))


def _beside_lock(args: argparse.Namespace, suffix: str) -> str:
    return f"{lock_of(args).path.removesuffix('.lock')}{suffix}"


def named_journal(args: argparse.Namespace) -> str | None:
    """Return the journal's file by the command line or the site; None where neither names one."""
    named: str | None = args.journal or site_of(args).journal.file
    return named


def journal_path(args: argparse.Namespace) -> str:
    """Return the journal that an acting agent keeps: the one that is named, else one beside the lock.

    Without any, an agent that is started anew for each cycle could keep no limit of an hour.
    """
    return named_journal(args) or _beside_lock(args, ".journal")


def journal_at(path: str, args: argparse.Namespace) -> Journal:
    """Open the journal in this file, rotated and with users' views as the site says.

    Raises UsageError when it cannot be written.
    """
    section = site_of(args).journal
    journal = JournalFile(path, section.max_size, section.keep)
    if section.view == NOBODY:
        return journal
    return JournalWithViews(journal, _beside_lock(args, VIEWS), section.view, to_log)


def to_standard_error(text: str) -> None:
    """Say a line there."""
    print(f"drainwise: {printable(text)}", file=sys.stderr)


def memory_of(path: str | None, must_read: bool, say: Callable[[str], None] = to_standard_error) -> Memory:
    """Return the memory in the journal at `path`; `say` is told what of it cannot be used.

    Raises UsageError when it cannot be read, if it must be.
    """
    from drainwise.journal.memory import Memory

    if path is None:
        return Memory()
    try:
        memory = Memory.load(files_of(path), int(time.time()))
    except UsageError as fault:
        if must_read:
            raise
        say(f"limits and trust of earlier cycles are not known: {fault}")
        return Memory()
    if memory.passed_over.lines:
        say(str(memory.passed_over))
    return memory


def history_of(path: str | None, snapshot: Snapshot, say: Callable[[str], None] = to_standard_error) -> History:
    """Return what the agent knows, by the journal at `path`, when it decides on this snapshot; nothing without one.

    Payloads that run now count for how long such payloads run, as they do for the agent.
    """
    memory = memory_of(path, must_read=False, say=say)
    memory.payloads.seen(snapshot)
    return memory.history(snapshot.taken)


def journal_to_look_at(args: argparse.Namespace) -> str | None:
    """Return the journal that a read-only command reads: the site's, else the agent's own where it can be read."""
    own = _beside_lock(args, ".journal")
    return site_of(args).journal.file or (own if os.access(own, os.R_OK) else None)


def to_log(text: str) -> None:
    """Log a line on standard error; and to the system's log, unless standard error goes there or to a terminal."""
    line = ascii_line(f"drainwise: {text}", _LONGEST_LINE)
    if not _is_systemd_journal(os.environ.get("JOURNAL_STREAM", "")) and not os.isatty(2):
        syslog.syslog(syslog.LOG_NOTICE, line)
    try:
        os.write(2, f"{line}\n".encode("ascii"))
    except OSError:
        return


def _is_systemd_journal(named: str) -> bool:
    """Return whether standard error is the stream in JOURNAL_STREAM; the variable alone may come from a parent."""
    try:
        here = os.fstat(2)
    except OSError:
        return False
    return named == f"{here.st_dev}:{here.st_ino}"
