"""The site's word to the running jobs: each is told of its deadline and of a planned shutdown, and told again.

Files that a job removes or changes are written again after a while, as a real node does with every update.
"""

from __future__ import annotations

from dataclasses import dataclass

from drainwise.errors import FeatureError
from drainwise.local.job import Job
from drainwise.local.lease import work_directory
from drainwise.local.log import Faults
from drainwise.node.tell import tell


@dataclass(frozen=True)
class _Told:
    deadline: int | None
    planned: int | None
    at: float


class Words:
    """What each run was told last. repair: seconds after which what still holds is written again."""

    def __init__(self, faults: Faults, repair: float) -> None:
        self._faults, self._repair = faults, repair
        self._told: dict[str, _Told] = {}

    def bring(self, job: Job, directory: str, planned: int | None, now: float) -> None:
        """Tell the job in the lease `directory`, if it has not been told so yet; `planned`, `now`: UNIX s."""
        told = self._told.get(job.run)
        same = told is not None and (told.deadline, told.planned) == (job.deadline, planned)
        nothing = job.deadline is None and planned is None
        if told is not None and same and (nothing or now < told.at + self._repair):
            return
        self._told[job.run] = _Told(job.deadline, planned, now)
        fault = ""
        try:
            tell(work_directory(directory), job.deadline, planned, int(now))
        except FeatureError as error:
            fault = f"cannot be told: {error}"
        self._faults.set(f"job {job.job_id}", fault)

    def forget(self, job: Job) -> None:
        """The run has ended."""
        self._told.pop(job.run, None)
        self._faults.forget(f"job {job.job_id}")
