"""A control group for a site's machines: all that lives on the host beside the site's processes."""

from __future__ import annotations

import secrets
import subprocess

from real_daemons.errors import DaemonsError
from real_daemons.roots import mount_point

_END_SECONDS = 20.0
# It outlives the program that uses the site: it removes the group when its standard input has a line or is closed.
_KEEPER = """
mount -t cgroup2 cgroup2 "$0"
cd "$0"
mkdir "$1"
echo made
read -r _ || :
echo 1 >"$1/cgroup.kill"
until find "$1" -depth -type d -exec rmdir {} + 2>/dev/null; do sleep 0.05; done
"""


class ControlGroup:
    """A new group of version 2 at the top of the host's, and the process that keeps and removes it."""

    def __init__(self) -> None:
        self.name = f"drainwise-{secrets.token_hex(8)}"
        # A session of its own: Ctrl-C is for the program that uses the site, which then ends it in order.
        self._keeper = subprocess.Popen(
            ["unshare", "--mount", "sh", "-ec", _KEEPER, mount_point(), self.name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            text=True,
        )
        said = self._keeper.stdout.readline() if self._keeper.stdout else ""
        if said != "made\n":
            self.end()
            raise DaemonsError(f"no control group of version 2 can be made: {said.strip()}")

    def end(self) -> None:
        """End every process of the group and remove it."""
        # A line, since a child that this program forked may still hold the other end of the pipe.
        self._keeper.communicate("\n", timeout=_END_SECONDS)
