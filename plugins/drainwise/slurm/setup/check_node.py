"""Judge a node: the hooks that slurm.conf names, who can change them, and the space that jobs' directories have.

Slurm runs prologs and epilogs as root, so whoever may write to one of them, or to a directory above it, is root. They
lie on the nodes: where there are none this machine is taken for another one, such as the controller.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

from drainwise.facts.errors import FeatureError
from drainwise.install.expected_files import expected_files
from drainwise.install.rendered_tree import OTHERS_WRITE, open_above
from drainwise.node import JOB_STATUS
from drainwise.node.hook import read_bounded
from drainwise.pool.finding import DANGEROUS, MISSING, OK, Finding, first_few
from drainwise.siteconfig import SiteConfig
from drainwise.slurm.node.environment import is_node_name
from drainwise.slurm.node.job_tree import is_full, jobs, open_node, own_mounts
from drainwise.slurm.setup.check_facts import ClusterFacts
from drainwise.slurm.setup.merge import Hook, hooks_of
from drainwise.slurm.setup.render import render

_LARGEST = 65536
_DRAINS = "Slurm drains the node"
_WITHOUT = {"Prolog": _DRAINS, "Epilog": _DRAINS, "TaskProlog": "Slurm ends each job here"}
"""What comes of a hook that cannot be run; seen with both releases."""


@dataclass(frozen=True)
class HookFile:
    """One hook as it lies here.

    * path: as slurm.conf has it; real: where that leads, "" when there is nothing; fault: why it cannot be looked at.
    * mode, uid: the file's. open_to: what above it others may change (itself left out).
    * text: what stands in it; wanted: what should, None where nobody knows; install: the command that writes it.
    * needs: programs that it runs and that cannot be run here. guest: whether it is one of several in the site's own
      directory, where Slurm does not miss it.
    """

    key: str
    path: str
    real: str = ""
    fault: str = ""
    mode: int = 0
    uid: int = 0
    open_to: tuple[str, ...] = ()
    text: str = ""
    wanted: str | None = None
    install: str = ""
    needs: tuple[str, ...] = ()
    guest: bool = False


def hook_files(facts: ClusterFacts, site: SiteConfig) -> tuple[HookFile, ...]:
    """Return the hooks of ours that the live configuration names, as they lie on this machine."""
    command, has_site_file = "drainwise config slurm --role node --out /", bool(site.file)
    expected = expected_files(partial(render, site, "node", facts.own), command, has_site_file=has_site_file)
    wanted = {file.path: file.text for file in expected.files}
    hooks = hooks_of(site, facts.own)
    return tuple(
        _looked_at(hook, wanted.get(hook.path), expected.command or command)
        for hook in hooks.values()
        if facts.runs(hook)
    )


def judge_hooks(files: tuple[HookFile, ...]) -> Iterator[Finding]:
    """Yield a verdict for each file, with the command that mends it. Pure."""
    if files and not any(file.real or file.fault for file in files):
        why = "none here, so this is no node: run the check on one"
        yield Finding(OK, "hook files", why, value=", ".join(file.path for file in files))
        return
    for file in files:
        yield from _verdicts(file)


def _verdicts(file: HookFile) -> Iterator[Finding]:
    what, install = f"{file.key} file", file.install
    if file.fault:
        yield Finding(OK, what, f"cannot be looked at by this user: {file.fault}", value=file.path)
        return
    if not file.real:
        severity, then = (MISSING, "jobs here get no features") if file.guest else (DANGEROUS, _WITHOUT[file.key])
        yield Finding(severity, what, f"not there: {then}", install, file.path)
        return
    faults = list(_faults(file, install))
    for severity, why, line in faults:
        yield Finding(severity, what, why, line, file.path)
    if not faults:
        yield Finding(OK, what, "ours, and only root can change it", value=file.path)


def _faults(file: HookFile, install: str) -> Iterator[tuple[str, str, str]]:
    if not stat.S_ISREG(file.mode):
        yield DANGEROUS, f"not a file: {_WITHOUT[file.key]}", install
        return
    if file.uid != 0:
        yield DANGEROUS, f"it belongs to uid {file.uid}, who can put anything into it", f"chown root:root {file.real}"
    if file.mode & OTHERS_WRITE:
        yield DANGEROUS, f"mode {file.mode & 0o7777:04o}: others than root may write to it", f"chmod 755 {file.real}"
    for above in file.open_to:
        why = f"others than root may change {above}, and so put another file in its place"
        yield DANGEROUS, why, f"chown root:root {above}; chmod go-w {above}"
    # The task prolog is run by the jobs' users, who must be able to read a script, too.
    needed = 0o555 if file.key == "TaskProlog" else 0o500
    if file.mode & needed != needed:
        why = f"mode {file.mode & 0o7777:04o} cannot be run: {_WITHOUT[file.key]}"
        yield DANGEROUS, why, f"chmod 755 {file.real}"
    for program in file.needs:
        yield DANGEROUS, f"{program}, which it runs, cannot be run here: {_WITHOUT[file.key]}", f"ls -l {program}"
    if file.wanted is not None and _code(file.text) != _code(file.wanted):
        ours = "drainwise" in file.text
        why = "of another version or site file than this one" if ours else "none of ours: it does something else"
        yield MISSING, why, install


def _code(text: str) -> list[str]:
    """Return a script without its comments, which name the site file."""
    return [line for line in text.splitlines() if line and line[0] != "#"]


def _looked_at(hook: Hook, wanted: str | None, install: str) -> HookFile:
    key, path, guest = hook.key, hook.path, not hook.value
    try:
        real = os.path.realpath(path)
        status = os.stat(real)
        text = read_bounded(real, _LARGEST).decode("utf-8", "replace") if stat.S_ISREG(status.st_mode) else ""
    except (FileNotFoundError, NotADirectoryError):
        return HookFile(key, path, install=install, guest=guest)
    except OSError as error:
        return HookFile(key, path, fault=error.strerror or type(error).__name__)
    runs = [*text.partition("\n")[0].removeprefix("#!").split()[:1], *filter(None, [hook.site])] if text else []
    needs = tuple(program for program in runs if not os.access(program, os.X_OK))
    found = HookFile(key, path, real, "", status.st_mode, status.st_uid, open_above(path), text, wanted, install)
    return replace(found, needs=needs, guest=guest)


@dataclass(frozen=True)
class Space:
    """The runtime directory as it lies on this machine.

    own: whether it is a file system of its own. full: whether nothing more can be written there. shared: the jobs whose
    $JOBSTATUS is no file system of its own. fault: what in it is not used, "" for nothing. growing: the command that
    makes it larger, "" where none does.
    """

    directory: str
    own: bool
    full: bool
    shared: tuple[str, ...]
    fault: str = ""
    growing: str = ""


def space_of(runtime_dir: str) -> Space | None:
    """Return what there is on this machine; None where no prolog of ours has run, and for who is not root.

    Raises OSError.
    """
    real = os.path.realpath(runtime_dir)
    if not os.path.isdir(real) or os.geteuid() != 0:
        return None
    if not os.path.ismount(real) and not os.listdir(real):
        return None  # as the package makes it on every machine
    mounts = own_mounts(real)
    shared: list[str] = []
    fault = ""
    for name in filter(is_node_name, sorted(os.listdir(real))):
        try:
            node = open_node(real, name) if os.path.isdir(f"{real}/{name}") else None
        except FeatureError as error:
            fault = fault or str(error)
            continue
        if node is not None:
            shared += [job for job in jobs(node) if f"{real}/{name}/{job}/{JOB_STATUS}" not in mounts]
            os.close(node)
    full = is_full(real)
    return Space(
        *(runtime_dir, os.path.ismount(real), full, tuple(sorted(shared, key=int)), fault),
        growing=growing(real) if full else "",
    )


def growing(directory: str, mounts: str = "/proc/mounts") -> str:
    """Return the command that makes the file system of a directory larger, which lies in memory; "" for another one.

    mounts: where the kernel shows them.
    """
    place, room = directory, os.statvfs(directory)
    while not os.path.ismount(place):
        place = os.path.dirname(place)
    with open(mounts, encoding="utf-8", errors="surrogateescape") as stream:
        kinds = dict(line.split(" ")[1:3] for line in stream)
    if kinds.get(place) != "tmpfs":
        return ""
    size = f"size={2 * room.f_blocks * room.f_frsize},nr_inodes={2 * room.f_files}"
    return f"mount -o remount,{size} {place}   # until the next boot; what fills it: du -x -a {place} | sort -n | tail"


def judge_space(space: Space | None) -> Iterator[Finding]:
    """Yield the findings, with the command that mends each; none where there is no such directory. Pure."""
    if space is None:
        return
    restart = "systemctl restart drainwise-node-agent   # while no job runs here, or reboot"
    if space.fault:
        why = f"not used, so its jobs have no features: {space.fault}"
        yield Finding(
            DANGEROUS,
            "runtime_dir",
            why,
            f"chown root:root {space.directory}/*; chmod 755 {space.directory}/*",
            space.directory,
        )
    if space.full:
        why = "full: new jobs get no feature directories, and no pilot receives an order"
        line = space.growing or f"du -x -s {space.directory}/*/*"
        yield Finding(DANGEROUS, "runtime_dir", why, line, space.directory)
    if space.own:
        yield Finding(OK, "runtime_dir", "a file system of its own", value=space.directory)
    else:
        why = "no file system of its own: what fills it fills the one that it lies in, and the other way round"
        yield Finding(MISSING, "runtime_dir", why, restart, space.directory)
    if space.shared:
        why = "their $JOBSTATUS has no limit of its own: such a job can fill the directory for all others"
        line = "look for 'could not be mounted' in the system's log; before Slurm 24.11 job_container/tmpfs prevents it"
        yield Finding(MISSING, "$JOBSTATUS", why, line, first_few(space.shared))
