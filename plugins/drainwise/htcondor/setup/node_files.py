"""Look at the files of an execute node, and judge whether hooks, settings and package are there and safe."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from functools import partial

from drainwise.htcondor.setup.check_facts import FileFacts, PoolFacts
from drainwise.htcondor.setup.check_knobs import restart_line
from drainwise.htcondor.setup.render import drop_in_path, hooks_path, render
from drainwise.install.expected_files import ExpectedFiles, expected_files
from drainwise.install.rendered_tree import OTHERS_WRITE, open_above
from drainwise.pool.finding import DANGEROUS, MISSING, OK, Finding
from drainwise.siteconfig import SiteConfig


def on_node(site: SiteConfig) -> ExpectedFiles:
    """Return the files that are to lie on an execute node."""
    command, has_site_file = "drainwise config htcondor --role execute --out /", bool(site.file)
    return expected_files(partial(render, site, "execute"), command, has_site_file=has_site_file)


def paths_on_node(site: SiteConfig, expected: ExpectedFiles) -> Iterable[str]:
    """Return the paths that a node must have: the interpreter, the package, the settings, the hooks and the drop-in."""
    return [site.htcondor.python, f"{site.htcondor.library_dir}/drainwise", *(file.path for file in expected.files)]


def file_facts(paths: Iterable[str], root: str = "") -> Iterator[FileFacts]:
    """Look at each path, below the directory `root` when the node's file system is mounted elsewhere."""
    for path in paths:
        try:
            status = os.stat(root + path)
        except OSError as fault:
            yield FileFacts(path, fault.strerror or "cannot be looked at")
            continue
        yield FileFacts(
            path, "", status.st_mode, status.st_uid, int(status.st_ctime), next(iter(open_above(path, root)), "")
        )


def judge_files(facts: PoolFacts, site: SiteConfig) -> Iterator[Finding]:
    """Judge whether hooks, settings and package are there and safe; nothing when the check does not run on a node."""
    drop_in = drop_in_path("execute")
    for file in facts.files:
        if file.path == drop_in:
            yield from _not_restarted(file, facts)
            continue
        program = file.path.startswith(site.htcondor.libexec_dir + "/") and file.path != hooks_path(site)
        runs = file.path == site.htcondor.python or program
        wanted = stat.S_IXOTH | stat.S_IROTH if runs or stat.S_ISDIR(file.mode) else stat.S_IROTH
        what, shown = file.path, f"{stat.S_IMODE(file.mode):04o}"
        if file.fault:
            why = f"{file.fault}; while a hook is missing no job starts on the node"
            yield Finding(MISSING, what, why, facts.install)
        elif file.owner != 0 or file.mode & OTHERS_WRITE:
            why = "who can change it runs code as every job's user"
            line = f"chown root {what} && chmod go-w {what}"
            yield Finding(DANGEROUS, what, why, line, f"uid {file.owner} mode {shown}")
        elif file.exposed:
            why = f"{file.exposed} above it can be changed by others than root, who then run code as every job's user"
            yield Finding(DANGEROUS, what, why, f"chown root {file.exposed} && chmod go-w {file.exposed}")
        elif file.mode & wanted != wanted:
            why = "the jobs' users and HTCondor's own must be able to use it"
            line = f"chmod a+r{'x' if wanted & stat.S_IXOTH else ''} {what}"
            yield Finding(MISSING, what, why, line, f"mode {shown}")
        else:
            yield Finding(OK, what, "there, root's own, usable", value=f"mode {shown}")


def _not_restarted(file: FileFacts, facts: PoolFacts) -> Iterator[Finding]:
    """Find a startd older than the drop-in: ENABLE_RUNTIME_CONFIG counts from the daemon's start.

    Said only where the startd itself was not tried.
    """
    if any(one.trial and one.trial.taken is not None for one in facts.daemons if one.machine == facts.local_machine):
        return
    started = [slot.startd_started for slot in facts.slots if slot.machine == facts.local_machine]
    if started and not file.fault and file.modified > min(started):
        why = f"the startd is older than {file.path}, and this takes effect only when it starts"
        line = restart_line(facts.local_machine)
        yield Finding(MISSING, "ENABLE_RUNTIME_CONFIG", why, line)
