"""Settings under JEDI's names, and task parameters: a wrong key or value is named with its file."""

from __future__ import annotations

import pytest

from drainwise.estimate.parameters import JEDI_NAMES, Parameters, parameters_from
from drainwise.estimate.settings import Settings, settings_from
from drainwise.facts.errors import ConfigurationError


def test_jedi_names_are_known() -> None:
    """Those of gdpconfig, alone and with the activity, which counts before the general one."""
    found = settings_from(
        {"SCOUT_SHORT_EXECTIME_user": 9, "SCOUT_SHORT_EXECTIME": 5, "SCOUT_RAMCOUNT_MARGIN": 20}, "f", "user"
    )
    assert (found.scout_short_exectime, found.scout_ramcount_margin) == (9, 20)
    assert settings_from({}, "f") == Settings()
    assert settings_from({"SCOUT_RAMCOUNT_MIN": None}, "f").scout_ramcount_min is None


@pytest.mark.parametrize(
    ("key", "value", "activity"),
    [
        ("SCOUT_RAMCOUNT_RANG", 75, ""),
        ("SCOUT_SHORT_EXECTIME_managed", 9, "user"),
        ("SCOUT_SHORT_EXECTIME_user", 9, ""),
        ("SCOUT_RAMCOUNT_RANK", 101, ""),
        ("SCOUT_RAMCOUNT_RANK", -1, ""),
        ("SCOUT_RAMCOUNT_RANK", "75", ""),
        ("SCOUT_RAMCOUNT_RANK", True, ""),
        ("SCOUT_RAMCOUNT_RANK", float("nan"), ""),
        ("SCOUT_RAMCOUNT_RANK", None, ""),
        ("SCOUTS", 0, ""),
        ("SCOUTS", 2.5, ""),
        ("SCOUT_CHANGE_SR", 1, ""),
        ("MAX_FAILURE_RATE", 2, ""),
        ("SCOUT_DISK_IO_CAP", float("inf"), ""),
    ],
)
def test_a_wrong_setting_is_named(key: str, value: object, activity: str) -> None:
    """File, key and value stand in one line."""
    with pytest.raises(ConfigurationError) as caught:
        settings_from({key: value}, "gdp.json", activity)
    assert all(part in str(caught.value) for part in ("gdp.json", key, repr(str(value))))


def test_every_parameter_has_jedi_s_name() -> None:
    """The table names all fields, and reading by these names fills them."""
    assert set(JEDI_NAMES) == set(vars(Parameters()))
    found = parameters_from({"cpuTime": 12, "ramCountUnit": "MBPerCoreFixed", "nGBPerJob": None}, "f", "t")
    assert (found.cpu_time, found.ram_count_unit, found.n_gb_per_job) == (12, "MBPerCoreFixed", None)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("cputime", 1),
        ("cpuTime", -1),
        ("cpuTime", "1"),
        ("cpuTime", float("nan")),
        ("cpuTimeUnit", "HS06"),
        ("ramCountUnit", 7),
        ("cpuEfficiency", 101),
        ("corePower", 0),
        ("baseTime", None),
        ("inputRatio", 0),
    ],
)
def test_a_wrong_parameter_is_named(key: str, value: object) -> None:
    """File, task, key and value stand in one line."""
    with pytest.raises(ConfigurationError) as caught:
        parameters_from({key: value}, "tasks.json", "task7")
    assert all(part in str(caught.value) for part in ("tasks.json", "task7", key, repr(str(value))))


def test_parameters_are_an_object() -> None:
    """A list or a number under a task's name is refused."""
    with pytest.raises(ConfigurationError, match="expected a table"):
        parameters_from([1], "tasks.json", "task7")
