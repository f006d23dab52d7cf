"""Directories that everyone on the machine can enter, whatever the umask of who makes them is."""

from __future__ import annotations

import os


def make_public(path: str) -> None:
    """Make the directory `path` and its parents where they are missing, each with mode 0755. Raises OSError.

    Jobs' users must get to what lies there; under a umask of 077 they would not. What is there is left as it is.
    """
    if not path or os.path.isdir(path):
        return
    make_public(os.path.dirname(path))
    try:
        os.mkdir(path)
    except FileExistsError:
        if not os.path.isdir(path):
            raise
        return  # made by another process in this moment
    os.chmod(path, 0o755)  # noqa: S103 - nothing secret lies there
