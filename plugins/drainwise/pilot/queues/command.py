"""A queue that is a command: it runs once and prints one payload per line, as JSON, which is read as it comes.

A command can take nothing back. What was requeued, refused or read and never started is appended to `requeued.jsonl` in
the startup directory, one payload per line.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Mapping

from drainwise.common.service import Faults
from drainwise.common.typed_table import SHELL
from drainwise.facts.errors import PayloadError, UsageError
from drainwise.pilot.decide.payload import TEXT_LIMIT, Backlog, Payload, parse_payload, payload_text
from drainwise.pilot.queues.records import RECORDS, REFUSED, EndedPayload, Records, append_line
from drainwise.processes.process import kill_group
from drainwise.processes.tree import lead_group

REQUEUED_FILE = "requeued.jsonl"
COMMAND_STDERR = "payload-command.stderr"
READ_AHEAD = 1000
"""Payloads that wait here at most; then the command waits."""
BAD_LINES = 1000
"""Lines in a row that are no payloads, after which the command is not read any more."""
NAMED_LINES = 20
"""The first of these have a log line of their own, up to this number."""
_LINES_PER_LOOK = 1000
_PIECE = 65536


class CommandQueue:
    """A `PayloadQueue` on the shell command `command`. directory: the startup directory. pilot: its id.

    `pid` is the command's process, `gone(code)` is to be called when it has been reaped. Raises UsageError.
    """

    def __init__(
        self, command: str, directory: str, environment: Mapping[str, str], pilot: str, log: Callable[[str], None]
    ) -> None:
        self._directory, self._log, self._faults = directory, log, Faults(log)
        self._records = Records(f"{directory}/{RECORDS}", pilot, log)
        self._waiting, self._orders = Backlog(), dict[str, int]()
        self._before = 0
        self._claimed: set[str] = set()
        self._rest = b""
        self._lines = self._bad = 0
        self._skipping = False
        self._ended = False
        try:
            with open(f"{directory}/{COMMAND_STDERR}", "ab") as errors:
                self._process = subprocess.Popen(
                    [*SHELL, command],
                    cwd=directory,
                    env=dict(environment),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    preexec_fn=lead_group,  # noqa: PLW1509 - the pilot has one thread
                )
        except OSError as error:
            raise UsageError(f"payload command: it cannot be started in {directory}: {error.strerror}") from None
        if self._process.stdout is None:
            raise UsageError("payload command: no pipe to it")
        self._pipe = self._process.stdout.fileno()
        os.set_blocking(self._pipe, False)

    @property
    def pid(self) -> int:
        """The command's process, which is also the leader of its group."""
        return self._process.pid

    def gone(self, code: int) -> None:
        """Take in that the command has ended with that code (−N: by signal N)."""
        self._process.returncode = code
        if code and not self._ended:
            self._log(f"payload command: ended with {code}; see {COMMAND_STDERR}")

    def look(self, now: float) -> bool:
        """Read what the command has printed so far, as long as there is room for it."""
        changed = False
        lines_at_most = self._lines + _LINES_PER_LOOK
        while not self._ended and len(self._waiting) < READ_AHEAD and self._lines < lines_at_most:
            if self._split(now):
                changed = True
                continue
            try:
                piece = os.read(self._pipe, _PIECE)
            except BlockingIOError:
                break
            except OSError as error:
                self._log(f"payload command: {error.strerror}")
                piece = b""
            if not piece:
                self._ended = changed = True
                self._line(self._rest, now)
                self._rest = b""
            self._rest += piece
        return changed

    def _split(self, now: float) -> bool:
        """Take one line off what was read; whether there was one."""
        line, newline, rest = self._rest.partition(b"\n")
        if not newline:
            if len(line) > TEXT_LIMIT:
                if not self._skipping:
                    self._log(f"payload command: line {self._lines + 1} refused: longer than {TEXT_LIMIT} bytes")
                self._rest, self._skipping = b"", True
            return False
        self._rest = rest
        self._line(line, now)
        return True

    def _line(self, line: bytes, now: float) -> None:
        self._lines += 1
        if self._skipping or not line.strip():
            self._skipping = False
            return
        try:
            payload = parse_payload(line.decode(), f"payload-{self._lines}")
            if payload.name in self._orders or payload.name in self._claimed:
                raise PayloadError(f"payload {payload.name}: one of that name waits or runs already")
        except (PayloadError, UnicodeDecodeError) as error:
            self._refuse_line(str(error) if isinstance(error, PayloadError) else "expected UTF-8", now)
            return
        self._bad = 0
        self._offer(payload, self._lines)

    def _refuse_line(self, reason: str, now: float) -> None:
        self._bad += 1
        if self._bad <= NAMED_LINES:
            self._log(f"payload command: line {self._lines} refused: {reason}")
            self._records.add(REFUSED, f"line {self._lines}", now, reason=reason)
        elif self._bad == BAD_LINES:
            self._log(f"payload command: {BAD_LINES} lines in a row are no payloads; it is not read any more")
            self._ended = True

    def waiting(self) -> Backlog:
        """Return those read and not started, in the order they were printed."""
        return self._waiting

    def _offer(self, payload: Payload, order: int) -> None:
        self._orders[payload.name] = order
        self._waiting.add(payload, order)

    def _withdraw(self, payload: Payload) -> None:
        self._waiting.remove(self._orders.pop(payload.name))

    def claim(self, payload: Payload, now: float) -> bool:
        """Take it from those that wait."""
        self._withdraw(payload)
        self._claimed.add(payload.name)
        self._records.started(payload, now)
        return True

    def finished(self, ended: EndedPayload, now: float) -> None:
        """Record it."""
        self._claimed.discard(ended.payload.name)
        self._records.ended(ended, now)

    def requeue(self, payload: Payload, reason: str, seconds: float, now: float) -> None:
        """Append it to `requeued.jsonl`."""
        self._claimed.discard(payload.name)
        self._hand_back(payload)
        self._records.requeued(payload.name, reason, seconds, now)

    def unclaim(self, payload: Payload, reason: str, now: float) -> None:
        """Offer it again, before the others."""
        self._claimed.discard(payload.name)
        self._before -= 1
        self._offer(payload, self._before)
        self._records.requeued(payload.name, reason, 0, now)

    def refuse(self, payload: Payload, reason: str, now: float) -> None:
        """Append it to `requeued.jsonl`: a larger pilot may run it."""
        self._log(f"payload {payload.name} is left to others: {reason}")
        self._withdraw(payload)
        self._hand_back(payload)
        self._records.requeued(payload.name, reason, 0, now)

    def _hand_back(self, payload: Payload) -> None:
        fault = append_line(f"{self._directory}/{REQUEUED_FILE}", payload_text(payload))
        # Where it cannot be written, the log is the record: the payload must not be lost silently.
        self._faults.set(REQUEUED_FILE, fault)
        if fault:
            self._log(f"payload {payload.name} was to be requeued and could not be written down")

    def more_may_come(self) -> bool:
        """Return whether more may be printed, or is still to be read."""
        return not self._ended

    def fileno(self) -> int | None:
        """Return the command's output, as long as there is room for more payloads."""
        return None if self._ended or len(self._waiting) >= READ_AHEAD else self._pipe

    def close(self, now: float) -> None:
        """End the command and hand back all it has printed that was not started."""
        if self._process.returncode is None:
            kill_group(self.pid, signal.SIGTERM)
        last = self._read_to_end()
        self._ended = True
        for line in last:
            self._line(line, now)
        for payload in list(self._waiting):
            self._withdraw(payload)
            self._hand_back(payload)
            self._records.requeued(payload.name, "not started", 0, now)

    def _read_to_end(self) -> list[bytes]:
        """Return the lines that stand in the pipe now, not waiting for any."""
        content = self._rest
        with contextlib.suppress(OSError):
            while not self._ended and len(content) <= TEXT_LIMIT:
                piece = os.read(self._pipe, _PIECE)
                if not piece:
                    break
                content += piece
        self._rest = b""
        # A line that the command had no time to end is no payload yet.
        return content.split(b"\n")[:-1]
