"""What can go wrong with a test pool, each with what to do next in its message."""

from __future__ import annotations


class PoolError(Exception):
    """A test pool could not do what it was asked."""


class MissingToolError(PoolError):
    """The machine lacks root rights or a program; the message says what to install."""


class RootUnavailableError(PoolError):
    """The root file system of a release can not be had here (no archive, no network, a broken suite)."""


class CommandError(PoolError):
    """A command in the pool ended with a code other than 0."""


class DeadlineError(PoolError):
    """Something did not come true in time."""
