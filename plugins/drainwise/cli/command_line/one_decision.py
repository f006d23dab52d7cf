"""Leave garbage where it is while a command decides once and then ends."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def without_collection() -> Iterator[None]:
    """Keep the garbage collector from going through all pilots: it is not worth its time, at the end neither."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
