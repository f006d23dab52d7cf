"""Take away what was installed on a machine: never a program that the batch system's configuration still names.

Slurm drains a node whose prolog is missing, and HTCondor starts no job where a hook is missing. So such a program
becomes a stub that does nothing and ends with 0.
"""

from __future__ import annotations

import contextlib
import fnmatch
import glob
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from drainwise.common.bounded_command import Running
from drainwise.facts.errors import PoolUnreachable
from drainwise.install.edited_files import STUB, is_edited, text_of
from drainwise.install.rendered_tree import RenderedFile

AFTER_REMOVAL = "51-drainwise-after-removal.conf"
"""By this file of HTCondor's configuration the pilots of a node that has had orders go on when all else has gone."""

_FILES = ("/etc/slurm*/*.conf", "/etc/condor/condor_config*", "/etc/condor/config.d/*", "/usr/share/condor/config.d/*")
_COMMANDS = (("/usr/bin/scontrol", "show", "config"), ("/usr/bin/condor_config_val", "-dump"))
_ORDERS = ("/usr/bin/condor_config_val", "-startd", "PILOT_RECLAIM")
_TIME_LIMIT = 10  # seconds for a command
_LONGEST = 1 << 20  # bytes of a file
_WORDS = re.compile(r"/[^\s,;\"'=]+")
_FRAGMENT = "drainwise.conf"
_INCLUDES = re.compile(rf"^\s*include\s+(\S*/)?{re.escape(_FRAGMENT)}\s*$", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True)
class RemovalPlan:
    """What to do with the files of a tree: paths to unlink, programs that become stubs, files that stay.

    edited: by a person. needed: by jobs that run.
    """

    unlinked: tuple[str, ...]
    stubs: tuple[RenderedFile, ...]
    edited: tuple[str, ...]
    needed: tuple[str, ...]


def removal_of(files: Iterable[RenderedFile], live: str, root: str, has_orders: bool = False) -> RemovalPlan:
    """Decide what becomes of each file below `root`, last first of the order of installation.

    live: all text of the batch systems' configuration; a program that a path or a pattern there names becomes a stub. A
    program that is a stub already, and is not named any more, goes. has_orders: whether the node may have had some, by
    `may_have_orders`. Raises UsageError for what cannot be read.
    """
    words = paths_in(live)
    unlinked, stubs, edited, needed = [], [], [], []
    for file in reversed(tuple(files)):
        place = os.path.join(root, file.path.lstrip("/"))
        if not os.path.lexists(place):
            continue
        if has_orders and os.path.basename(file.path) == AFTER_REMOVAL:
            needed.append(file.path)
            continue
        text = text_of(place) if os.path.isfile(place) else None
        if file.mode & 0o111 and takers_of(file.path, words):
            stubs.append(RenderedFile(file.path, STUB, file.mode))
        elif text is None or (text != STUB and is_edited(text)):
            edited.append(file.path)
        else:
            unlinked.append(file.path)
    return RemovalPlan(tuple(unlinked), tuple(stubs), tuple(edited), tuple(needed))


def may_have_orders() -> bool:
    """Return whether the startd of this machine may have had orders since its start: it alone can deny that."""
    try:
        return Running(_ORDERS, os.environ, _TIME_LIMIT).answer().text.strip() != "Not defined"
    except PoolUnreachable:  # it does not answer, or HTCondor is not here
        return os.path.exists(_ORDERS[0])


def paths_in(live: str) -> set[str]:
    """Return the absolute paths and patterns that the text of a configuration names."""
    return set(_WORDS.findall(live))


def takers_of(path: str, words: Iterable[str]) -> list[str]:
    """Return those of the paths and patterns that name `path`."""
    return [word for word in words if fnmatch.fnmatchcase(path, word)]


def live_configuration() -> str:
    """Return what the batch systems of this machine are configured with: their files, and what they answer.

    What cannot be read or does not answer is left out.
    """
    texts, answers = {}, []
    for path in (path for pattern in _FILES for path in sorted(glob.glob(pattern)) if os.path.isfile(path)):
        with contextlib.suppress(OSError), open(path, encoding="utf-8", errors="replace") as stream:
            texts[path] = stream.read(_LONGEST)
    for command in _COMMANDS:
        with contextlib.suppress(PoolUnreachable):
            answers.append(Running(command, os.environ, _TIME_LIMIT).answer().text)
    return "\n".join((*in_force(texts), *answers))


def in_force(texts: Mapping[str, str]) -> list[str]:
    """Return the texts of files, given by path, but for lines of slurm.conf of ours that no other file includes."""
    others = [text for path, text in texts.items() if os.path.basename(path) != _FRAGMENT]
    return list(texts.values()) if any(map(_INCLUDES.search, others)) else others
