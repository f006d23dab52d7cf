"""The demonstration on a terminal: one table that is drawn again and again, with the cores that came back below it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from types import TracebackType

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from local_demo.frame import GONE, ORDERED, RELEASED, SPARED, WAITS, Frame, Row
from local_demo.lines import HOW_TO_STOP
from local_demo.timeline import bar, freed_at, sparkline

_STYLES = {ORDERED: "bold yellow", GONE: "green", SPARED: "", RELEASED: "bold magenta", WAITS: "bold cyan"}
_AGENT = "the agent"
_BAR, _LINE, _EVENTS = 8, 48, 3


class Screen:
    """Draws on standard output. Use as a context manager: its end gives the cursor back."""

    def __init__(self, seed: int, speed: float) -> None:
        self._console = Console(highlight=False)
        self._live = Live(console=self._console, auto_refresh=False, vertical_overflow="crop")
        self._heading = f"drainwise: 1 s is {speed / 60:g} min of a real log (seed {seed}); wastes in core-seconds"
        self._events: deque[str] = deque(maxlen=_EVENTS)

    def __enter__(self) -> Screen:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def say(self, elapsed: float, text: str) -> None:
        """See `Display`; what the table shows anyway (indented) is left out."""
        if not text.startswith(" "):
            self._events.append(f"{elapsed:5.1f} s  {text}")

    def show(self, frame: Frame) -> None:
        """See `Display`."""
        heading = f"{self._heading}, {frame.elapsed:.0f} s"
        self._live.update(picture(frame, heading, self._events), refresh=True)


def picture(frame: Frame, heading: str, events: Iterable[str]) -> RenderableType:
    """One frame, without a line that is wider than the window; a low window loses what stands at the end."""
    return Group(
        _line(heading, "dim"),
        _line(frame.title, "bold"),
        _accounts(frame),
        _back(frame),
        _line(HOW_TO_STOP, "dim"),
        _table(frame),
        Text(),
        *(_line(event, "dim") for event in events),
    )


def _line(text: str, style: str = "") -> Text:
    return Text(text, style=style, no_wrap=True, overflow="ellipsis")


def _accounts(frame: Frame) -> Text:
    """A bar of all cores for each account."""
    text = Text(no_wrap=True, overflow="ellipsis")
    for one in frame.accounts:
        over = one.cores_in_use > one.cores_owed
        text.append(f"{one.name} ", "bold")
        text.append(bar(one.cores_in_use, frame.cores, 16), "yellow" if over else "cyan")
        text.append(f" {one.cores_in_use:.0f} cores, owed {one.cores_owed:.0f}")
        text.append(f", waits for {one.cores_wanted:.0f}   " if one.cores_wanted else "   ")
    return text


def _table(frame: Frame) -> RenderableType:
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for heading, numbers in (
        ("pilot", False),
        ("user", False),
        ("cores", True),
        ("used", False),
        ("remaining", True),
        ("draining\nwaste", True),
        ("kill\nwaste", True),
        (_AGENT, False),
    ):
        # Only what the agent says may be narrowed; its cells then end with an ellipsis.
        free = heading == _AGENT
        table.add_column(heading, justify="right" if numbers else "left", no_wrap=not free, vertical="bottom")
    for row in frame.rows:
        table.add_row(*_cells(row), _line(row.word), style=_STYLES.get(row.mood, ""))
    return table


def _cells(row: Row) -> tuple[str, ...]:
    used = "" if row.used is None else f"{bar(row.used, row.cores, _BAR)} {row.used:.0f}/{row.cores}"
    left = "" if row.left is None else f"{row.left} s"
    return row.name, row.user, str(row.cores), used, left, _figure(row.drain), _figure(row.kill)


def _figure(value: int | None) -> str:
    return "" if value is None else str(value)


def _back(frame: Frame) -> Text:
    """The cores that are back, against time."""
    if frame.since is None:
        return _line("cores back: no order was given yet", "dim")
    line = sparkline(frame.freed, frame.needed, frame.since, frame.horizon, _LINE)
    back = freed_at(frame.freed, frame.since)
    text = Text("cores back ", "bold", no_wrap=True, overflow="ellipsis")
    text.append(f"▕{line}▏", "green")
    text.append(f" {back} of {frame.needed}, {min(frame.since, frame.horizon):.0f} s of {frame.horizon:.0f} s grace")
    return text
