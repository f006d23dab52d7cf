"""Shared by the hooks of every batch system: bounded input, whole output, a bounded time, and one line when something
is not as it should be.

A hook never stops a job: whatever goes wrong becomes one line, and the hook ends with 0. The line goes to the system's
log and to standard error, because the starter writes only the prepare hook's standard error to its own log.
"""

from __future__ import annotations

import errno
import posix

from drainwise.common.local_file import Held
from drainwise.facts.errors import ConfigurationError
from drainwise.node.settings import NodeSettings, load

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from collections.abc import Callable
    from typing import NoReturn
else:
    import _signal  # the module behind `signal`, which itself costs more than all the rest of a hook

TIME_LIMIT = 20.0  # seconds; the work takes milliseconds, the rest is patience with a machine under load

_PIECE = 1 << 16
_READ = posix.O_RDONLY | posix.O_NOFOLLOW | posix.O_NONBLOCK | posix.O_NOCTTY | posix.O_CLOEXEC


def say(text: str) -> None:
    """Log one line to the system's log and to standard error; a closed or full standard error is no reason to fail."""
    import syslog  # noqa: PLC0415 - a hook that has nothing to say does not pay for it

    from drainwise.common.printable import ascii_line  # noqa: PLC0415

    line = ascii_line(f"drainwise: {text}")
    syslog.syslog(syslog.LOG_WARNING, line)
    try:
        posix.write(2, (line + "\n").encode("ascii"))
    except OSError:
        return


def status_of(path: str, dir_fd: int | None = None) -> posix.stat_result | None:
    """Return what stands at `path`, no link followed; None for nothing, or where nobody may look."""
    try:
        return posix.stat(path, dir_fd=dir_fd, follow_symlinks=False)
    except OSError:
        return None


def variable(name: str) -> str:
    """Return a variable that the starter set for the hook; raises KeyError."""
    return posix.environ[name.encode("ascii")].decode("ascii")


def _read_whole(descriptor: int, limit: int, begin: bytes = b"") -> bytes:
    pieces, left = [begin], limit - len(begin)
    while left >= 0:
        piece = posix.read(descriptor, min(left + 1, _PIECE))
        if not piece:
            return b"".join(pieces)
        pieces.append(piece)
        left -= len(piece)
    raise OSError(errno.EFBIG, posix.strerror(errno.EFBIG))


def read_bounded(path: str, limit: int, dir_fd: int | None = None) -> bytes:
    """Read the content of a small file, never following a link nor waiting on a pipe.

    Raises OSError, also for a file of more than `limit` bytes: part of an ad would be taken for all of it.
    """
    descriptor = posix.open(path, _READ, dir_fd=dir_fd)
    with Held(descriptor):
        begin = posix.read(descriptor, _PIECE)
        # A file gives what is asked for until its end, so that one call is nearly always enough.
        return begin if len(begin) < min(_PIECE, limit + 1) else _read_whole(descriptor, limit, begin)


def read_input(limit: int) -> bytes:
    """Read standard input; raises OSError when it has more than `limit` bytes."""
    return _read_whole(0, limit)


def write_whole(descriptor: int, data: bytes) -> None:
    """Write all of `data`; raises OSError."""
    while data:
        data = data[posix.write(descriptor, data) :]


def write_output(data: bytes) -> None:
    """Write all of `data` to standard output; raises OSError."""
    write_whole(1, data)


def settings_or_defaults(path: str) -> NodeSettings:
    """Load the node's settings; a missing or wrong file costs its values, not the job.

    Nobody knows then which client a job is: each is shown what all of them bear, `.site.ad` without shutdown files.
    """
    try:
        return load(path)
    except (ConfigurationError, OSError) as error:
        say(f"the node's settings were not used: {error}")
        return NodeSettings({"client_default": "alice"})


def planned_shutdown(settings: NodeSettings, now: int) -> int | None:
    """Return the machine's planned shutdown, UNIX s; what is wrong with its file is said."""
    try:
        posix.stat(settings.shutdown_file, follow_symlinks=False)
    except OSError as error:
        if error.errno in {errno.ENOENT, errno.ENOTDIR}:
            return None
    from drainwise.features.planned_shutdown import read  # noqa: PLC0415 - hardly ever is there one

    planned, remark = read(settings.shutdown_file, now)
    if remark:
        say(remark)
    return planned


def _occupy_standard_descriptors() -> None:
    """Occupy 1 and 2, which the starter closes for the update hook: no file opened later may be taken for them."""
    while (descriptor := posix.open("/dev/null", posix.O_RDWR)) <= 2:
        pass
    posix.close(descriptor)


def _end() -> NoReturn:
    posix._exit(0)


def run_to_end(step: Callable[[], object], orderly: bool = False, after: Callable[[], NoReturn] = _end) -> NoReturn:
    """Run the work of a hook or of the cron for at most TIME_LIMIT, then end this process.

    It ends with 0 whatever happened: any other code puts the job on hold. One that is not done in time dies by SIGALRM,
    because only a death ends every kind of wait; `orderly` makes it end with 0 then, too, because the starter starts a
    job again and again whose prepare hook dies by a signal. `after` is what is done instead of ending, in each of these
    cases. A timer that the caller has set already stands. The interpreter's own clean-up is left out: it costs as much
    as the work.
    """

    def give_up(*_: object) -> NoReturn:
        try:
            say(f"not done after {TIME_LIMIT:.0f} s; given up")
        finally:
            after()

    try:
        _occupy_standard_descriptors()
        if orderly or after is not _end:
            _signal.signal(_signal.SIGALRM, give_up)
        if not _signal.getitimer(_signal.ITIMER_REAL)[0]:
            _signal.setitimer(_signal.ITIMER_REAL, TIME_LIMIT)
        step()
    except Exception as error:  # the outermost guard: the job must run whatever happens here
        say(f"{type(error).__name__}: {error}")
    finally:  # even where the line cannot be said
        after()
