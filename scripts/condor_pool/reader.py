"""A process that stays while a pool runs and reads its collector and schedd for the tests: a look costs milliseconds,
where a program of HTCondor's would be started for each.

Run as a program it answers one line of JSON, `[kind, constraint, attributes]`, by another: `{"ads": […]}` or
`{"error": "…"}`.
"""

from __future__ import annotations

import json
import select
import subprocess
import sys
from collections.abc import Mapping, Sequence

from condor_pool.ads import Ad
from condor_pool.errors import CommandError

JOBS, SLOTS = "jobs", "slots"
_SECONDS = 30.0
_END_SECONDS = 5.0


class Reader:
    """The process, started when it is asked first and anew when it did not answer.

    command: what runs this file as a program in the pool's network. environment: its own.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self._command, self._environment = command, environment
        self._process: subprocess.Popen[bytes] | None = None

    def ads(self, kind: str, constraint: str, attributes: Sequence[str]) -> list[Ad]:
        """Ads of jobs or slots, with all attributes unless some are named.

        Raises CommandError if the daemon refuses, or does not answer twice within half a minute.
        """
        try:
            return self._ask(kind, constraint, attributes)
        except CommandError:  # a daemon that was started anew knows nothing of the session that the process has kept
            self.end()
            return self._ask(kind, constraint, attributes)

    def _ask(self, kind: str, constraint: str, attributes: Sequence[str]) -> list[Ad]:
        process = self._running()
        if process.stdin is None or process.stdout is None:
            raise CommandError("the reader of the pool has no pipes")
        try:
            process.stdin.write(json.dumps([kind, constraint, list(attributes)]).encode() + b"\n")
            process.stdin.flush()
            readable, _, _ = select.select([process.stdout], [], [], _SECONDS)
            line = process.stdout.readline() if readable else b""
        except BrokenPipeError:
            line = b""
        if not line:
            self.end()
            raise CommandError(f"the {kind} of the pool could not be read within {_SECONDS:g} s")
        answer = json.loads(line)
        if "error" in answer:
            raise CommandError(f"the {kind} of the pool could not be read: {answer['error']}")
        return [Ad(ad) for ad in answer["ads"]]

    def end(self) -> None:
        """End the process. Harmless when there is none."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate(timeout=_END_SECONDS)

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self.end()
            self._process = subprocess.Popen(
                self._command,
                env=dict(self._environment),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        return self._process


def main() -> None:
    """Answer until standard input ends."""
    import classad2  # noqa: PLC0415 - the tests import this file, and need it in no process but this one
    import htcondor2  # noqa: PLC0415

    def query(kind: str, constraint: str, attributes: list[str]) -> list[classad2.ClassAd]:
        collector = htcondor2.Collector()
        if kind == SLOTS:
            return list(collector.query(htcondor2.AdType.Startd, constraint, attributes))
        [place] = collector.locateAll(htcondor2.DaemonType.Schedd)
        return list(htcondor2.Schedd(place).query(constraint, attributes))

    for line in sys.stdin:
        kind, constraint, attributes = json.loads(line)
        wanted = {name.lower() for name in attributes}
        try:
            ads = [json.loads(ad.printJson()) for ad in query(kind, constraint, attributes)]
            answer: dict[str, object] = {
                "ads": [
                    {name: value for name, value in ad.items() if value is not None and _is_wanted(name, wanted)}
                    for ad in ads
                ]
            }
        except Exception as fault:
            answer = {"error": f"{type(fault).__name__}: {fault}"}
        print(json.dumps(answer), flush=True)


def _is_wanted(name: str, wanted: set[str]) -> bool:
    return not wanted or name.lower() in wanted


if __name__ == "__main__":
    main()
