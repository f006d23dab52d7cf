"""Chromium without a window, driven by its own protocol over two pipes: pages opened, looked at, drawn and printed."""

from __future__ import annotations

import base64
import json
import os
import select
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PROGRAM = "chromium"
_FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
    " --disable-component-update --disable-sync --disable-dev-shm-usage --remote-debugging-pipe"
)
_SECONDS = 30.0
A4_LANDSCAPE = (11.69, 8.27)
"""Inches."""


class Browser:
    """One browser with one page, which is as wide as `look` says. `asked` are the URLs that its page fetched."""

    def __init__(self, profile: Path) -> None:
        their_in, self._out = os.pipe()
        self._in, their_out = os.pipe()
        # dash knows no descriptor of two digits.
        command = f"exec {PROGRAM} {_FLAGS} --user-data-dir={profile} about:blank 3<&{their_in} 4>&{their_out}"
        self._log = (profile.parent / "browser.log").open("wb")
        self._process = subprocess.Popen(
            ["/bin/bash", "-c", command], pass_fds=(their_in, their_out), stdout=self._log, stderr=self._log
        )
        os.close(their_in)
        os.close(their_out)
        self._number, self._heard, self._session = 0, b"", ""
        self.asked: list[str] = []
        self.logged: list[str] = []

    def begin(self) -> None:
        """Wait until it answers, with an empty page."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Log", "Runtime"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: object) -> dict[str, Any]:
        """Call a method of the protocol and return its result."""
        self._number += 1
        message: dict[str, object] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            found = self._next()
            if found.get("id") == self._number:
                assert "error" not in found, f"{method}: {found['error']}"
                result: dict[str, Any] = found["result"]
                return result

    def open(self, url: str, width: int = 1280, dark: bool = False, media: str = "screen") -> None:
        """Open a page in a window of so many pixels, until all of it is there."""
        self.look(width, dark, media)
        self.asked, self.logged = [], []
        self.call("Page.navigate", url=url)
        while self._next().get("method") != "Page.loadEventFired":
            pass

    def look(self, width: int, dark: bool = False, media: str = "screen") -> None:
        """Change the window's width, its colours, and what it shows the page for: `screen` or `print`."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", media=media, features=[scheme])

    def value(self, expression: str) -> Any:
        """Return what JavaScript makes of an expression in the page, which need not allow scripts."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def draw(self, file: Path) -> None:
        """Write the whole page there as PNG."""
        found = self.call("Page.captureScreenshot", captureBeyondViewport=True, format="png")
        file.write_bytes(base64.b64decode(found["data"]))

    def print(self, file: Path, height: float | None = None) -> None:
        """Print the page as the browser's own dialogue does, and write the PDF there.

        height: of the paper, in inches, which is as wide as A4 is long; None: the paper that the page itself wants.
        """
        self.call("Emulation.setEmulatedMedia", media="", features=[])
        size: dict[str, object] = {"preferCSSPageSize": height is None}
        size |= {} if height is None else {"paperWidth": A4_LANDSCAPE[0], "paperHeight": height}
        found = self.call("Page.printToPDF", printBackground=False, **size)
        file.write_bytes(base64.b64decode(found["data"]))

    def close(self) -> None:
        """End it."""
        os.close(self._out)
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._in)
        self._log.close()

    def _next(self) -> dict[str, Any]:
        end = time.monotonic() + _SECONDS
        while b"\0" not in self._heard:
            ready, _, _ = select.select([self._in], [], [], max(0.0, end - time.monotonic()))
            assert ready, "the browser does not answer"
            piece = os.read(self._in, 1 << 20)
            assert piece, f"the browser has ended: {Path(self._log.name).read_text()[-2000:]}"
            self._heard += piece
        one, _, self._heard = self._heard.partition(b"\0")
        message: dict[str, Any] = json.loads(one)
        if message.get("method") == "Network.requestWillBeSent":
            self.asked.append(message["params"]["request"]["url"])
        if message.get("method") == "Log.entryAdded":
            self.logged.append(message["params"]["entry"]["text"])
        return message


@contextmanager
def browser(place: Path) -> Iterator[Browser]:
    """Give a browser whose profile lies below `place`."""
    (place / "profile").mkdir(parents=True)
    made = Browser(place / "profile")
    try:
        made.begin()
        yield made
    finally:
        made.close()
