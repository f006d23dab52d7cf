"""What a look at the payloads of 64 pilots costs a node that has 2,000 processes, in CPU time, once a minute."""

from __future__ import annotations

import json
import os
import subprocess

from benchmarks.figures import Figure
from drainwise.node.payloads.observer import next_look
from made_up_node import PYTHON

LIMIT = 0.040
"""CPU seconds of a minute that are good enough."""
_PROGRAM = f"{os.path.dirname(os.path.abspath(__file__))}/observed_rounds.py"


def figures(library: str, runs: int) -> list[Figure]:
    """Start the processes, look, end them."""
    argv = [PYTHON, "-IS", _PROGRAM, library, str(runs)]
    answer = subprocess.run(argv, stdout=subprocess.PIPE, check=False, text=True, start_new_session=True).stdout
    median = json.loads(answer)
    floor, what = median["interpreter"], "64 pilots, 2,000 processes, CPU time"
    of_a_minute = median["later"] * 60 / max(60, next_look(0, median["later"]))
    return [
        Figure(f"payloads seen: the first look, {what}", median["first"], median["first"] / floor, None),
        Figure(f"payloads seen: a look, {what}", median["later"], median["later"] / floor, None),
        Figure(
            f"payloads seen: as often as is looked, {what} of a minute", of_a_minute, of_a_minute / floor, None, LIMIT
        ),
    ]
