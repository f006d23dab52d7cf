"""From a job to what is executed on this machine: its program, the limit of its memory, the file for what it prints."""

from __future__ import annotations

import os
import resource
import stat

from drainwise.errors import ActionRefused
from drainwise.launch.backend import Start

_LIMITED = 'ulimit -d "$1" || exit 126; shift; exec "$@"'
_UNLIMITED = 1 << 62
_OUTPUT = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


def command_of(job: Start) -> tuple[str, ...]:
    """Program and arguments; one that asked for memory gets no more. Raises ActionRefused: there is no such program."""
    program = _path_of(job.argv[0], job.cwd, job.environment.get("PATH", os.defpath))
    if not program:
        raise ActionRefused(f"{job.argv[0][:100]}: there is no such program")
    if not job.resources.mem:
        return job.argv
    # A limit that holds already can only be lowered.
    most = resource.getrlimit(resource.RLIMIT_DATA)[1]
    kilobytes = min(job.resources.mem << 10, (_UNLIMITED if most == resource.RLIM_INFINITY else most) >> 10)
    # By its path, as a name may be an option of `exec`.
    return ("/bin/sh", "-c", _LIMITED, job.argv[0], str(kilobytes), program, *job.argv[1:])


def _path_of(program: str, cwd: str, path: str) -> str:
    """The absolute path of a program, by path from the job's directory or by PATH; "" when there is none."""
    places = [program] if "/" in program else [f"{each or '.'}/{program}" for each in path.split(os.pathsep)]
    for place in places:
        found = os.path.join(cwd, place)
        if os.path.isfile(found) and os.access(found, os.X_OK):
            return found
    return ""


def opened_output(path: str) -> int:
    """The file for what a job prints, open. Raises OSError; ActionRefused: a FIFO would have us wait for a reader."""
    output = os.open(path, _OUTPUT, 0o666)
    if not stat.S_ISREG(os.fstat(output).st_mode):
        os.close(output)
        raise ActionRefused(f"{path}: not a regular file")
    os.set_blocking(output, True)
    return output
