"""Read features as a pilot does: `$MACHINEFEATURES` or `$JOBFEATURES`, a local directory or an http(s) base URL.

job = open_features(os.environ["JOBFEATURES"])
cores = job.integer("allocated_cpu")        # None when the site does not say
"""

from __future__ import annotations

import posix
import stat

from drainwise.common.local_file import kind_of, read_small
from drainwise.facts.errors import FeatureError, UsageError
from drainwise.features.reader import HTTP_PREFIXES, LARGEST_FILE, FeatureReader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class DirectoryReader(FeatureReader):
    """A local directory. Symbolic links in it are not followed, and nothing in it can make the reader wait."""

    def fetch(self, key: str) -> bytes | None:
        """Read the raw content of a key."""
        found = self.fetch_with_status(key)
        return None if found is None else found[0]

    def fetch_with_status(self, key: str) -> tuple[bytes, posix.stat_result] | None:
        """Read the raw content of a key and its status in the file system."""
        try:
            return read_small(f"{self.location}/{key}", LARGEST_FILE)
        except FeatureError as error:
            raise FeatureError(f"{self.location.rstrip('/')}: {error}") from None

    def names(self, directory: str | None = None) -> list[str]:  # noqa: ARG002 - a local directory lists itself
        """List all files, sorted, also those that are no keys. Raises: FeatureError."""
        try:
            return sorted(posix.listdir(self.location))
        except OSError as error:
            raise FeatureError(f"{self.location}: {error.strerror}") from None

    def problem(self) -> str | None:
        """Say why this is no readable directory."""
        try:
            status = posix.stat(self.location)
        except OSError as error:
            return f"{self.location}: {error.strerror}"
        if not stat.S_ISDIR(status.st_mode):
            return f"{self.location}: expected a directory, found {kind_of(status.st_mode)}"
        return None


def open_features(location: str, clock: Callable[[], float] | None = None) -> FeatureReader:
    """Open a features directory by the value of its environment variable.

    Parameters: `location` starts with `/` (a local directory) or with `http://` or `https://`; `clock` in seconds
    tells how old a cached http answer is (the monotonic clock when not given).
    Raises: UsageError for any other location. Nothing is read yet.
    """
    if location.startswith("/") and "\0" not in location:
        return DirectoryReader(location)
    if location.startswith(HTTP_PREFIXES):
        from drainwise.features.read_http import HttpReader  # noqa: PLC0415 - a local reader does not pay for the http modules

        return HttpReader(location) if clock is None else HttpReader(location, clock)
    raise UsageError(f"features location {location[:80]!a}: expected a path from / or a URL with http:// or https://")
