"""A program of its own that asks Slurm for its jobs by pyslurm: one line once pyslurm is there, one with the jobs.

Of its own, because libslurm ends the whole process where it finds no slurm.conf, and holds it for seconds where no
slurmctld answers. It is run by its path with `python3 -I`; the arguments are the directory that pyslurm is in and
`jobs`, or `import` for the first line alone. It ends with 0 when all that was asked for is printed.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import pwd
import sys
from types import ModuleType

_FIELDS = (
    *("id", "array_id", "array_task_id", "array_tasks_waiting", "array_tasks_parallel", "heterogeneous_id", "user_id"),
    *("account", "partition", "state", "state_reason", "cpus", "num_nodes", "allocated_nodes", "start_time"),
    *("end_time", "time_limit", "requeue_count", "priority", "admin_comment"),
    *("resource_sharing", "memory", "constraints", "required_nodes", "excluded_nodes", "temporary_disk_per_node"),
    *("ntasks", "reservation", "name", "comment"),
)
_NO_TEXT = "\ufffd"  # stands for bytes that are no UTF-8: not the same as nothing


def main(arguments: list[str]) -> int:
    """Run `pyslurm_reader.py DIRECTORY jobs|import`."""
    directory, wanted = arguments
    # Nothing that pyslurm or libslurm may print gets among the lines.
    with os.fdopen(os.dup(1), "w", encoding="ascii") as answer, open(os.devnull, "w", encoding="ascii") as null:
        os.dup2(null.fileno(), 1)
        try:
            pyslurm = _imported(directory)
            print(json.dumps({"pyslurm": str(pyslurm.__version__)}), file=answer, flush=True)
            if wanted == "jobs":
                print(json.dumps({"jobs": _jobs(pyslurm)}), file=answer, flush=True)
        except Exception as fault:  # whatever it raises, the reader of this wants one line
            print(f"{type(fault).__name__}: {fault}", file=sys.stderr)
            return 1
    return 0


def _imported(directory: str) -> ModuleType:
    """Import pyslurm. Raises ImportError when it is there and its libslurm is of another release."""
    if directory not in sys.path:
        sys.path.append(directory)  # the last: it hides nothing of Python's own
    pyslurm = importlib.import_module("pyslurm")
    # libslurmfull has no version in its name: after an upgrade, pyslurm takes it for what it was built with.
    library = tuple(pyslurm.slurm_api_version())
    if library[:2] != tuple(int(number) for number in str(pyslurm.__version__).split(".")[:2]):
        raise ImportError(f"pyslurm {pyslurm.__version__} has got libslurm {'.'.join(map(str, library))}")
    return pyslurm


def _jobs(pyslurm: ModuleType) -> list[dict[str, object]]:
    gc.disable()
    names: dict[int, str] = {}
    records = []
    for job in pyslurm.Jobs.load().values():
        record = {field: _value(job, field) for field in _FIELDS}
        record["user_name"] = _user(job.user_id, names)
        records.append(record)
    return records


def _value(job: object, field: str) -> object:
    try:
        return getattr(job, field, None)
    except UnicodeDecodeError:
        return _NO_TEXT


def _user(uid: int, names: dict[int, str]) -> str:
    """Return a user's name, else the number: what pyslurm makes of an unknown one depends on its version."""
    if uid not in names:
        try:
            names[uid] = pwd.getpwuid(uid).pw_name.encode("utf-8", "replace").decode()
        except KeyError:
            names[uid] = str(uid)
    return names[uid]


if __name__ == "__main__":
    # Without the clean-up at the end, where libslurm's threads may still be at work.
    code = main(sys.argv[1:])
    sys.stderr.flush()
    os._exit(code)
