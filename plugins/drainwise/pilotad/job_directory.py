"""The directory a pilot or a hook writes into, with its owner's rights and no more; what is said when it cannot."""

from __future__ import annotations

import errno
import posix

from drainwise.errors import FeatureError, RefusedFile
from drainwise.pilotad.safe_open import open_dir

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType

_ADVICE = {
    errno.ENOSPC: "free space in the job's directory",
    errno.EDQUOT: "the user's quota is used up: free space",
    errno.EFBIG: "raise the job's limit of the size of files",
    errno.EMFILE: "close files or raise the limit of open files",
    errno.ENOTEMPTY: "remove the directory of that name",
}


class JobDirectory:
    """Given as a descriptor (left open) or as a path (opened, and closed at the end of the `with`)."""

    __slots__ = ("_fd", "_given")

    def __init__(self, directory: int | str) -> None:
        self._given = directory
        self._fd = -1

    def __enter__(self) -> int:
        if isinstance(self._given, int):
            return self._given
        try:
            self._fd = open_dir(self._given)
        except RefusedFile as refused:
            name = ascii(self._given[-60:])
            raise FeatureError(f"{name}: {refused.reason}; expected the job's directory, no symlink") from refused
        return self._fd

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._fd >= 0:
            posix.close(self._fd)


def not_written(name: str, error: OSError | str) -> FeatureError:
    """The one-line error for a file (a name of ours) that could not be written or removed, with what to do."""
    if isinstance(error, str):
        return FeatureError(f"{name}: not written ({error})")
    number = error.errno or 0
    return FeatureError(f"{name}: not written ({posix.strerror(number)}); {_ADVICE.get(number, 'check its directory')}")
