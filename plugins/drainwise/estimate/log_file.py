"""A log opened with care: plain or gzipped, a file or the standard input; an error names it when it is torn."""

from __future__ import annotations

import contextlib
import gzip
import zlib
from collections.abc import Iterator
from typing import BinaryIO, cast

from drainwise.errors import UsageError

_GZIP = b"\x1f\x8b"


@contextlib.contextmanager
def opened(path: str) -> Iterator[BinaryIO]:
    """The file's bytes as a stream, unpacked where it is gzipped; "-" is the input. Raises UsageError."""
    with contextlib.ExitStack() as stack:
        try:
            plain = stack.enter_context(open(0 if path == "-" else path, "rb", closefd=path != "-"))
            packed = plain.peek(2)[:2] == _GZIP
        except (OSError, ValueError) as fault:
            raise UsageError(f"{path}: cannot be read: {_reason(fault)}") from None
        stream = cast("BinaryIO", gzip.GzipFile(fileobj=plain) if packed else plain)
        try:
            yield stream
        except (OSError, EOFError, zlib.error) as fault:
            raise UsageError(f"{path}: cannot be read to its end: {_reason(fault)}") from None


def _reason(fault: BaseException) -> str:
    return getattr(fault, "strerror", None) or str(fault)
