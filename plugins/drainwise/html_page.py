"""A self-contained page from a template beside the module that fills it; what files and users say is escaped."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

import jinja2


def template_beside(
    module: str, name: str, filters: Mapping[str, Callable[..., object]] | None = None
) -> jinja2.Template:
    """The template of that name in the directory of `module` (its `__file__`)."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(os.path.dirname(os.path.abspath(module))),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_printable,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(filters or {})
    return environment.get_template(name)


def _printable(value: object) -> object:
    """Nothing that a browser could take for more than text: no control character, no mark that turns the writing."""
    if type(value) is str:
        return "".join(letter for letter in value if letter.isprintable())
    return value
