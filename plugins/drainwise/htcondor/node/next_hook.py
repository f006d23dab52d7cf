"""Call the site's own hook after ours, where the site had one under the same keyword.

Our hook does its part first, within its own time limit, and then becomes the site's program: that one has the same
process, arguments, environment, working directory and output, as much time as before, and its exit code, or the signal
that ends it, is the hook's. It reads the whole job ad on its standard input; after the prepare hook with our variables
in the environment, so that what it adds to the environment keeps them.
"""

from __future__ import annotations

import posix

from drainwise.node.hook import run_to_end, say, write_whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from collections.abc import Callable, Iterable, Sequence
    from typing import NoReturn
else:
    import _signal  # the module behind `signal`, which itself costs more than all the rest of a hook

_PIECE = 1 << 16


def put_input(content: Iterable[bytes]) -> None:
    """Let standard input hold `content`, from its beginning. Raises OSError."""
    memory = posix.memfd_create("job-ad")
    for piece in content:
        write_whole(memory, piece)
    posix.dup2(memory, 0)
    posix.set_inheritable(0, True)
    if memory:
        posix.close(memory)
    posix.lseek(0, 0, 0)


def become(command: Sequence[str], is_kept: bool = True) -> NoReturn:
    """Become the site's hook; `command` is its absolute path and its arguments.

    is_kept: whether standard input can begin again; one that could not be kept was not read either.

    Where it cannot be run, this process dies by a signal: HTCondor puts the job back, as it does itself for a hook
    that is missing.
    """
    _signal.setitimer(_signal.ITIMER_REAL, 0)
    for number in (_signal.SIGPIPE, _signal.SIGXFSZ):
        _signal.signal(number, _signal.SIG_DFL)  # Python ignores both, and a new program would, too
    if is_kept:
        posix.lseek(0, 0, 0)
    try:
        posix.execv(command[0], list(command))
    except OSError as error:
        say(f"the site's own hook cannot be run, so its job is put back: {command[0]}: {error.strerror}")
    posix.kill(posix.getpid(), _signal.SIGKILL)
    posix._exit(1)


def run_before(command: Sequence[str], step: Callable[[], None]) -> NoReturn:
    """Run our part of a hook for at most its time limit, then become `command`, whatever came of our part."""
    try:
        put_input(iter(lambda: posix.read(0, _PIECE), b""))
    except OSError as error:
        say(f"the job's ad cannot be kept for the site's own hook, so ours does nothing: {error.strerror}")
        become(command, is_kept=False)
    run_to_end(step, after=lambda: become(command))
