"""The kill switch: a file; while it is there, the agent decides and says, and asks nobody."""

from __future__ import annotations

import os


def is_thrown(path: str) -> bool:
    """Whether something is at `path`, whatever it is; also when that cannot be found out: then better no act."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True
