"""A reference pilot as a real process with a queue and directories of its own, for tests."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence

PLUGINS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "plugins")
PROGRAM = f"import sys; sys.path.append({PLUGINS!r}); from drainwise.cli.main import main; sys.exit(main())"
PATIENCE = 60.0
"""Seconds to wait for anything; none of it takes a tenth of that, but a busy machine may stall."""
QUICK = {"--poll": 0.1, "--idle-limit": 0.3, "--margin": 0.5, "--kill-wait": 0.3}
"""Times that fit payloads of a second."""


class PilotProcess:
    """`drainwise pilot run` below the directory `base`: `queue/`, `start/`, features and `$JOBSTATUS`.

    Use as a context: whatever still runs at its end is killed. options: beside those of QUICK, None takes one away.
    """

    def __init__(
        self,
        base: str,
        cores: int = 4,
        seconds: float = 60,
        python: Sequence[str] = (sys.executable, "-I", "-S"),
        directory: str | None = None,
        **options: object,
    ) -> None:
        self.base, self.queue, self.start = base, f"{base}/queue", f"{base}/start"
        self.job_features, self.machine_features = f"{base}/jobfeatures", f"{base}/machinefeatures"
        self.jobstatus = f"{base}/jobstatus"
        for place in (self.queue, self.start, self.job_features, self.machine_features, self.jobstatus):
            os.makedirs(place, exist_ok=True)
        chosen: dict[str, object] = {"--cores": cores, "--seconds": seconds, "--queue": self.queue, **QUICK}
        chosen["--directory"] = directory or self.start
        chosen.update({f"--{name.replace('_', '-')}": value for name, value in options.items()})
        words = [str(word) for pair in chosen.items() if pair[1] is not None for word in pair if word is not True]
        self._command = [*python, "-c", PROGRAM, "pilot", "run", *words]
        self.lines: list[str] = []
        self.code: int | None = None

    def __enter__(self) -> PilotProcess:
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "JOBSTATUS": self.jobstatus}
        environment.update({"JOBFEATURES": self.job_features, "MACHINEFEATURES": self.machine_features})
        self.process = subprocess.Popen(
            self._command,
            cwd=self.base,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        return self

    def __exit__(self, *_: object) -> None:
        for pid in self.session():
            os.kill(pid, signal.SIGKILL)
        self.process.kill()
        self.process.wait()
        self._reader.join(PATIENCE)
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()

    def _read(self) -> None:
        if self.process.stderr is not None:
            self.lines.extend(line.rstrip("\n") for line in iter(self.process.stderr.readline, ""))

    @property
    def pid(self) -> int:
        """The pilot's process."""
        return self.process.pid

    def session(self) -> list[int]:
        """The processes of the pilot's session: its payloads, unless they left it, and itself."""
        found = []
        for name in os.listdir("/proc"):
            try:
                if name.isdecimal() and os.getsid(int(name)) == self.pid:
                    found.append(int(name))
            except OSError:
                continue
        return found

    def said(self, text: str) -> list[str]:
        """The log lines with `text` in them."""
        return [line for line in list(self.lines) if text in line]

    def end(self) -> str:
        """Wait until the pilot has ended by itself; the line it printed."""
        self.code = self.process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        return self.process.stdout.read() if self.process.stdout is not None else ""

    def payloads(self, folder: str = "") -> set[str]:
        """The payloads whose files are in that folder of the queue."""
        return file_stems(f"{self.queue}/{folder}")

    def claimed(self) -> set[str]:
        """The payloads that pilots have claimed."""
        running = f"{self.queue}/running"
        pilots = os.listdir(running) if os.path.isdir(running) else []
        return {name for pilot in pilots for name in file_stems(f"{running}/{pilot}")}

    def records(self, event: str = "") -> list[dict[str, object]]:
        """The queue's records, or those of one event."""
        return [each for each in json_lines(f"{self.queue}/records.jsonl") if event in {"", each["event"]}]

    def report(self) -> dict[str, object]:
        """`pilot-report.json`."""
        with open(f"{self.start}/pilot-report.json", encoding="ascii") as stream:
            found: dict[str, object] = json.load(stream)
        return found

    def ad(self) -> dict[str, str]:
        """`.pilot.ad`; empty as long as there is none."""
        try:
            with open(f"{self.start}/.pilot.ad", encoding="ascii") as stream:
                pairs = (line.split(" = ") for line in stream.read().splitlines())
                return {name: value for name, value in pairs}  # noqa: C416 - mypy knows a pair only when it is taken apart
        except FileNotFoundError:
            return {}

    def status(self) -> dict[str, str]:
        """The files of `$JOBSTATUS`."""
        found = {}
        for name in os.listdir(self.jobstatus):
            with open(f"{self.jobstatus}/{name}", encoding="ascii") as stream:
                found[name] = stream.read().strip()
        return found


def put(queue: str, name: str, command: object, maximum: float, **keys: object) -> None:
    """Put a payload into a queue, whole at once."""
    content = json.dumps({"command": command, "maximum": maximum, **keys})
    write(f"{queue}/{name}.json", content)


def write(path: str, content: str) -> None:
    """Write a file under a temporary name, then give it its own."""
    place, name = os.path.split(path)
    with open(f"{place}/.{name}.new", "w", encoding="ascii") as stream:
        stream.write(content)
    os.rename(f"{place}/.{name}.new", path)


def file_stems(place: str) -> set[str]:
    """The names of the .json files in a directory, without that."""
    names = os.listdir(place) if os.path.isdir(place) else []
    return {name[:-5] for name in names if name.endswith(".json") and not name.startswith(".")}


def json_lines(path: str) -> list[dict[str, object]]:
    """The objects in a file of JSON lines; none when there is no file."""
    try:
        with open(path, encoding="ascii") as stream:
            return [json.loads(line) for line in stream.read().splitlines()]
    except FileNotFoundError:
        return []
