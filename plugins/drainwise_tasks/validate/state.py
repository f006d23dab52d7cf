"""The state of a validation in a file: written whole or not at all, and held by one process at a time."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any, TypeVar

from drainwise.common.local_file import read_small, replace_file, split_path
from drainwise.common.process_lock import ProcessLock
from drainwise.common.typed_table import (
    Kind,
    anything,
    checked,
    choice,
    list_of,
    optional,
    read_json,
    read_table,
    whole,
)
from drainwise.facts.errors import FeatureError, PoolError, UsageError
from drainwise_tasks.validate import machine
from drainwise_tasks.validate.checks import Check, RequestEstimates
from drainwise_tasks.validate.machine import Step, Validation
from drainwise_tasks.validate.measurement import Measurement
from drainwise_tasks.validate.request import as_json, request_of

FORMAT = 1
_LONGEST, _LARGEST = 1 << 22, 1 << 62

_FOLLOWING = "following"
"""The key of what belongs to further sequences."""

T = TypeVar("T", Check, RequestEstimates, Measurement)


class StateFile:
    """The state in `path`, locked for this process (`path`.lock) until it is closed.

    Raises PoolError where another process holds it, UsageError where it cannot be kept there.
    """

    def __init__(self, path: str) -> None:
        self.path = os.path.abspath(path)
        directory, self._name = split_path(self.path)
        try:
            self._directory = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as fault:
            raise UsageError(
                f"{directory}: no place for a validation's state: {fault.strerror}; --state names one"
            ) from None
        self._lock = ProcessLock(f"{self.path}.lock")
        try:
            if not self._lock.take():
                raise PoolError(f"{self.path}: another process runs this validation; it goes on there")
        except OSError as fault:
            os.close(self._directory)
            raise UsageError(f"{self._lock.path}: cannot be written: {fault.strerror}; --state names one") from None
        except PoolError:
            os.close(self._directory)
            raise

    def __enter__(self) -> StateFile:
        return self

    def __exit__(self, *_: object) -> None:
        self._lock.release()
        os.close(self._directory)

    def load(self) -> Validation | None:
        """Return the state; None before the first save. Raises UsageError for a file that is none."""
        return read_state(self.path)

    def save(self, validation: Validation) -> None:
        """Put the state in its place by rename, and wait until it is on disk. Raises PoolError."""
        try:
            replace_file(self._name, text_of(validation), self._directory, durable=True)
            os.fsync(self._directory)
        except OSError as fault:
            raise PoolError(f"{self.path}: the state cannot be written: {fault.strerror}") from None


def read_state(path: str) -> Validation | None:
    """Return the state in a file, also while another process holds it; None where there is none. Raises UsageError."""
    try:
        found = read_small(path, _LONGEST)
    except FeatureError as fault:
        raise UsageError(f"{path}: {fault}") from None
    return None if found is None else validation_in(found[0], path)


def text_of(validation: Validation) -> bytes:
    """Return a validation as JSON, which `validation_in` reads to an equal one."""
    value = {"format": FORMAT, **asdict(validation), "request": as_json(validation.request)}
    return (json.dumps(value, indent=1, allow_nan=False) + "\n").encode()


def validation_in(text: bytes, file: str) -> Validation:
    """Return the validation in a state file; `file` is named in faults. Raises UsageError."""

    def wrong(key: str, value: str, expected: str) -> UsageError:
        what = f"{key} = {value!a}: expected {expected}" if key else f"{value!a}: expected {expected}"
        return UsageError(f"{file}: not the state of a validation ({what}); --again begins a new one")

    try:
        values = read_table(read_json(text.decode("ascii", "replace"), wrong), _VALIDATION, wrong, _VALIDATION)
    except RecursionError:
        raise wrong("", "nested too deeply", "a validation") from None
    steps = tuple(Step(**read_table(one, _STEP, wrong, _STEP)) for one in values["steps"])
    return Validation(
        values["identifier"],
        request_of(values["request"], file),
        steps,
        values["state"],
        values["reason"],
        values["backend"],
    )


def _fact(kind: type[T]) -> Kind[T]:
    """Return the kind of facts of numbers, words and truths, with those of further sequences."""
    names = {field.name for field in fields(kind)} - {_FOLLOWING}

    def read(value: object) -> T:
        if not isinstance(value, dict) or set(value) - {_FOLLOWING} != names:
            raise ValueError
        if _FOLLOWING not in value:
            return kind(**value)
        return kind(**{**value, _FOLLOWING: list_of(made, "").read(value[_FOLLOWING])})

    made: Kind[T] = Kind(f"the values of a {kind.__name__}", read)
    return made


_TEXT = checked("a text", lambda value: isinstance(value, str))
_COUNT = whole(1, _LARGEST)
_ESTIMATES = _fact(RequestEstimates)
_STEP: Mapping[str, Kind[Any]] = {
    **dict.fromkeys(("cores", "attempt", "memory"), _COUNT),
    "loss": whole(0, machine.MOST_LOSSES),
    "state": choice(*machine.STEP_STATES),
    "estimates": _ESTIMATES,
    "adjusted": optional(_ESTIMATES),
    "measurement": optional(_fact(Measurement)),
    "checks": list_of(_fact(Check), "a list of checks"),
    **dict.fromkeys(("handle", "note"), _TEXT),
}
_VALIDATION: Mapping[str, Kind[Any]] = {
    "format": whole(FORMAT, FORMAT),
    "steps": list_of(anything(), "a list of steps", least=1),
    "request": anything(),
    "state": choice(*machine.STATES),
    **dict.fromkeys(("identifier", "reason", "backend"), _TEXT),
}
