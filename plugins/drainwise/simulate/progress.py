"""How far a long run is, on a terminal: a bar with the time that is left."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from drainwise.simulate.comparison import Watch


@contextlib.contextmanager
def bar(text: str) -> Iterator[Watch]:
    """What is told how much is done, and draws it on standard error. The bar is wiped out at the end."""
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.percentage:.0f} %"),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(text, total=1.0)
        yield lambda share: progress.update(task, completed=share)
