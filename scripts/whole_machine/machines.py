"""`WholeMachines`: boot machines, reach them, cut their power, end them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path
from subprocess import CompletedProcess

from real_daemons import furnish
from real_daemons.errors import DaemonsError
from real_daemons.namespaces import Enclosure
from real_daemons.site import CENTRAL, Site
from real_daemons.waiting import STALLS
from whole_machine.groups import ControlGroup
from whole_machine.recipe import recipe_of

_PLACE = "/srv/machines"
_SWITCH = "switch"
_BOOT_SECONDS = 30.0
_NETWORK = "10.0.0"
_LINES = 25
_ENDED = "the machine has ended"
# Commands in the machines' place: what the site needs once, what each machine needs once, how one is switched on.
_SITE = f"""
mount -t tmpfs -o mode=0755,size=8g machines {_PLACE}
ip link add {_SWITCH} type bridge
ip addr add {_NETWORK}.1/24 dev {_SWITCH}
ip link set {_SWITCH} up
"""
_MACHINE = f"""
mkdir -p {_PLACE}/$0/upper {_PLACE}/$0/work {_PLACE}/$0/root
ip netns add $0
ip link add $0 type veth peer name eth0 netns $0
ip link set $0 master {_SWITCH} up
ip -n $0 link set lo up
ip -n $0 addr add $1/24 dev eth0
ip -n $0 link set eth0 up
"""
_ON = f"""
rm -f {_PLACE}/$0/pid
set +e
{{
    setsid nsenter --net=/run/netns/$0 unshare --mount sh -e {_PLACE}/boot.sh $0 $1
    echo "{_ENDED}"
}} >{_PLACE}/$0/log 2>&1 </dev/null &
"""


class WholeMachines(Site):
    """A machine called `central` and `nodes` others, node1, node2 …, on one private network; all have booted.

    Parameters
    * release: Debian release, see `recipe.RELEASES`.
    * packages: what is installed beside systemd and Python. None of their units is enabled: a test writes their
      configuration and says `systemctl("enable", "--now", …)`.

    Each machine has a disk of its own but for /home, which all share. alice and bob are plain users.
    """

    def __init__(self, release: str = "trixie", packages: Sequence[str] = (), nodes: int = 0) -> None:
        super().__init__(recipe_of(release, packages))
        self.machines = (CENTRAL, *(f"node{number}" for number in range(1, nodes + 1)))
        self._group: ControlGroup | None = None

    # ---- life ----

    def _bring_up(self, enclosure: Enclosure) -> None:
        self._group = ControlGroup()
        addresses = {name: f"{_NETWORK}.{10 + index}" for index, name in enumerate(self.machines)}
        hosts = "".join(f"{address} {name}.site.test {name}\n" for name, address in addresses.items())
        furnish.write_file(self.root, "/etc/hosts", f"127.0.0.1 localhost\n{hosts}")
        enclosure.add_machine(_SWITCH, _SWITCH)
        os.mkdir(self.root + _PLACE)
        self.run(["sh", "-ec", _SITE], node=_SWITCH)
        boot = Path(__file__).with_name("boot.sh").read_text(encoding="utf-8")
        furnish.write_file(self.root, f"{_PLACE}/boot.sh", boot)
        for name, address in addresses.items():
            self.run(["sh", "-ec", _MACHINE, name, address], node=_SWITCH)
        self.boot(*self.machines)

    def _end(self) -> None:
        super()._end()
        if self._group is not None:
            group, self._group = self._group, None
            group.end()

    def boot(self, *names: str) -> None:
        """Switch machines on that are off, with the disks they had, and wait until systemd has started what it can.

        Raises DaemonsError, with what kept it, if one does not come up.
        """
        for name in names:
            if self._number(name):
                raise DaemonsError(f"{name} is on")
            self.run(["sh", "-ec", _ON, name, self.control_group], node=_SWITCH)
        for name in names:
            self.wait_for(lambda name=name: self._listens(name), _BOOT_SECONDS, f"systemd on {name}")  # type: ignore[misc]
            self._inside.enter_by(name, f"--target={self.first_process(name)}", "--all")
            # It ends with 1 where a unit has failed.
            wait = ["systemctl", "is-system-running", "--wait"]
            state = self.run(wait, node=name, check=False, timeout=STALLS * _BOOT_SECONDS).stdout.strip()
            if state not in {"running", "degraded"}:
                raise DaemonsError(f"{name} is {state!r}, not up\n{self.log_tails()}")

    def _listens(self, name: str) -> bool:
        if _ENDED in self._boot_log(name):
            raise DaemonsError(f"{name} does not boot\n{self.log_tails()}")
        return self._number(name) != 0 and os.path.exists(self.path("/run/systemd/private", name))

    def _boot_log(self, name: str) -> str:
        return Path(f"{self.root}{_PLACE}/{name}/log").read_text(encoding="utf-8")

    def cut_power(self, name: str) -> None:
        """End a machine at once, as without power; its disk stays for `boot`."""
        self.run(["kill", "-KILL", str(self.first_process(name))], node=_SWITCH)
        self.wait_for(lambda: not self._number(name), _BOOT_SECONDS, f"the end of {name}")

    # ---- access ----

    @property
    def control_group(self) -> str:
        """The name, at the top of the host's control groups of version 2, of the one that holds all machines."""
        if self._group is None:
            raise DaemonsError("these machines have ended")
        return self._group.name

    def first_process(self, name: str) -> int:
        """The number, as the site counts, of a machine's systemd; raises DaemonsError if it is off."""
        number = self._number(name)
        if not number:
            raise DaemonsError(f"{name} is off")
        return number

    def _number(self, name: str) -> int:
        try:
            number = int(Path(f"{self.root}{_PLACE}/{name}/pid").read_text(encoding="ascii") or "0")
        except FileNotFoundError:
            return 0
        return 0 if _ENDED in self._boot_log(name) else number

    def path(self, path: str, node: str = CENTRAL) -> str:
        """Where this machine's root finds the file that programs on `node` call `path` (see `Site.root`).

        Raises DaemonsError if that machine is off.
        """
        return f"{self.root}/proc/{self.first_process(node)}/root{path}"

    def write(self, path: str, text: str, node: str = CENTRAL, mode: int = 0o644, owner: str = "root") -> None:
        """Replace a file of a machine by `text`, in one step; its directory is made if it is missing."""
        root = self.path("", node)
        os.makedirs(os.path.dirname(root + path), exist_ok=True)
        furnish.write_file(root, path, text, mode, self.uid(owner))

    def copy_in(self, source: str, target: str, owner: str = "root", node: str = CENTRAL) -> None:
        """Copy a file or folder of the host to the absolute path `target` of a machine, with its modes."""
        furnish.copy_tree(self.path("", node), source, target, self.uid(owner))

    def systemctl(self, *words: str, node: str = CENTRAL, check: bool = True) -> CompletedProcess[str]:
        """Run systemctl on a machine."""
        return self.run(["systemctl", "--no-pager", *words], node=node, check=check)

    def log_tails(self) -> str:
        """The last lines of every machine's journal, or what kept it from booting."""
        parts = []
        for name in self.machines:
            with contextlib.suppress(FileNotFoundError):
                parts.append(f"--- {name}\n{self._boot_log(name)}".rstrip())
            with contextlib.suppress(DaemonsError):
                parts.append(self.run(["journalctl", "--no-pager", f"--lines={_LINES}"], node=name, check=False).stdout)
        return "\n".join(parts)
