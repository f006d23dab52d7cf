"""A self-contained page from a template beside the module that fills it; what files and users say is escaped.

Templates extend `base.html.j2`, which has the one style of all pages, and include `plots.html.j2` for their drawings.
A page fetches nothing and runs no script: its Content-Security-Policy allows the one style sheet by its hash, and no
more.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import os

import jinja2

from drainwise import __version__
from drainwise.common.printable import printable
from drainwise.facts.units import clock, core_hours, duration
from drainwise.page.svg import STYLE

_LONGEST_NAME = 32
"""Characters of a name in a table: a user may choose one of any length."""


def template_beside(module: str, name: str) -> jinja2.Template:
    """Return the template of that name in the directory of `module` (its `__file__`)."""
    return _environment(os.path.dirname(os.path.abspath(module))).get_template(name)


def content_policy(style: str) -> str:
    """Return the Content-Security-Policy of a page whose one style element holds `style`."""
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


@functools.cache
def _environment(directory: str) -> jinja2.Environment:
    """Return the one that keeps the templates of a directory, each compiled once, beside those of this folder."""
    here = os.path.dirname(os.path.abspath(__file__))
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader([directory, here]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_printable,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    with open(os.path.join(here, "style.css"), encoding="utf-8") as file:
        style = f"\n{STYLE}\n{file.read()}"
    environment.filters.update(
        short=_short, clock=clock, core_hours=core_hours, hours=_hours, duration=_duration, cores=_cores
    )
    environment.globals.update(style=style, policy_of_content=content_policy(style), version=__version__)
    return environment


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…"


def _hours(core_seconds: int | None) -> str:
    """Write core-hours where the heading has the unit."""
    return "–" if core_seconds is None else core_hours(core_seconds).partition(" ")[0]


def _duration(seconds: float | None) -> str:
    return "–" if seconds is None else duration(round(seconds))


def _cores(cores: float | None) -> str:
    return "–" if cores is None else f"{cores:.1f}".removesuffix(".0")


def _printable(value: object) -> object:
    """Remove what a browser could take for more than text: control characters, marks that turn the writing."""
    return printable(value) if type(value) is str else value
