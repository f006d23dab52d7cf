"""The three directories of a job as it starts: made whole, and the variables that name them."""

from __future__ import annotations

import _stat as stat  # `stat` itself would be one more module for a hook to load
import posix

from drainwise.facts.errors import FeatureError
from drainwise.features.facts import HostFacts, JobFacts, deadline_values, job_values, machine_values, planned_in_lease
from drainwise.features.write import write_directory
from drainwise.node import DIRECTORIES, with_twins
from drainwise.node.hook import say, status_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from drainwise.node.settings import NodeSettings


def host_facts(
    settings: NodeSettings, total: int | None, physical: int | None, logical: int | None, cores: int | None = None
) -> HostFacts:
    """Return the facts of a host of `total` cores for jobs: of `physical` cores with `logical` CPUs (0: as many).

    A total that the `cores` of the job at hand contradict is left out. Pure.
    """
    if total is not None and cores is not None and cores > total:
        total = None
    return HostFacts(
        total_cpu=total,
        jobslots=settings.job_slots(total),
        phys_cores=physical,
        log_cores=logical,
        hs06=settings.decimal("hs06"),
        hs23=settings.decimal("hs23"),
        shutdown_command=settings.text("shutdown_command"),
        grace_secs=settings.whole("grace_secs"),
    )


def job_facts(
    settings: NodeSettings,
    job: str | None,
    cores: int | None,
    started: int,
    limits: Iterable[int | None],
    memory: int | None,
    disks: Iterable[int | None] = (),
    swap: int | None = None,
) -> JobFacts:
    """Return the facts of a job: its cores, the tightest limit on its run time, its memory in bytes, its scratch.

    started: UNIX s. limits: the job's own limits on its run time, s; the site's is added. The CPU limit is the site's
    per-core limit, else what the run time limit lets all cores use. disks: what bounds its scratch, bytes: what the
    batch system gave it, the whole area; the site's limit is added, and the smallest counts. swap: what there is,
    bytes, where the site states no limit. Pure.
    """
    wall = min((limit for limit in (*limits, settings.whole("wall_limit_secs")) if limit), default=None)
    swap_limit = settings.whole("max_swap_bytes")
    per_core = settings.whole("cpu_limit_secs_per_core") or wall
    return JobFacts(
        allocated_cpu=cores,
        jobstart_secs=started,
        job_id=job,
        wall_limit_secs=wall,
        cpu_limit_secs=per_core * cores if per_core and cores else None,
        cpufactor_lrms=settings.decimal("cpufactor_lrms"),
        max_rss_bytes=memory,
        max_swap_bytes=swap if swap_limit is None else swap_limit,
        scratch_limit_bytes=min(
            (disk for disk in (*disks, settings.whole("scratch_limit_bytes")) if disk), default=None
        ),
        grace_secs_job=settings.whole("grace_secs_job"),
    )


def make_features(
    place: str,
    host: HostFacts,
    job: JobFacts,
    planned: int | None,
    now: int,
    status_owner: tuple[int, int] | None = None,
    shown_later: int = 0,
) -> dict[str, str]:
    """Make $MACHINEFEATURES, $JOBFEATURES and $JOBSTATUS in the directory `place`; the variables that name them.

    planned: the machine's shutdown; now: UNIX s. Containers' twins of the variables are among them. What cannot be
    made, and facts that were refused, are said in one line each and left out: a job is never stopped by them.
    status_owner: uid and gid to whom $JOBSTATUS is given, for a caller with root's rights; nobody else may be able to
    write to `place` then. A $JOBSTATUS that cannot be given away is removed: it would be of no use to the pilot.
    shown_later: see `facts.clients`.
    """
    refused = [*host.refused, *job.refused]
    if refused:
        say(f"left out of the features: {', '.join(refused)}")
    limit, started = job.wall_limit_secs, job.jobstart_secs
    lease_end = None if not limit or started is None else started + limit
    ends = planned_in_lease(planned, None, lease_end, now)
    machine_deadline, job_deadline = deadline_values(None if ends is None else ends + shown_later, None, now)
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
            status = status_of(path)
            if status is None or not stat.S_ISDIR(status.st_mode):
                continue
        for twin in with_twins(name):
            variables[twin] = path
    return variables


def job_token(tree: str, owner: tuple[int, int] | None, whose: str) -> str | None:
    """Make the token by which a job reads its features from the site's server; without it they are paths, it is said.

    tree: the path of a directory that is closed to others, or of root's for a job of `owner` (uid, gid).
    """
    from drainwise.features.job_token import make_token  # noqa: PLC0415 - only where the site has a server

    try:
        return make_token(tree, owner)
    except OSError as error:
        say(f"{whose} has paths of its features, no URLs: no token: {error}")
        return None


def _give(path: str, uid: int, gid: int) -> None:
    try:
        posix.chown(path, uid, gid, follow_symlinks=False)
    except OSError as error:
        posix.rmdir(path)
        raise FeatureError(f"$JOBSTATUS left out: it cannot be given to uid {uid}: {error.strerror}") from None
