"""The JSON files of `drainwise estimate`, whose faults are named."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable

from drainwise.errors import ConfigurationError
from drainwise.estimate.parameters import Parameters, parameters_from
from drainwise.estimate.settings import Settings, settings_from

_LARGEST = 64_000_000


def settings_in(path: str, activity: str) -> Settings:
    """The settings of a JSON file. Raises ConfigurationError, which names file, key and value."""
    return settings_from(_object(path), path, activity)


def parameters_in(path: str) -> dict[str, Parameters]:
    """The parameters of each task in a JSON file. Raises ConfigurationError, which names file, task, key and value."""
    return {task: parameters_from(found, path, task) for task, found in _object(path).items()}


def _object(path: str) -> dict[str, object]:
    try:
        with open(path, "rb") as stream:
            if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                raise ConfigurationError(path, "", "", path, "a regular file")
            found: object = json.loads(stream.read(_LARGEST), object_pairs_hook=_each_key_once(path))
    except OSError as fault:
        raise ConfigurationError(path, "", "", _reason(fault), "a file that can be read") from None
    except RecursionError:
        raise ConfigurationError(path, "", "", "nested too deeply", "one JSON object") from None
    except ValueError as fault:
        raise ConfigurationError(path, "", "", str(fault)[:100], "one JSON object") from None
    if not isinstance(found, dict):
        raise ConfigurationError(path, "", "", str(found)[:80], "one JSON object")
    return found


def _each_key_once(path: str) -> Callable[[list[tuple[str, object]]], dict[str, object]]:
    def collect(pairs: list[tuple[str, object]]) -> dict[str, object]:
        found: dict[str, object] = {}
        for key, value in pairs:
            if key in found:
                raise ConfigurationError(path, "", key[:80], str(value)[:80], "each key once")
            found[key] = value
        return found

    return collect


def _reason(fault: BaseException) -> str:
    return getattr(fault, "strerror", None) or str(fault)
