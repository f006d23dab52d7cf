"""Names and passwords of those who may look: a file of NAME:PASSWORD lines that the agent's user alone may read."""

from __future__ import annotations

import base64
import binascii
import hmac
import os
import stat

from drainwise.facts.errors import ConfigurationError

_LONGEST_FILE = 65536
_SHORTEST = 8
_WANTED = "a file of NAME:PASSWORD lines, one for each user"


class Passwords:
    """Who may look, by name."""

    def __init__(self, known: dict[str, bytes]) -> None:
        self._known = known

    def admit(self, authorization: str) -> bool:
        """Decide by the value of an Authorization header; each name takes the same time."""
        scheme, _, encoded = authorization.partition(" ")
        if scheme.lower() != "basic":
            return False
        try:
            name, colon, password = base64.b64decode(encoded.strip(), validate=True).partition(b":")
        except (binascii.Error, ValueError):
            return False
        known = self._known.get(name.decode("utf-8", "replace"), b"")
        return hmac.compare_digest(known, password) and bool(colon and known)


def read_passwords(path: str, site_file: str) -> Passwords:
    """Read the file. Raises ConfigurationError, which names no password."""

    def refused(found: str, expected: str) -> ConfigurationError:
        return ConfigurationError(site_file, "metrics", "passwords", path, f"{expected} ({found})")

    try:
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            facts = os.fstat(file.fileno())
            if not stat.S_ISREG(facts.st_mode):
                raise refused("it is no regular file", _WANTED)
            if facts.st_mode & 0o077 or facts.st_uid not in {0, os.geteuid()}:
                raise refused(f"mode {stat.S_IMODE(facts.st_mode):04o}", "a file of the agent's user with mode 0600")
            content = file.read(_LONGEST_FILE + 1)
    except OSError as fault:
        raise refused(fault.strerror or str(fault), _WANTED) from None
    known = {}
    for number, line in enumerate(content[:_LONGEST_FILE].decode("utf-8", "replace").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        name, colon, password = line.partition(":")
        if not name or not colon or len(password) < _SHORTEST:
            raise refused(f"line {number}", f"{_WANTED}, with passwords of {_SHORTEST} characters or more")
        known[name] = password.encode()
    if not known:
        raise refused("it has none", _WANTED)
    return Passwords(known)
