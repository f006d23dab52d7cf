"""Names that Grid Engine takes: measured with 8.1.9, which refuses / : @ \\ * ? and tabs, and loses a job with a blank.

The tag stands at the end, so that the job can be found again by it, in the queue and in the accounting.
"""

from __future__ import annotations

import re

LONGEST = 200
"""Characters of a name; Grid Engine takes 512."""

_CLOSE = {":": ";", "/": "|", "\\": "|", "@": "&", "*": "+", "?": "!"}
_UNSOUND = re.compile(r"[^A-Za-z0-9_.,;|&+!%=~^(){}<>#$-]")
_FIRST = re.compile(r"[A-Za-z_]")
_OPERATOR = re.compile(r"[^A-Za-z0-9_.;-]")
_TAG = re.compile(r"\.([A-Za-z0-9_-]{1,64})\Z")


def mangled(text: str) -> str:
    """A text as (part of) a name: close looking characters for those refused, `_` for the others."""
    return _UNSOUND.sub("_", "".join(_CLOSE.get(letter, letter) for letter in text))


def job_name(key: str, name: str, tag: str) -> str:
    """The name of a job in Grid Engine: key and name and `.tag`, cut in the middle where it is too long."""
    shown = mangled(key + name)
    if not _FIRST.match(shown):
        shown = f"_{shown}"
    return f"{shown[: LONGEST - len(tag) - 1]}.{tag}"


def pattern_of(key: str) -> str:
    """What qacct finds all jobs of a key by: an expression, so that what is an operator there is any character."""
    return _OPERATOR.sub("?", job_name(key, "", "").removesuffix(".")) + "*"


def tag_of(name: str) -> str:
    """The tag in a name that `job_name` made; "" for another's."""
    match = _TAG.search(name)
    return match[1] if match else ""
