"""The state of a validation in a file: written whole or not at all, and held by one process at a time."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from typing import TypeVar

from drainwise.common.local_file import read_small, replace_file, split_path
from drainwise.common.process_lock import ProcessLock
from drainwise.facts.errors import FeatureError, PoolError, UsageError
from drainwise_tasks.validate import machine
from drainwise_tasks.validate.checks import Check, RequestEstimates
from drainwise_tasks.validate.machine import Step, Validation
from drainwise_tasks.validate.measurement import Measurement
from drainwise_tasks.validate.request import as_json, request_of

FORMAT = 1
_LONGEST = 1 << 22
_STATES = (machine.GOING, machine.PASSED, machine.REFUSED)
_STEPS = (machine.PLANNED, machine.STARTED, machine.MEASURED, machine.FAILED, machine.LOST, machine.CANCELLED)

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
    value = {
        "format": FORMAT,
        "identifier": validation.identifier,
        "request": as_json(validation.request),
        "steps": [asdict(step) for step in validation.steps],
        "state": validation.state,
        "reason": validation.reason,
        "backend": validation.backend,
    }
    return (json.dumps(value, indent=1, allow_nan=False) + "\n").encode()


def validation_in(text: bytes, file: str) -> Validation:
    """Return the validation in a state file; `file` is named in faults. Raises UsageError."""
    try:
        value = json.loads(text)
        if value["format"] != FORMAT:
            raise ValueError(f"format {value['format']!r}")
        validation = Validation(
            str(value["identifier"]),
            request_of(value["request"], file),
            tuple(_step(one) for one in value["steps"]),
            _one_of(value["state"], _STATES),
            str(value["reason"]),
            str(value["backend"]),
        )
        if not validation.steps:
            raise ValueError("no steps")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as fault:
        what = f"{type(fault).__name__}: {ascii(str(fault))[1:-1][:100]}"
        raise UsageError(f"{file}: not the state of a validation ({what}); --again begins a new one") from None
    return validation


def _step(value: Mapping[str, object]) -> Step:
    checks = value["checks"]
    if not isinstance(checks, list):
        raise TypeError("checks")
    return Step(
        cores=_count(value["cores"]),
        attempt=_count(value["attempt"]),
        memory=_count(value["memory"]),
        estimates=_fact(RequestEstimates, value["estimates"]),
        loss=0 if value["loss"] == 0 else _count(value["loss"]),
        state=_one_of(value["state"], _STEPS),
        handle=str(value["handle"]),
        measurement=None if value["measurement"] is None else _fact(Measurement, value["measurement"]),
        checks=tuple(_fact(Check, check) for check in checks),
        adjusted=None if value["adjusted"] is None else _fact(RequestEstimates, value["adjusted"]),
        note=str(value["note"]),
    )


def _fact(kind: type[T], value: object) -> T:
    """Return a fact of numbers, words and truths, with those of further sequences. Raises TypeError, ValueError."""
    names = {field.name for field in fields(kind)} - {_FOLLOWING}
    if not isinstance(value, dict) or set(value) - {_FOLLOWING} != names:
        raise TypeError(kind.__name__)
    if value.get(_FOLLOWING):
        others = tuple(_fact(kind, one) for one in value[_FOLLOWING])
        return replace(_fact(kind, {name: value[name] for name in names}), following=others)  # type: ignore[call-arg]
    value = {name: value[name] for name in names}
    if any(isinstance(one, float) and not math.isfinite(one) for one in value.values()):
        raise ValueError(kind.__name__)
    return kind(**value)


def _count(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise TypeError(ascii(value)[:40])
    return value


def _one_of(value: object, words: tuple[str, ...]) -> str:
    if value not in words:
        raise ValueError(ascii(value)[:40])
    return str(value)
