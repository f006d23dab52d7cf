"""Turns the lease supervisor's forked child into the job: its own session, directory, descriptors and signals."""

from __future__ import annotations

import errno
import posix

from drainwise.local.lease.job_spec import DEFAULT_PATH
from drainwise.processes.tree import die_with_parent

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from typing import NoReturn
else:
    import _signal  # the module behind `signal`, without the time that `signal` takes to start

_OUTPUT = posix.O_WRONLY | posix.O_APPEND | posix.O_CREAT | posix.O_EXCL | posix.O_NOFOLLOW | posix.O_CLOEXEC
_NOT_FOUND, _NOT_RUN = 127, 126  # what a shell's exit code would be


def become_job(supervisor: int, work: str, command: list[bytes], environment: dict[bytes, bytes]) -> NoReturn:
    """Take a session, directory and descriptors of its own, then execute the command."""
    code = _NOT_RUN
    try:
        posix.setsid()
        # A job whose supervisor was killed does not run on.
        if not die_with_parent() or posix.getppid() != supervisor:
            posix._exit(code)
        posix.umask(0o022)
        posix.chdir(work)
        posix.dup2(posix.open("/dev/null", posix.O_RDONLY), 0)
        for name, number in (("out", 1), ("err", 2)):
            posix.dup2(posix.open(name, _OUTPUT, 0o600), number)
        _signal.pthread_sigmask(_signal.SIG_SETMASK, ())
        code = _execute(command, environment)
    except OSError as error:
        complain(f"the job cannot be started: {error}")
    posix._exit(code)


def _execute(command: list[bytes], environment: dict[bytes, bytes]) -> int:
    """Become the command, found on the job's own PATH; returns the exit code of a shell that could not."""
    name = command[0]
    paths = [name] if b"/" in name else [b"%b/%b" % (part or b".", name) for part in _path(environment)]
    fault: OSError | None = None
    for path in paths:
        try:
            posix.execve(path, command, environment)
        except OSError as error:
            if fault is None and _is_there(path):  # a directory of the PATH that others may not enter says nothing
                fault = error
    number = errno.ENOENT if fault is None or fault.errno is None else fault.errno
    complain(f"{name.decode('utf-8', 'replace')!a} cannot be run: {posix.strerror(number)}")
    return _NOT_FOUND if fault is None else _NOT_RUN


def _is_there(path: bytes) -> bool:
    try:
        posix.stat(path)
    except OSError:
        return False
    return True


def _path(environment: dict[bytes, bytes]) -> list[bytes]:
    return environment.get(b"PATH", DEFAULT_PATH).split(b":")


def complain(text: str) -> None:
    """Write one line to standard error: `err` of the job, `log` of its supervisor. A full disk is no reason to fail."""
    try:
        posix.write(2, f"drainwise: {text}\n".encode("utf-8", "replace"))
    except OSError:
        return
