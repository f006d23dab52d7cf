"""The one exception tree.

DrainwiseError                 anything the bundle reports on purpose
├── UsageError                 the caller asked for something that cannot be (exit code 2)
│   ├── ConfigurationError     a key of a configuration file is wrong (exit code 2)
│   └── PayloadError           a payload's description is wrong (exit code 2)
├── RefusedFile                a file a user wrote is not safe or not sound to read
├── FeatureError               a features directory cannot be written or read
└── PoolError                  the batch system did not do what was asked (exit code 1)
    ├── PoolUnreachable        no answer, incomplete answer, or a stale one: nothing may be decided on it
    │   └── OrderUnanswered    an order was sent and not answered: it may still be carried out
    ├── PoolFull               the batch system takes no more jobs of this user for now
    ├── RunEnded               the run that an order names is not there any more
    └── ActionRefused          the batch system refused an order
        └── RightsRefused      because of who gives it: no fault of the run that it names
"""

from __future__ import annotations


class DrainwiseError(Exception):
    """Base of all errors raised on purpose; `exit_code` is what a command ends with."""

    exit_code = 1


class UsageError(DrainwiseError):
    """The request itself is wrong; nothing was done."""

    exit_code = 2


class ConfigurationError(UsageError):
    """One key of a configuration file is wrong.

    Parameters: `file`, `section`, `key`, `value` name the place; `expected` says what would be right. What has no place
    so narrow (a section that does not exist, a file that cannot be read) leaves `key` and `section` empty. `line`: of
    the file, 0 where it is not known. `more`: a clause that ends the message.
    """

    def __init__(
        self, file: str, section: str, key: str, value: str, expected: str, line: int = 0, more: str = ""
    ) -> None:
        self.file, self.section, self.key, self.value, self.expected = file, section, key, value, expected
        self.line = line
        name = key if key.isprintable() else repr(key)[1:-1]
        place = f"{file}:{line}: " if line else f"{file}: "
        place += (f"[{section}] " if section else "") + (f"{name} = " if key else "")
        super().__init__(f"{place}{value!r}: expected {expected}{more}")


class PayloadError(UsageError):
    """A payload's description is wrong; one line names the key, the value and what was expected."""


class RefusedFile(DrainwiseError):  # noqa: N818 - the fact, not the fault, is the news
    """A user's file was not read; `reason` is one short printable phrase, never the file's content."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


class FeatureError(DrainwiseError):
    """A features directory cannot be written or read."""


class PoolError(DrainwiseError):
    """The batch system did not do what was asked."""


class PoolUnreachable(PoolError):  # noqa: N818
    """No answer, incomplete answer or a stale one; no act may follow from it.

    Parameter: `only` names the node or the run that it concerns; "" when it is the batch system as a whole.
    """

    def __init__(self, text: str, only: str = "") -> None:
        self.only = only
        super().__init__(text)


class OrderUnanswered(PoolUnreachable):
    """An order was sent and not answered, or does not show: whether it is carried out is not known."""


class PoolFull(PoolError):  # noqa: N818
    """A limit on jobs is reached: no more are taken for now, and what is there goes on."""


class RunEnded(PoolError):  # noqa: N818 - the fact, not the fault, is the news
    """The run that an order names is not there any more; nothing was sent."""


class ActionRefused(PoolError):  # noqa: N818
    """The batch system refused an order."""


class RightsRefused(ActionRefused):
    """The batch system refuses orders of whoever gives them, whatever run they name.

    Parameter: `only` names the node that refuses; "" when it is the batch system as a whole.
    """

    def __init__(self, text: str, only: str = "") -> None:
        self.only = only
        super().__init__(text)
