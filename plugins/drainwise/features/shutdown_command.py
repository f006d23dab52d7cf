"""`$MACHINEFEATURES/shutdown_command`, by which a user destroys the virtual machine that the work was done in.

The key may come over the network, so it names a file and no more: without arguments, without a shell, and the file must
be root's own, which nobody else may write.
"""

from __future__ import annotations

import os
import stat
import subprocess

from drainwise.common.local_file import kind_of
from drainwise.facts.errors import FeatureError
from drainwise.features.reader import FeatureReader

KEY = "shutdown_command"
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def checked_command(machine: FeatureReader) -> str:
    """Return the path of the command. Raises FeatureError where there is none, or one that is not to be trusted."""
    path = machine.text(KEY)
    if path is None:
        raise FeatureError(f"{machine.location}: no {KEY}: this machine cannot be shut down by its user")
    if not path.startswith("/"):
        raise FeatureError(f"{KEY} {path!a}: expected an absolute path")
    try:
        status = os.stat(path)
    except OSError as error:
        raise FeatureError(f"{KEY} {path!a}: {error.strerror}") from None
    if not stat.S_ISREG(status.st_mode):
        raise FeatureError(f"{KEY} {path!a}: expected a program, found {kind_of(status.st_mode)}")
    if status.st_uid != 0 or status.st_mode & _OTHERS_WRITE:
        raise FeatureError(f"{KEY} {path!a}: others than root may write it; not run")
    if not os.access(path, os.X_OK):
        raise FeatureError(f"{KEY} {path!a}: we may not run it")
    return path


def shut_down(machine: FeatureReader) -> int:
    """Run the command; its exit code. Raises FeatureError as `checked_command`, or when it cannot be started."""
    path = checked_command(machine)
    try:
        return subprocess.run([path], stdin=subprocess.DEVNULL, check=False).returncode
    except OSError as error:
        raise FeatureError(f"{KEY} {path!a}: {error.strerror}") from None
