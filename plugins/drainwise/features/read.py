"""Read features as a pilot does: `$MACHINEFEATURES` or `$JOBFEATURES`, a local directory or an http(s) base URL.

job = open_features(os.environ["JOBFEATURES"])
cores = job.integer("allocated_cpu")        # None when the site does not say

An absent key is None. Garbage is a FeatureError that names file, value and what was expected: a pilot that takes an
empty file for 0 stops or never stops.
"""

from __future__ import annotations

import posix
import stat
import time
from abc import ABC, abstractmethod

from drainwise.common.local_file import kind_of, read_small
from drainwise.facts.errors import FeatureError, UsageError
from drainwise.features.facts import LARGEST, LARGEST_FILE, LONGEST_TEXT, sound_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

TIMEOUT_SECS = 2.0
"""For one key as a whole, redirects included; a server that drips byte by byte gains nothing."""
HTTP_PREFIXES = ("http://", "https://")


class FeatureReader(ABC):
    """The keys of one features directory; each call reads anew, so that a dynamic key is seen when it comes or goes."""

    def __init__(self, location: str) -> None:
        self.location = location

    @abstractmethod
    def fetch(self, key: str) -> bytes | None:
        """Read the raw content of a key; None when it is absent. Raises: FeatureError when it cannot be read."""

    @abstractmethod
    def problem(self) -> str | None:
        """Say why the location as a whole cannot be read; None when it can."""

    def text(self, key: str) -> str | None:
        """Read a key as text without its newline.

        Raises: FeatureError when the file is unreadable, empty, or anything else than one line of printable ASCII.
        """
        content = self.fetch(checked_name(key))
        return None if content is None else parse_text(content, self._place(key))

    def integer(self, key: str) -> int | None:
        """Read a key as an integer; its unit is in the table. Raises: FeatureError, also for `86400.0` and `-1`."""
        content = self.fetch(checked_name(key))
        return None if content is None else parse_integer(content, self._place(key))

    def decimal(self, key: str) -> float | None:
        """Read a key as a number in plain notation, `187.5`. Raises: FeatureError."""
        content = self.fetch(checked_name(key))
        return None if content is None else parse_decimal(content, self._place(key))

    def _place(self, key: str) -> str:
        return f"{self.location.rstrip('/')}/{key}"


def checked_name(key: str) -> str:
    """Return the name of a key. Raises: UsageError for what cannot be one (a path, a query, a blank)."""
    if not (key.isidentifier() and key.isascii() and len(key) <= 64):
        raise UsageError(f"feature key {key[:64]!a}: expected letters, digits and underscores")
    return key


def _garbage(content: bytes, place: str, expected: str) -> FeatureError:
    return FeatureError(f"{place}: {ascii(content[:40])[1:]} found, expected {expected}")


def parse_text(content: bytes, place: str) -> str:
    """Parse one line of printable ASCII without blanks; blanks and line ends around it are forgiven."""
    text = content.decode("latin-1").strip(" \t\r\n")
    if not text:
        raise FeatureError(f"{place}: the file is empty, expected a value (an unknown one is left out)")
    if not sound_text(text):
        raise _garbage(content, place, f"one line of printable ASCII without blanks, at most {LONGEST_TEXT} characters")
    return text


def parse_integer(content: bytes, place: str) -> int:
    """Parse plain ASCII digits up to 2**63 - 1: no sign, no point, no exponent, no underscore."""
    text = parse_text(content, place)
    if text.isdecimal() and len(text) <= 19 and int(text) <= LARGEST:
        return int(text)
    raise _garbage(content, place, "a decimal integer without sign, below 2**63")


def parse_decimal(content: bytes, place: str) -> float:
    """Parse digits with at most one point in them, `187.5`: no sign, no exponent."""
    text = parse_text(content, place)
    whole, point, fraction = text.partition(".")
    if whole.isdecimal() and (fraction.isdecimal() or not point) and len(text) <= 30:
        return float(text)
    raise _garbage(content, place, "a number in plain notation such as 187.5")


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

    def names(self) -> list[str]:
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


class HttpReader(FeatureReader):
    """The keys under a base URL, asked no more often than cache headers want. Not for several threads at once.

    The draft lets a server say by HTTP cache control how long a value holds. An answer is reused for `max-age` seconds
    (or until `Expires`), then asked for again with `If-None-Match` or `If-Modified-Since`; `no-store` is asked for each
    time. 404 and 410 mean that the key is absent, and hold as long as any other answer.
    """

    def __init__(
        self, location: str, clock: Callable[[], float] = time.monotonic, timeout_secs: float = TIMEOUT_SECS
    ) -> None:
        from drainwise.features import read_http  # noqa: PLC0415 - a local reader does not pay for the http modules

        super().__init__(location)
        self._http, self._clock, self._timeout_secs = read_http, clock, timeout_secs
        self._cache: dict[str, tuple[bytes | None, float, dict[str, str]]] = {}
        parts = read_http.split_url(location)
        if parts.query or parts.fragment or parts.username is not None:
            raise UsageError(f"features location {location[:80]!a}: expected a base URL without user, query, #")

    def fetch(self, key: str) -> bytes | None:
        """Read the raw content of a key, from the cache while it is fresh. Raises: FeatureError."""
        kept, fresh_until, known = self._cache.get(key, (None, 0.0, {}))
        now, place = self._clock(), self._place(key)
        if key in self._cache and now < fresh_until:
            return kept
        answer = self._http.ask(place, known, self._timeout_secs)
        validators = self._http.validators_in(answer.headers)
        if answer.status == 304 and key in self._cache:
            body, validators = kept, validators or known
        elif answer.status == 200:
            body = answer.body
        elif answer.status in {404, 410}:
            body, validators = None, {}
        else:
            raise FeatureError(f"{place}: the server answered {answer.status}, expected 200, 304 or 404")
        lifetime = self._http.lifetime_secs(answer.headers)
        if lifetime is None:
            self._cache.pop(key, None)
        else:
            self._cache[key] = body, now + lifetime, validators
        return body

    def problem(self) -> str | None:
        """Say why the server does not answer at all; whatever it answers for the base itself is an answer."""
        try:
            self._http.ask(self.location, {}, self._timeout_secs)
        except FeatureError as error:
            return str(error)
        return None


def open_features(location: str, clock: Callable[[], float] = time.monotonic) -> FeatureReader:
    """Open a features directory by the value of its environment variable.

    Parameters: `location` starts with `/` (a local directory) or with `http://` or `https://`; `clock` in seconds
    tells how old a cached http answer is.
    Raises: UsageError for any other location. Nothing is read yet.
    """
    if location.startswith("/") and "\0" not in location:
        return DirectoryReader(location)
    if location.startswith(HTTP_PREFIXES):
        return HttpReader(location, clock)
    raise UsageError(f"features location {location[:80]!a}: expected a path from / or a URL with http:// or https://")
