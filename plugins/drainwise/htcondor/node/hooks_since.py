"""Find which files of a node's hooks are unusable now, and since when all jobs find the hooks.

A hook's file that is gone, or that the jobs' users cannot run, is no fault of the cron: unless it is published, the
node would look sound. When the cron's own file or the package is gone, the cron's heartbeat stops.

A starter reads the configuration once: a job that started before the hooks were there, or while they were away, cannot
receive an order, however often the node is reconfigured. The cron comes and goes with the hooks' files. So all jobs
find the hooks since the cron runs without a gap and finds all files, of which it keeps a note beside its state file.
"""

from __future__ import annotations

import posix
import sys
from _stat import S_ISDIR  # `stat` itself would be one more module for the cron to load

from drainwise.htcondor.node.cron_record import replace_file
from drainwise.node import JOB_FEATURES
from drainwise.node.hook import read_bounded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

_MISSED, _LATE = 3, 60  # rounds that were missed, and seconds beyond, after which the hooks may have been away as well
_LIMIT = 10  # digits of a time


def hooks_since(state: str, period: int, now: int, unusable: Collection[str] = ()) -> int:
    """Return since when (UNIX s) all jobs that start here find the hooks; 0 when nobody took note of it.

    That is the first round, the first after rounds were missed, or the last with `unusable` files. state: the cron's
    state file, which is there already where an earlier drainwise was. period: seconds between two rounds; 0 when it is
    not known. Raises OSError when the note cannot be kept.
    """
    note = f"{state}.since"
    try:
        text, last = read_bounded(note, _LIMIT).decode("ascii", "replace"), posix.stat(note).st_mtime
    except FileNotFoundError:
        return _keep(note, 0 if _is_there(state) else now)
    if unusable:
        return _keep(note, now)
    if not text.isdigit():
        return _keep(note, 0)
    if period and now - last > _MISSED * period + _LATE:
        return _keep(note, now)
    posix.utime(note)
    return int(text)


def hook_ran(directory: int) -> bool:
    """Decide whether the prepare hook's work is in the open `directory` of a job.

    Who forges that lets its own pilot get orders, and nobody else's.
    """
    try:
        return S_ISDIR(posix.stat(JOB_FEATURES, dir_fd=directory, follow_symlinks=False).st_mode)
    except OSError:
        return False


def _is_there(path: str) -> bool:
    try:
        posix.stat(path)
    except OSError:
        return False
    return True


def _keep(note: str, since: int) -> int:
    replace_file(note, str(since))
    return since


_HOOKS = ("prepare-hook", "update-hook")
_MODULES = ("prepare_hook.py", "update_hook.py")
_READABLE, _RUN = 0o004, 0o005


def unusable_files(settings: str) -> list[str]:
    """Return which of the hooks beside this program, their modules and the settings' file other users cannot use."""
    programs, package = sys.argv[0].rpartition("/")[0], __file__.rpartition("/")[0]
    wanted = [(f"{programs}/{name}", _RUN) for name in _HOOKS]
    wanted += [(f"{package}/{name}", _READABLE) for name in _MODULES]
    wanted += [(f"{programs}/hooks.conf", _READABLE), (settings, _READABLE)]
    return [path for path, mode in wanted if not _usable(path, mode)]


def _usable(path: str, mode: int) -> bool:
    try:
        return posix.stat(path).st_mode & mode == mode
    except OSError:
        return False
