"""A program of its own that asks Slurm for its jobs' texts by pyslurm: one line once pyslurm is there, one with these.

Of its own, because libslurm ends the whole process where it finds no slurm.conf, and holds it for seconds where no
slurmctld answers. It is run by its path with `python3 -I`; the arguments are the directory that pyslurm is in and
`jobs`, or `import` for the first line alone. It ends with 0 when all that was asked for is printed.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import sys
from types import ModuleType

_FIELDS = {key: key for key in ("name", "comment", "admin_comment", "excluded_nodes")}
_FIELDS["job_id"] = "id"
"""The attributes of a job by what `squeue --json` calls them."""
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
    return [{key: _value(job, name) for key, name in _FIELDS.items()} for job in pyslurm.Jobs.load().values()]


def _value(job: object, field: str) -> object:
    try:
        return getattr(job, field, None)
    except UnicodeDecodeError:
        return _NO_TEXT


if __name__ == "__main__":
    # Without the clean-up at the end, where libslurm's threads may still be at work.
    code = main(sys.argv[1:])
    sys.stderr.flush()
    os._exit(code)
