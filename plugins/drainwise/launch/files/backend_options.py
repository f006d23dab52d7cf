"""Which backend the options of the command line are for: each batch system has options of its own. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from drainwise.facts.errors import UsageError


def options_by_backend(texts: Iterable[str], backends: Collection[str], named: Collection[str]) -> dict[str, str]:
    """Return the options of each backend by name, joined by blanks.

    texts: `NAME:OPTIONS`, or OPTIONS alone: those of the only one of `named`, the backends that jobs name beside this
    machine. Where they name none, options alone are ignored, as open-lmake does. backends: all there are.
    Raises UsageError where options alone could be meant for several.
    """
    found: dict[str, list[str]] = {}
    for text in texts:
        name, colon, options = text.partition(":")
        if colon and name in backends:
            found.setdefault(name, []).append(options)
            continue
        if len(named) > 1:
            several = " and ".join(sorted(named))
            raise UsageError(
                f"--backend-options {text[:60]!r}: jobs go to {several}: say for which it is, as {min(named)}:OPTIONS"
            )
        for only in named:
            found.setdefault(only, []).append(text)
    return {name: " ".join(options) for name, options in found.items()}
