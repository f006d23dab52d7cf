"""The node's settings as a service follows them: a site's change reaches running jobs without a restart."""

from __future__ import annotations

import os

from drainwise.facts.errors import ConfigurationError
from drainwise.node.settings import NodeSettings, load

_MISSING = (0, 0, 0)


class SettingsFile:
    """The file of the node's settings. `settings`: as they were read last; None at the beginning: not read yet."""

    def __init__(self, path: str, settings: NodeSettings | None = None) -> None:
        self._path, self._seen = path, _MISSING if settings is None else _signature(path)
        self.settings, self.fault = settings or NodeSettings(), ""
        self.follow()

    def follow(self) -> NodeSettings:
        """Return the settings, read again where the file has changed; the earlier ones while it is missing or wrong.

        `fault` says then what is wrong, else "".
        """
        found = _signature(self._path)
        if found != self._seen:
            self._seen, self.fault = found, ""
            try:
                self.settings = load(self._path)
            except (ConfigurationError, OSError) as error:
                self.fault = f"the earlier settings stay: {error}"
        return self.settings


def _signature(path: str) -> tuple[int, int, int]:
    """Return what differs between two versions of a file; _MISSING where it cannot be looked at."""
    try:
        status = os.stat(path)
    except OSError:
        return _MISSING
    return status.st_ino, status.st_mtime_ns, status.st_size
