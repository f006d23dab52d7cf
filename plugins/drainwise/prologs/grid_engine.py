"""Grid Engine: the environment and the `config` file of the job, `qstat -j` and `qconf -sq`.

Memory limits are for each slot, as Grid Engine enforces them. Of a resource, the queue's limit and the job's, the
tighter one counts.
"""

from __future__ import annotations

from collections.abc import Mapping

from drainwise.prologs.described import DescribedJob, Questions, count, is_this_host, least, seconds, size

_REQUESTED = "hard resource_list:"


def questions(environment: Mapping[str, str], host: str) -> Questions:  # noqa: ARG001 - as the others have it
    """Return what is to be asked."""
    return {
        "config": ["cat", f"{environment.get('SGE_JOB_SPOOL_DIR', '')}/config"],
        "job": ["qstat", "-j", environment.get("JOB_ID", "")],
        "queue": ["qconf", "-sq", environment.get("QUEUE", "")],
    }


def described(environment: Mapping[str, str], answers: Mapping[str, str], host: str, now: int) -> DescribedJob:
    """Make the facts of a job on `host` that starts `now`, UNIX s."""
    config = dict(line.partition("=")[::2] for line in answers.get("config", "").splitlines())
    queue = dict(_pair(line) for line in answers.get("queue", "").replace("\\\n", " ").splitlines())
    job = requested(answers.get("job", ""))
    slots = count(config.get("host_slots")) or count(environment.get("NSLOTS"))
    task = environment.get("SGE_TASK_ID", "undefined")
    name = environment.get("JOB_ID") or None
    memory = least(size(config.get("h_rss")), size(config.get("h_vmem")))
    return DescribedJob(
        {
            "job_id": name if task == "undefined" or name is None else f"{name}.{task}",
            "jobstart_secs": now,
            "allocated_cpu": slots,
            "wall_limit_secs": least(*(seconds(one.get(key)) for one in (job, queue) for key in ("h_rt", "s_rt"))),
            "cpu_limit_secs": least(*(seconds(config.get(key)) for key in ("h_cpu", "s_cpu"))),
            "max_rss_bytes": memory * (slots or 1) if memory else None,
            "scratch_limit_bytes": size(config.get("h_fsize")),
        },
        {"jobslots": _slots(queue.get("slots", ""), host)},
        config.get("job_owner"),
    )


def requested(text: str) -> dict[str, str]:
    """Return the hard resources that a job asked for, by their names, of what `qstat -j` prints."""
    lines = [line[len(_REQUESTED) :] for line in text.splitlines() if line.startswith(_REQUESTED)]
    return dict(part.strip().partition("=")[::2] for line in lines for part in line.split(","))


def _slots(text: str, host: str) -> int | None:
    """Return a host's slots in a queue: of `8,[n1=16],[n2=4]` its own number, else the first."""
    first, *others = text.split(",")
    own = [part.strip("[] ").partition("=")[::2] for part in others]
    return next((count(number) for name, number in own if is_this_host(name, host)), count(first))


def _pair(line: str) -> tuple[str, str]:
    name, _, value = line.partition(" ")
    return name, value.strip()
