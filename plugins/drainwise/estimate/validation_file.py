"""Reading a request file: TOML where this Python can, JSON everywhere; what is wrong is refused by file and key."""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Callable
from dataclasses import replace
from typing import NoReturn

from drainwise.errors import ConfigurationError
from drainwise.estimate.validation_request import Request, request_of
from drainwise.written_file import keys_once, read_text

_LONGEST = 1 << 20  # bytes; a request has a page
_TOML_READERS = ("tomllib", "tomli")
"""The standard library's since Python 3.11, and the package of the same interface for older ones."""


def load_request(path: str) -> Request:
    """The request in `path`, TOML or, where the name ends in .json, JSON. Raises ConfigurationError.

    {here} in its command becomes the directory in which the file lies.
    """
    text = read_text(path, _LONGEST, "a request file that can be read", "a request of a page")
    request = request_of(_from_json(path, text) if path.endswith(".json") else _from_toml(path, text), path)
    here = os.path.dirname(os.path.abspath(path))
    return replace(request, command=tuple(word.replace("{here}", here) for word in request.command))


def toml_reader() -> Callable[[str], object] | None:
    """What reads TOML here; None on a Python before 3.11 without the package tomli."""
    for name in _TOML_READERS:
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue
        read: Callable[[str], object] = module.loads
        return read
    return None


def _from_toml(path: str, text: str) -> object:
    read = toml_reader()
    if read is None:
        expected = "JSON in a file whose name ends in .json: TOML needs Python 3.11 or the package tomli"
        raise ConfigurationError(path, "", "", "TOML", expected)
    try:
        return read(text)
    except (ValueError, RecursionError) as fault:  # TOMLDecodeError is a ValueError, and names line and column
        raise ConfigurationError(path, "", "", " ".join(str(fault).split())[:120], "TOML") from None


def _from_json(path: str, text: str) -> object:
    def no_number(word: str) -> NoReturn:
        raise ConfigurationError(path, "", "", word, "JSON, which has no such number")

    try:
        found: object = json.loads(text, object_pairs_hook=keys_once(path, "the key once"), parse_constant=no_number)
    except (ValueError, RecursionError) as fault:
        raise ConfigurationError(path, "", "", str(fault)[:120], "JSON") from None
    return found
