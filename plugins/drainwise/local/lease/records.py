"""The lease supervisor's records: the claim on its lease, and how the job ended, which no damage to them may lose."""

from __future__ import annotations

import errno
import fcntl
import posix
import time

from drainwise.common.local_file import is_at, replace_file

RECORDS, WORK = "lease", "work"
"""The two directories below that of a lease: the supervisor's and the job's."""
RECORD, OUTCOME = "keeper", "outcome.json"
"""In the first: who keeps the lease, and how its job ended."""

_SPARE = ".outcome"
_SPARE_BYTES = 160
_TRIES = 60  # a second apart: a full disk may be cleared
_NEW = posix.O_RDWR | posix.O_CREAT | posix.O_EXCL | posix.O_NOFOLLOW | posix.O_CLOEXEC
_DIRECTORY = posix.O_RDONLY | posix.O_DIRECTORY | posix.O_NOFOLLOW | posix.O_CLOEXEC


class SupervisorRecords:
    """The records of the lease in `directory`, claimed for this process. Raises OSError when that cannot be."""

    def __init__(self, directory: str) -> None:
        self._top = posix.open(directory, _DIRECTORY)
        self._records = posix.open(RECORDS, _DIRECTORY, dir_fd=self._top)
        self._record = self._claim()
        self._spare = posix.open(_SPARE, _NEW, 0o600, dir_fd=self._records)
        posix.write(self._spare, b" " * _SPARE_BYTES)  # now, so that a disk the job fills cannot lose its outcome

    def _claim(self) -> int:
        """Make the record, locked before it has its name: that it is there and that its supervisor lives is one moment.

        Whoever looks for the lease asks the kernel who holds the lock: a pid in a file could be anybody's. Raises
        FileExistsError when somebody was first: another supervisor, or who decided that this lease never starts.
        """
        temporary = f".{RECORD}.{posix.getpid()}"
        record = posix.open(temporary, _NEW, 0o600, dir_fd=self._records)
        fcntl.lockf(record, fcntl.LOCK_EX | fcntl.LOCK_NB)
        posix.link(temporary, RECORD, src_dir_fd=self._records, dst_dir_fd=self._records)
        posix.unlink(temporary, dir_fd=self._records)
        return record

    def write_supervisor(self, pid: int, birth: int | None, job: int) -> None:
        """Write who is who, for whoever looks into the directory."""
        posix.write(self._record, b'{"pid": %d, "birth": %d, "job": %d}\n' % (pid, birth or 0, job))

    def write_outcome(self, code: int | None, signal: int | None, ended: float, cpu: float) -> None:
        """Record how the job ended, at one moment; one of `code` and `signal` is None; ended: UNIX s; cpu: CPU s.

        Waits for a minute where there is no room. Raises nothing.
        """
        text = f'"code": {code}, "signal": {signal}, "ended": {ended:.6f}, "cpu": {cpu:.2f}'.replace("None", "null")
        content = b"{%b}" % text.encode("ascii")
        content = content.ljust(_SPARE_BYTES - 1) + b"\n"
        for _ in range(_TRIES):
            try:
                self._put(content)
                return
            except FileNotFoundError:
                return  # the lease's directory was removed: nobody will ask
            except OSError as error:
                complain(f"the outcome is not recorded yet: {error}")
                time.sleep(1.0)

    def _put(self, content: bytes) -> None:
        """Rename the spare file into place; where the job was at the records, make what is needed anew."""
        posix.pwrite(self._spare, content, 0)
        for directory in (self._top, self._records):
            posix.fchmod(directory, 0o700)
        records = self._opened_records()
        try:
            if is_at(self._spare, _SPARE, records):
                posix.rename(_SPARE, OUTCOME, src_dir_fd=records, dst_dir_fd=records)
            else:
                replace_file(OUTCOME, content, records)
        except OSError as error:
            if error.errno not in {errno.ENOTEMPTY, errno.EISDIR}:
                raise
            _move_away(OUTCOME, records)
            replace_file(OUTCOME, content, records)
        finally:
            posix.close(records)

    def _opened_records(self) -> int:
        """Open the directory that is called so now; make one where there is none, or something else."""
        try:
            return posix.open(RECORDS, _DIRECTORY, dir_fd=self._top)
        except FileNotFoundError:
            pass
        except OSError:
            _move_away(RECORDS, self._top)
        posix.mkdir(RECORDS, 0o700, dir_fd=self._top)
        return posix.open(RECORDS, _DIRECTORY, dir_fd=self._top)


def _move_away(name: str, directory: int) -> None:
    posix.rename(name, f".{name}.{posix.getpid()}", src_dir_fd=directory, dst_dir_fd=directory)


def complain(text: str) -> None:
    """Write one line to standard error: `err` of the job, `log` of its supervisor. A full disk is no reason to fail."""
    try:
        posix.write(2, f"drainwise: {text}\n".encode("utf-8", "replace"))
    except OSError:
        return
