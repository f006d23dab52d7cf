#!/usr/bin/python3
"""What alice submits: the reference pilot with a queue of sleeping payloads, in the job's own directory.

usage: pilot_job.py [--ignore-orders] CORESxSECONDS …

Each argument is a payload. One of less than a minute is there again and again: when it has ended the next of its kind
can start. With --ignore-orders the pilot reports like any other but takes no notice of anything, SIGTERM included.
"""

from __future__ import annotations

import json
import os
import sys

LIBRARY = "/usr/share/drainwise"
ROUNDS = 60
SHORT = 60  # seconds
SLACK = 60  # seconds a payload may run past what is expected of it

OPTIONS = ["--queue", "queue", "--poll", "0.5", "--heartbeat", "20", "--margin", "5", "--idle-limit", "5"]
PROGRAM = f"import sys; sys.path.append({LIBRARY!r}); from drainwise.cli.main import main; sys.exit(main())"


def fill_queue(mixes: list[str]) -> None:
    """Write the payloads; those of the first round come first."""
    os.mkdir("queue")
    for kind, mix in enumerate(mixes):
        cores, seconds = map(int, mix.split("x"))
        for turn in range(ROUNDS if seconds < SHORT else 1):
            payload = {
                "cores": cores,
                "command": ["/bin/sleep", str(seconds)],
                "expected": seconds,
                "maximum": seconds + SLACK,
                "priority": -turn,
            }
            with open(f"queue/{kind}-{turn}.json", "w", encoding="ascii") as stream:
                json.dump(payload, stream)


def main(arguments: list[str]) -> None:
    """Become the pilot."""
    fill_queue([argument for argument in arguments if argument != "--ignore-orders"])
    ignoring = ["--ignore-orders"] if "--ignore-orders" in arguments else []
    os.execv(  # noqa: S606 - no shell is wanted
        sys.executable, [sys.executable, "-I", "-S", "-c", PROGRAM, "pilot", "run", *OPTIONS, *ignoring]
    )


if __name__ == "__main__":
    main(sys.argv[1:])
