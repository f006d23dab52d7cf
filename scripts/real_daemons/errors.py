"""What can go wrong with real daemons in namespaces, each with what to do next in its message."""

from __future__ import annotations


class DaemonsError(Exception):
    """A test site of real daemons could not do what it was asked."""


class MissingToolError(DaemonsError):
    """The machine lacks root rights or a program; the message says what to install."""


class RootUnavailableError(DaemonsError):
    """The root file system of a release can not be had here (no archive, no network, a broken suite)."""


class CommandError(DaemonsError):
    """A command in the site ended with a code other than 0."""


class DeadlineError(DaemonsError):
    """Something did not come true in time."""
