"""drainwise: pilots live long and still give their cores back quickly and cheaply."""

import posix

__version__ = "0.1.0"


def _release(package: str) -> str:
    """Where the package lies, if `package` is a link to it: all modules of a process then come from one release."""
    try:
        return f"{package.rpartition('/')[0]}/{posix.readlink(package)}"
    except OSError:
        return package  # a directory, or in a wheel


__path__ = [_release(__path__[0])]
