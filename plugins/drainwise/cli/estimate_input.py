"""The JSON files of `drainwise estimate`, whose faults are named."""

from __future__ import annotations

from drainwise.errors import ConfigurationError
from drainwise.estimate.parameters import Parameters, parameters_from
from drainwise.estimate.settings import Settings, settings_from
from drainwise.written_file import from_json, read_text

_LARGEST = 64_000_000


def settings_in(path: str, activity: str) -> Settings:
    """The settings of a JSON file. Raises ConfigurationError, which names file, key and value."""
    return settings_from(_object(path), path, activity)


def parameters_in(path: str) -> dict[str, Parameters]:
    """The parameters of each task in a JSON file. Raises ConfigurationError, which names file, task, key and value."""
    return {task: parameters_from(found, path, task) for task, found in _object(path).items()}


def _object(path: str) -> dict[str, object]:
    found = from_json(path, read_text(path, _LARGEST, "a file that can be read", "one JSON object"))
    if not isinstance(found, dict):
        raise ConfigurationError(path, "", "", str(found)[:80], "one JSON object")
    return found
