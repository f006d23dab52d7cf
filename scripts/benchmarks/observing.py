"""What a look at the payloads of 64 pilots costs a node that has 2,000 processes, in CPU time, once a minute."""

from __future__ import annotations

import json
import os
import subprocess

from benchmarks.figures import Figure
from made_up_node import PYTHON

LIMIT = 0.040
"""CPU seconds of a minute that are good enough."""
_PROGRAM = f"{os.path.dirname(os.path.abspath(__file__))}/observed_rounds.py"


def figures(library: str, runs: int) -> list[Figure]:
    """Start the processes, look, end them."""
    argv = [PYTHON, "-IS", _PROGRAM, library, str(runs)]
    answer = subprocess.run(argv, stdout=subprocess.PIPE, check=False, text=True, start_new_session=True).stdout
    median = json.loads(answer)
    rows = (("the first look", "first", None), ("a look", "later", LIMIT))
    return [
        Figure(
            f"payloads seen: {what}, 64 pilots, 2,000 processes, CPU time",
            median[name],
            median[name] / floor,
            None,
            limit,
        )
        for what, name, limit in rows
        for floor in (median["interpreter"],)
    ]
