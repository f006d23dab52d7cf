"""Which of a node's files jobs could not use now: the cron looks at each round, so that the pool sees it from afar.

A hook's file that is gone, or that the jobs' users cannot run, is no fault of the cron: without this attribute the node
would look sound. When its own file or the package is gone the cron's heartbeat stops.
"""

from __future__ import annotations

import posix
import sys

UNUSABLE = "PilotNodeUnusable"
"""The attribute: the paths of such files with blanks between, "" when all can be used."""

_HOOKS = ("prepare-hook", "update-hook")
_MODULES = ("prepare_hook.py", "update_hook.py")
_READABLE, _RUN = 0o004, 0o005


def unusable_files(settings: str) -> list[str]:
    """Which of the hooks beside this program, their modules and the settings' file other users cannot use."""
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
