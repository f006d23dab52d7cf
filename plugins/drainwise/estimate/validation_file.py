"""Reading a request file: TOML where this Python can, JSON everywhere; what is wrong is refused by file and key."""

from __future__ import annotations

import os
from dataclasses import replace

from drainwise.estimate.validation_request import Request, request_of
from drainwise.written_file import from_json, from_toml, read_text

_LONGEST = 1 << 20  # bytes; a request has a page


def load_request(path: str) -> Request:
    """The request in `path`, TOML or, where the name ends in .json, JSON. Raises ConfigurationError.

    {here} in its command becomes the directory in which the file lies.
    """
    text = read_text(path, _LONGEST, "a request file that can be read", "a request of a page")
    request = request_of(from_json(path, text) if path.endswith(".json") else from_toml(path, text), path)
    here = os.path.dirname(os.path.abspath(path))
    return replace(request, command=tuple(word.replace("{here}", here) for word in request.command))
