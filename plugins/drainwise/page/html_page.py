"""A self-contained page from a template beside the module that fills it; what files and users say is escaped.

Templates extend `base.html.j2`, which has the one style of all pages, and include `plots.html.j2` for their drawings.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping

import jinja2

from drainwise.common.printable import printable
from drainwise.page.svg import STYLE


def template_beside(
    module: str, name: str, filters: Mapping[str, Callable[..., object]] | None = None
) -> jinja2.Template:
    """Return the template of that name in the directory of `module` (its `__file__`)."""
    environment = _environment(os.path.dirname(os.path.abspath(module)))
    environment.filters.update(filters or {})
    return environment.get_template(name)


@functools.cache
def _environment(directory: str) -> jinja2.Environment:
    """Return the one that keeps the templates of a directory, each compiled once, beside those of this folder."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader([directory, os.path.dirname(os.path.abspath(__file__))]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_printable,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["plot_style"] = STYLE
    return environment


def _printable(value: object) -> object:
    """Remove what a browser could take for more than text: control characters, marks that turn the writing."""
    return printable(value) if type(value) is str else value
