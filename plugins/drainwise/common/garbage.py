"""Keep Python's garbage collector from going through very many new values, all in use, again and again."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_collection(*, to_stay: bool = False) -> Iterator[None]:
    """Suspend the garbage collector, where it is not suspended already.

    to_stay: what is there at the end is passed over from then on.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if to_stay:
            gc.freeze()
        if collects:
            gc.enable()
