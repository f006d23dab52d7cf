"""Starting the daemon in the background and stopping it, with and without its leases; its log.

The daemon in the background is a fresh interpreter: it shares no file, thread or terminal with whoever started it.
"""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import NoReturn

from drainwise.common.printable import ascii_line
from drainwise.facts.errors import DrainwiseError, PoolError, UsageError
from drainwise.facts.units import clock
from drainwise.local.daemon import Daemon
from drainwise.local.daemon_lock import FoundDaemon, find_daemon
from drainwise.local.job import LocalNode
from drainwise.local.leases import DaemonSettings, Say
from drainwise.local.store import LocalStore
from drainwise.processes.children import isolated_program
from drainwise.processes.process import send

_START_SECONDS, _STOP_SECONDS = 60.0, 20.0  # it takes a tenth; the rest is patience with a machine under load
_PAUSE = 0.02
_READY, _REFUSED = "ready", "refused"


def start_daemon(directory: str, settings: DaemonSettings, nodes: Sequence[LocalNode] = ()) -> int:
    """Start a daemon in the background; its pid, once it has done its first round.

    nodes: empty to keep those known from before. Raises PoolError when there is a daemon already, UsageError when the
    state cannot be kept in `directory`.
    """
    directory = os.path.abspath(directory)
    spec = json.dumps([directory, dataclasses.asdict(settings), [dataclasses.astuple(node) for node in nodes]])
    try:
        ran = subprocess.run(
            isolated_program(f"{__name__}:serve", spec),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd="/",
            start_new_session=True,
            check=False,
            timeout=_START_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired) as fault:
        raise PoolError(f"{directory}: the daemon cannot be started: {fault}") from None
    lines = ran.stdout.decode("utf-8", "replace").splitlines() or ["it printed nothing"]
    word, _, text = lines[-1].partition(" ")
    if word == _READY:
        return int(text)
    if word == _REFUSED:
        code, _, text = text.partition(" ")
        raise (UsageError if int(code) == UsageError.exit_code else PoolError)(text)
    raise PoolError(f"{directory}: the daemon died while it started: {lines[-1]}")


def stop_daemon(directory: str, kill: bool) -> str:
    """Stop the daemon of `directory` and with `kill` end all leases; what was done, in words.

    Raises PoolError when it does not stop, or leases cannot be ended.
    """
    found = find_daemon(directory)
    if found is not None:
        _stop(directory, found)
    done = "no daemon ran" if found is None else "the daemon has stopped"
    with LocalStore(directory) as store:
        left = len(store.live())
    if not kill:
        return f"{done}; {left} leases go on" if left else f"{done}; no leases"
    if left:
        daemon = Daemon(directory, DaemonSettings(kill_wait=2.0), to_file(directory))
        try:
            daemon.end_leases()
        finally:
            daemon.close()
    return f"{done}; {left} leases were ended"


def _stop(directory: str, found: FoundDaemon) -> None:
    if found.process is None or not send(found.process, signal.SIGTERM):
        raise PoolError(f"{directory}: somebody holds the daemon's lock who cannot be asked to stop")
    send(found.process, signal.SIGCONT)
    ends = time.monotonic() + _STOP_SECONDS
    while find_daemon(directory) is not None:
        if time.monotonic() > ends:
            raise PoolError(
                f"{directory}: the daemon (pid {found.process.pid}) does not stop; kill -9 does it no harm:"
                " its leases go on, and the next daemon finds them again"
            )
        time.sleep(_PAUSE)


def serve() -> NoReturn:
    """Leave the caller, serve as the argument says, and end this process: the fresh interpreter's program."""
    if os.fork() != 0:
        os._exit(0)  # so that the daemon is nobody's child, and can get no terminal
    directory, settings, nodes = json.loads(sys.argv[1])
    try:
        _serve(directory, DaemonSettings(**settings), [LocalNode(*node) for node in nodes])
    except DrainwiseError as fault:
        print(_REFUSED, fault.exit_code, " ".join(str(fault).split()), flush=True)
    os._exit(0)


def _serve(directory: str, settings: DaemonSettings, nodes: Sequence[LocalNode]) -> None:
    say = to_file(directory)
    daemon = Daemon(directory, settings, say, nodes)
    try:
        signal.signal(signal.SIGTERM, lambda *_: daemon.stop())
        for number in (signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        daemon.run(_let_go)
    except Exception as fault:  # the daemon's outermost guard: whoever looks for it must find why it is gone
        say(f"died: {type(fault).__name__}: {fault}")
    finally:
        daemon.close()


def _let_go() -> None:
    """Say that the daemon serves, and hold nothing of who started it."""
    print(_READY, os.getpid(), flush=True)
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (1, 2):
        os.dup2(nothing, stream)
    os.close(nothing)


LOG = "daemon.log"

_LARGEST = 1 << 20  # bytes; then the file is put aside as daemon.log.1


def to_terminal(text: str) -> None:
    """Print it on standard error."""
    print(_line(text), file=sys.stderr, flush=True)


def to_file(directory: str) -> Say:
    """Return a function that appends a line to the log in `directory`; a full disk costs the line and nothing else."""
    path = os.path.join(directory, LOG)

    def say(text: str) -> None:
        try:
            if os.path.exists(path) and os.path.getsize(path) > _LARGEST:
                os.replace(path, f"{path}.1")
            with open(path, "a", encoding="ascii", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
                file.write(_line(text) + "\n")
        except OSError:
            return

    return say


def _line(text: str) -> str:
    return f"{clock(int(time.time()))} {ascii_line(text)}"
