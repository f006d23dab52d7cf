"""The three directories of a job as it starts: made whole, and the variables that name them."""

from __future__ import annotations

import posix
import stat

from drainwise.errors import FeatureError
from drainwise.features.values import deadline_values, job_values, machine_values
from drainwise.features.write import write_directory
from drainwise.node import JOB_FEATURES, JOB_STATUS, MACHINE_FEATURES
from drainwise.node.hook import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from drainwise.features.facts import HostFacts, JobFacts

CONTAINER_PREFIXES = ("", "APPTAINERENV_", "SINGULARITYENV_")


def make_features(place: str, host: HostFacts, job: JobFacts, planned: int | None, now: int) -> dict[str, str]:
    """Make $MACHINEFEATURES, $JOBFEATURES and $JOBSTATUS in the directory `place`; the variables that name them.

    planned: the machine's shutdown; now: UNIX s. Containers' twins of the variables are among them. What cannot be
    made, and facts that were refused, are said in one line each and left out: a job is never stopped by them.
    """
    refused = [*host.refused, *job.refused]
    if refused:
        say(f"left out of the features: {', '.join(refused)}")
    machine_deadline, job_deadline = deadline_values(planned, None, now)
    contents: dict[str, tuple[str, dict[str, str | None]]] = {
        "MACHINEFEATURES": (MACHINE_FEATURES, {**machine_values(host), **machine_deadline}),
        "JOBFEATURES": (JOB_FEATURES, {**job_values(job, host), **job_deadline}),
        "JOBSTATUS": (JOB_STATUS, {}),
    }
    variables = {}
    for name, (directory, values) in contents.items():
        path = f"{place}/{directory}"
        try:
            write_directory(path, values)
        except FeatureError as error:
            say(str(error))
            if not _is_directory(path):
                continue
        for prefix in CONTAINER_PREFIXES:
            variables[prefix + name] = path
    return variables


def _is_directory(path: str) -> bool:
    try:
        return stat.S_ISDIR(posix.stat(path, follow_symlinks=False).st_mode)
    except OSError:
        return False
