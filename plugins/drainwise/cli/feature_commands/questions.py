"""`drainwise features left | ran | rest | shutdown | threads | slots | disk | memory`: what a job asks, for shells.

Each prints one number and nothing else. Where the site does not say, nothing is printed, a line on standard error says
why, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

from drainwise.cli.feature_commands.places import add_place_options, readable
from drainwise.features import questions
from drainwise.features.facts import JOB, MACHINE

Actions = argparse._SubParsersAction  # noqa: SLF001 - argparse has no public name for it


def _left(args: argparse.Namespace) -> int:
    return questions.time_left(readable(args, MACHINE), readable(args, JOB), int(time.time()))


def _ran(args: argparse.Namespace) -> int:
    return questions.time_since_start(readable(args, JOB), int(time.time()))


def _rest(args: argparse.Namespace) -> int:
    work: float = args.work
    return round(work / questions.power(readable(args, JOB)))


def _shutdown(args: argparse.Namespace) -> int:
    return questions.planned_shutdown_time(readable(args, MACHINE), readable(args, JOB), int(time.time()))


def _threads(args: argparse.Namespace) -> int:
    return questions.known(readable(args, JOB), "allocated_cpu")


def _slots(args: argparse.Namespace) -> int:
    return questions.slots(readable(args, MACHINE), readable(args, JOB))


def _disk(args: argparse.Namespace) -> int:
    return questions.known(readable(args, JOB), "scratch_limit_bytes")


def _memory(args: argparse.Namespace) -> int:
    return questions.known(readable(args, JOB), "max_rss_bytes")


QUESTIONS: dict[str, tuple[Callable[[argparse.Namespace], int], str]] = {
    "left": (_left, "seconds that this job may still run, by its limit and all planned shutdowns"),
    "ran": (_ran, "seconds since the batch system started this job"),
    "rest": (_rest, "seconds that work of --work HS06 seconds takes on this job's cores"),
    "shutdown": (_shutdown, "when this job must be gone or its host shuts down, in UNIX seconds"),
    "threads": (_threads, "threads that this job may start: its cores"),
    "slots": (_slots, "job slots of the host that this job holds, by its share of the cores"),
    "disk": (_disk, "bytes of scratch space that this job may use"),
    "memory": (_memory, "bytes of memory that this job may use"),
}
"""Use cases 1 to 8 of the draft, in its order."""


def add_questions(actions: Actions[argparse.ArgumentParser], work: Callable[[str], float]) -> None:
    """Add a sub-command for each question; `work` reads an amount of it."""
    for name, (_, text) in QUESTIONS.items():
        action = actions.add_parser(name, help=text, description=f"Print the {text}.")
        add_place_options(action)
        if name == "rest":
            action.add_argument("--work", type=work, metavar="S", required=True, help="work left, HS06 s")


def answer(args: argparse.Namespace) -> int:
    """Print the answer to the chosen question. Raises FeatureError where the site does not say."""
    print(QUESTIONS[args.action][0](args))
    return 0
