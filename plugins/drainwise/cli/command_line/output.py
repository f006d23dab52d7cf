"""Standard output and error of a command, whatever they are: closed, full, or of an encoding that has few signs."""

from __future__ import annotations

import codecs
import contextlib
import io
import os
import sys

_SPELLED = {"…": "...", "→": "->", "×": "x", "−": "-", "–": "-", "≤": "<=", "≥": ">=", "’": "'"}
"""The signs of our texts for an encoding that does not have them."""
_HANDLER = "drainwise-spelled"


def open_what_is_closed() -> bool:
    """Give a program that was started without standard output or error others in their places; whether output was."""
    closed = sys.stdout is None
    if closed:  # as if its disk were full: what is printed is missed, and no file of ours becomes descriptor 1
        sys.stdout = open("/dev/full", "w", encoding="utf-8")  # noqa: SIM115 - until the end
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    return closed


def spell_what_it_lacks() -> None:
    """Have both write every text: a sign that their encoding does not have is spelled in ASCII, or escaped."""
    codecs.register_error(_HANDLER, _spelled)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_HANDLER)


def _spelled(fault: UnicodeError) -> tuple[str, int]:
    if not isinstance(fault, UnicodeEncodeError):
        raise fault
    signs = fault.object[fault.start : fault.end]
    return "".join(_SPELLED.get(sign) or sign.encode("ascii", "backslashreplace").decode() for sign in signs), fault.end


def give_up_output() -> None:
    """Let nothing more be written to standard output: the interpreter would complain about what is left."""
    _give_up(1)


def say(text: str, end: str = "\n") -> None:
    """Write a text to standard error; where that cannot be done, nobody can be told."""
    try:
        print(text, end=end, file=sys.stderr, flush=True)
    except (OSError, ValueError):
        _give_up(2)


def _give_up(descriptor: int) -> None:
    with contextlib.suppress(OSError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, descriptor)
        os.close(null)
