"""The three directories of a job as it starts: made whole, and the variables that name them."""

from __future__ import annotations

import posix
import stat

from drainwise.errors import FeatureError
from drainwise.features.values import deadline_values, job_values, machine_values
from drainwise.features.write import write_directory
from drainwise.node import DIRECTORIES, with_twins
from drainwise.node.hook import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from drainwise.features.facts import HostFacts, JobFacts


def make_features(
    place: str,
    host: HostFacts,
    job: JobFacts,
    planned: int | None,
    now: int,
    status_owner: tuple[int, int] | None = None,
) -> dict[str, str]:
    """Make $MACHINEFEATURES, $JOBFEATURES and $JOBSTATUS in the directory `place`; the variables that name them.

    planned: the machine's shutdown; now: UNIX s. Containers' twins of the variables are among them. What cannot be
    made, and facts that were refused, are said in one line each and left out: a job is never stopped by them.
    status_owner: uid and gid to whom $JOBSTATUS is given, for a caller with root's rights; nobody else may be able to
    write to `place` then. A $JOBSTATUS that cannot be given away is removed: it would be of no use to the pilot.
    """
    refused = [*host.refused, *job.refused]
    if refused:
        say(f"left out of the features: {', '.join(refused)}")
    machine_deadline, job_deadline = deadline_values(planned, None, now)
    contents: dict[str, dict[str, str | None]] = {
        "MACHINEFEATURES": {**machine_values(host), **machine_deadline},
        "JOBFEATURES": {**job_values(job, host), **job_deadline},
        "JOBSTATUS": {},
    }
    variables = {}
    for name, values in contents.items():
        path = f"{place}/{DIRECTORIES[name]}"
        try:
            write_directory(path, values)
            if name == "JOBSTATUS" and status_owner is not None:
                _give(path, *status_owner)
        except FeatureError as error:
            say(str(error))
            if not _is_directory(path):
                continue
        for twin in with_twins(name):
            variables[twin] = path
    return variables


def _give(path: str, uid: int, gid: int) -> None:
    try:
        posix.chown(path, uid, gid, follow_symlinks=False)
    except OSError as error:
        posix.rmdir(path)
        raise FeatureError(f"$JOBSTATUS left out: it cannot be given to uid {uid}: {error.strerror}") from None


def _is_directory(path: str) -> bool:
    try:
        return stat.S_ISDIR(posix.stat(path, follow_symlinks=False).st_mode)
    except OSError:
        return False
