"""Find the rendered files of this machine, by where they lie: what each comes from, and whether it is of today."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Iterator, Mapping

from drainwise.doctor.facts import RenderedFact
from drainwise.install.edited_files import STUB, is_edited, unsigned, version_in

PLACES = (
    "/etc/drainwise/*.conf",
    "/etc/drainwise/*.cpf",
    "/usr/libexec/drainwise/*",
    "/etc/slurm/drainwise.conf",
    "/etc/slurm/prolog.d/50-drainwise",
    "/etc/slurm/epilog.d/50-drainwise",
    "/etc/condor/config.d/*drainwise*",
    "/etc/systemd/system/drainwise*.service",
)
"""Where they lie unless the site file says otherwise."""
_ORIGIN = re.compile(r"\brendered from (the defaults|[A-Za-z0-9_./+?-]*[A-Za-z0-9_/+?-])")
_LONGEST = 1 << 20


def rendered_files(today: Mapping[str, str], places: Iterable[str] = PLACES, root: str = "") -> Iterator[RenderedFact]:
    """Look at each rendered file that is there, below `root`.

    today: what the site file gives now, by path; {} where that cannot be told here. Files that do not say that they
    were rendered are none of ours, such as one line of the site's own.
    """
    found = {path for pattern in places for path in glob.glob(root + pattern)}
    found |= {root + path for path in today if os.path.exists(root + path)}
    for place in sorted(found):
        path = place[len(root) :]
        try:
            if not os.path.isfile(place):
                continue
            with open(place, encoding="utf-8", errors="surrogateescape") as stream:
                text = stream.read(_LONGEST)
        except OSError as fault:
            yield RenderedFact(path, fault=fault.strerror or "cannot be read")
            continue
        fact = rendered_fact(path, text, today.get(path))
        if fact is not None:
            yield fact


def rendered_fact(path: str, text: str, today: str | None) -> RenderedFact | None:
    """Return what the text of a file says of itself; None for one that was not rendered.

    today: what the site file gives now. Comments do not count: they name the site file.
    """
    if text == STUB:
        return RenderedFact(path, stub=True)
    origin = _ORIGIN.search(text)
    if origin is None:
        return None
    differs = None if today is None else _code(unsigned(text)) != _code(unsigned(today))
    version = version_in(text)
    return RenderedFact(path, origin[1], version, bool(version) and is_edited(text), differs)


def _code(text: str) -> list[str]:
    """Return the lines that count: without comments, and without the site file's name in a program's docstring."""
    return [_ORIGIN.sub("", line) for line in text.splitlines() if line.strip() and line[0] != "#"]
