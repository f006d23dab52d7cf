"""A made-up simulation for validations: events that really take CPU, memory, threads and disk, as it is told.

It behaves like a program for which a request is made: it starts up, processes events in threads, drops what its filter
does not want, writes the others to a file, and reports. Standard library alone; Python 3.9.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import threading
import time
from collections.abc import Iterator, Sequence

_PAGE = 4096
_BLOCK = b"\0" * 1000


def burn(seconds: float) -> None:
    """Use so much CPU time of this thread, without the interpreter's lock, so that threads run beside each other."""
    ends = time.thread_time() + seconds
    while time.thread_time() < ends:
        hashlib.pbkdf2_hmac("sha256", _BLOCK, b"salt", 200)


def passes(event: int, efficiency: float) -> bool:
    """Whether the filter lets an event through: of any first N events round(N × efficiency), evenly."""
    return int((event + 1) * efficiency + 1e-9) > int(event * efficiency + 1e-9)


class Work:
    """The events of one run: each thread takes the next one."""

    def __init__(self, args: argparse.Namespace) -> None:
        self._args, self._lock = args, threading.Lock()
        self._events = iter(range(args.events))
        self.written = 0

    def _mine(self) -> Iterator[int]:
        while True:
            with self._lock:
                event = next(self._events, None)
            if event is None:
                return
            yield event

    def thread(self) -> None:
        """Process events until none is left."""
        for event in self._mine():
            ends = time.monotonic() + self._args.wall
            burn(self._args.cpu)
            time.sleep(max(0.0, ends - time.monotonic()))
            if passes(event, self._args.filter):
                with self._lock, open("events.out", "ab") as stream:
                    stream.write(_BLOCK * self._args.size)
                    self.written += 1


def arguments(words: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="a made-up simulation")
    parser.add_argument("--events", type=int, default=20)
    parser.add_argument("--cores", type=int, default=1)
    parser.add_argument("--most-threads", type=int, default=1000, help="it does not scale beyond")
    parser.add_argument("--cpu", type=float, default=0.02, help="CPU seconds of an event")
    parser.add_argument("--wall", type=float, default=0.0, help="an event takes at least so many seconds")
    parser.add_argument("--memory", type=int, default=20, help="MB, and a tenth of it for each thread")
    parser.add_argument("--size", type=int, default=10, help="kB of an event that is written")
    parser.add_argument("--filter", type=float, default=1.0, help="the part of the events that is written")
    parser.add_argument("--code", type=int, default=0, help="end with this code")
    return parser.parse_args(words)


def main(words: Sequence[str] | None = None) -> int:
    """Process the events and report; the exit code."""
    args = arguments(words)
    threads = min(args.cores, args.most_threads)
    held = bytearray(int(args.memory * 10**6 * (1 + 0.1 * threads)))
    held[::_PAGE] = b"x" * len(held[::_PAGE])
    work, began = Work(args), time.monotonic()
    running = [threading.Thread(target=work.thread) for _ in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    size = os.path.getsize("events.out") if work.written else 0
    report = {"written": work.written, "output_bytes": size, "event_seconds": time.monotonic() - began}
    with open(os.environ["DRAINWISE_VALIDATION_REPORT"], "w", encoding="ascii") as stream:
        json.dump(report, stream)
    if args.code:
        sys.stderr.write(f"the made-up simulation ends with {args.code}, as it was told\n")
    return int(args.code)


if __name__ == "__main__":
    sys.exit(main())
