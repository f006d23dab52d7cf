"""The ready prologs and epilogs for LSF, PBS, Torque, Grid Engine and Flux, as they are put on a node."""

from __future__ import annotations

import os

from drainwise.install.rendered_tree import RenderedFile
from drainwise.install.templates import template_dir

PLACE = "/usr/libexec/drainwise"
"""Where they lie on a node: they call each other there."""
_LIBRARY, _PYTHON = "/usr/share/drainwise", "/usr/bin/python3"
_SOURCED = ("drainwise-job.sh", "drainwise.lua")


def prolog_scripts(release: str, library: str, python: str) -> tuple[RenderedFile, ...]:
    """Return the scripts; those that others call come first.

    release: the directory of the package in use, which has them where it came from a wheel; else they are a working
    copy's. library: the directory in which Python finds the package; python: the interpreter.
    """
    inside = os.path.join(release, "drainwise", "prolog_scripts")
    source = inside if os.path.isdir(inside) else template_dir("prologs", "prolog_scripts")
    found = []
    for directory, _, names in os.walk(source):
        for name in names:
            path = os.path.join(directory, name)
            with open(path, encoding="ascii") as stream:
                text = (
                    stream.read()
                    .replace(f'"{_LIBRARY}"', f'"{library}"')
                    .replace(f"exec {_PYTHON} ", f"exec {python} ")
                )
            place = f"{PLACE}/{os.path.relpath(path, source)}"
            found.append(RenderedFile(place, text, 0o644 if name in _SOURCED else 0o755))
    return tuple(sorted(found, key=lambda file: (file.path.count("/"), file.path)))
