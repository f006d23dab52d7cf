"""The JSON files of `drainwise estimate`, whose faults are named."""

from __future__ import annotations

import json

from drainwise.errors import ConfigurationError
from drainwise.estimate.parameters import Parameters, parameters_from
from drainwise.estimate.settings import Settings, settings_from
from drainwise.written_file import keys_once, read_text

_LARGEST = 64_000_000


def settings_in(path: str, activity: str) -> Settings:
    """The settings of a JSON file. Raises ConfigurationError, which names file, key and value."""
    return settings_from(_object(path), path, activity)


def parameters_in(path: str) -> dict[str, Parameters]:
    """The parameters of each task in a JSON file. Raises ConfigurationError, which names file, task, key and value."""
    return {task: parameters_from(found, path, task) for task, found in _object(path).items()}


def _object(path: str) -> dict[str, object]:
    text = read_text(path, _LARGEST, "a file that can be read", "one JSON object")
    try:
        found: object = json.loads(text, object_pairs_hook=keys_once(path, "each key once"))
    except RecursionError:
        raise ConfigurationError(path, "", "", "nested too deeply", "one JSON object") from None
    except ValueError as fault:
        raise ConfigurationError(path, "", "", str(fault)[:100], "one JSON object") from None
    if not isinstance(found, dict):
        raise ConfigurationError(path, "", "", str(found)[:80], "one JSON object")
    return found
