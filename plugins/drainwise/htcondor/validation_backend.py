"""HTCondor as the `Backend` of a validation: each run a job of the schedd, in a directory beside the state file.

The runner goes along as one file, so that a node needs Python 3.9 and nothing of ours.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from drainwise.errors import UsageError
from drainwise.estimate.validation_backend import ENDED, REPORT, RUNNING, VANISHED, WAITING, Run, RunState
from drainwise.estimate.validation_left import report_in, said_in
from drainwise.estimate.validation_memory import mebibytes
from drainwise.estimate.validation_start import LEEWAY, NODE_PYTHON, RUN, RUNNER, RUNNER_WORDS, prepare
from drainwise.htcondor.pool_ads import Ad
from drainwise.htcondor.time_limit import within

SECONDS = 60.0  # for one question; a busy schedd takes its time, and a history is read from a file

_KEPT = 86400  # seconds for which a run that has ended stays in the queue, where it is found at once
_REMOVED, _COMPLETED, _HELD, _IDLE = 3, 4, 5, 1  # of JobStatus; whatever else runs, or brings its files
_HANDLE = re.compile(r"([0-9]{1,9})\.([0-9]{1,9})")
_ACCOUNT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,199}")

T = TypeVar("T")


class HTCondorValidationBackend:
    """Runs as jobs of the schedd that HTCondor's configuration names, with the credentials that it names.

    directory: what lies below it is ours, a directory for each run. account: an accounting group, or none.
    """

    first_pause = 1.0

    def __init__(self, directory: str, account: str | None, seconds: float = SECONDS) -> None:
        if account is not None and not _ACCOUNT.fullmatch(account):
            raise UsageError(f"--account {account!r}: expected an accounting group such as group_physics.production")
        self._directory, self._account, self._seconds = os.path.abspath(directory), account, seconds
        self._sizes: list[tuple[int, int]] | None = None

    def doubt(self, counts: Sequence[int]) -> str:  # noqa: ARG002 - slots have the cores that they are said to have
        """See `Backend`."""
        return ""

    def refusal(self, run: Run) -> str:
        """See `Backend`: no slot of the pool has so many cores and so much memory, whoever may use it."""
        if self._sizes is None:
            self._sizes = within(self._seconds, _ask_sizes, "the collector")
        if not self._sizes:
            return "the pool has no slots now"
        memory = mebibytes(run.memory)
        if any(cores >= run.cores and there >= memory for cores, there in self._sizes):
            return ""
        cores, there = max(self._sizes)
        return f"no slot has {run.cores} cores and {memory} MiB; the largest has {cores} and {there} MiB"

    def find(self, name: str) -> str | None:
        """See `Backend`."""
        found = self._asked(partial(_find, name))
        return None if found is None else f"{found[0]}.{found[1]}"

    def start(self, run: Run) -> str:
        """See `Backend`."""
        work = self._work(run.name)
        prepare(work, run)
        cluster, proc = self._asked(partial(_submit, work, description(run, self._account), run.name))
        return f"{cluster}.{proc}"

    def poll(self, handle: str, name: str) -> RunState:
        """See `Backend`."""
        numbers = _HANDLE.fullmatch(handle)
        ad = self._asked(partial(_ask_job, int(numbers[1]), int(numbers[2]), name)) if numbers else None
        if ad is None:
            return RunState(VANISHED, note=f"job {handle} is neither in the queue nor in the history")
        status = ad.get("JobStatus")
        if status == _IDLE:
            return RunState(WAITING, note=_text(ad, "LastRejMatchReason"))
        if status not in {_COMPLETED, _HELD, _REMOVED}:
            return RunState(RUNNING)
        work = self._work(name)
        code, why = how_it_ended(ad)
        return RunState(ENDED, code, why, report_in(work), said_in(f"{work}/err"))

    def kill(self, handle: str, name: str) -> None:
        """See `Backend`."""
        numbers = _HANDLE.fullmatch(handle)
        if numbers:
            self._asked(partial(_remove, int(numbers[1]), int(numbers[2]), name))

    def _work(self, name: str) -> str:
        return f"{self._directory}/{name}"

    def _asked(self, call: Callable[[], T]) -> T:
        return within(self._seconds, call, "the schedd")


def description(run: Run, account: str | None) -> dict[str, str]:
    """The submit description of a run, in the directory of the run."""
    words = {
        "executable": NODE_PYTHON,
        "transfer_executable": "False",
        "arguments": " ".join(RUNNER_WORDS),
        "batch_name": run.name,
        "request_cpus": str(run.cores),
        "request_memory": str(mebibytes(run.memory)),
        # The runner keeps the limit itself; HTCondor looks from time to time.
        "allowed_execute_duration": str(run.wall_limit + LEEWAY),
        "output": "out",
        "error": "err",
        "log": "log",
        "should_transfer_files": "YES",
        "when_to_transfer_output": "ON_EXIT",
        # The empty report goes along: what is to come back is there, also when the runner was killed.
        "transfer_input_files": f"{RUNNER}, {RUN}, {REPORT}",
        "transfer_output_files": REPORT,
        "leave_in_queue": f"JobStatus == {_COMPLETED} && time() - CompletionDate < {_KEPT}",
    }
    return words if account is None else {**words, "accounting_group": account}


def how_it_ended(ad: Ad) -> tuple[int | None, str]:
    """The exit code of a job that is over, and why it has none, or ended otherwise than by itself."""
    if ad.get("JobStatus") == _HELD:
        return None, f"held: {_text(ad, 'HoldReason') or 'nobody says why'}"
    if ad.get("JobStatus") == _REMOVED:
        return None, f"removed: {_text(ad, 'RemoveReason') or 'nobody says why'}"
    code = ad.get("ExitCode")
    if ad.get("ExitBySignal") is True or not isinstance(code, int):
        return None, f"ended by signal {ad.get('ExitSignal', 'of unknown number')}"
    return code, ""


def _text(ad: Ad, name: str) -> str:
    """A text of an ad on one line: a user's job may have written it."""
    found = ad.get(name)
    text = " ".join(found.split()) if isinstance(found, str) else ""
    return "".join(letter for letter in text if letter.isprintable())[:300]


# The bindings are imported in the child that asks, see `pool`.


def _ask_sizes() -> list[tuple[int, int]]:
    from drainwise.htcondor.validation_jobs import slot_sizes  # noqa: PLC0415

    return slot_sizes()


def _find(name: str) -> tuple[int, int] | None:
    from drainwise.htcondor.validation_jobs import find_job  # noqa: PLC0415

    return find_job(name)


def _submit(work: str, words: dict[str, str], name: str) -> tuple[int, int]:
    from drainwise.htcondor.validation_jobs import submit_job  # noqa: PLC0415

    return submit_job(work, words, name)


def _ask_job(cluster: int, proc: int, name: str) -> Ad | None:
    from drainwise.htcondor.validation_jobs import job_ad  # noqa: PLC0415

    return job_ad(cluster, proc, name)


def _remove(cluster: int, proc: int, name: str) -> None:
    from drainwise.htcondor.validation_jobs import remove_job  # noqa: PLC0415

    remove_job(cluster, proc, name)
