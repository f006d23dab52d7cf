"""Settings under JEDI's names, and task parameters: a wrong key or value is named with its file."""

from __future__ import annotations

import pytest

from drainwise.facts.errors import ConfigurationError
from drainwise_tasks.estimate.parameters import JEDI_NAMES, Parameters, parameters_from
from drainwise_tasks.estimate.settings import Settings, settings_from


def test_jedi_names_are_known() -> None:
    """Those of gdpconfig, alone and with the activity, which counts before the general one."""
    found, unused = settings_from(
        {"SCOUT_SHORT_EXECTIME_user": 9, "SCOUT_SHORT_EXECTIME": 5, "SCOUT_RAMCOUNT_MARGIN": 20}, "f", "user"
    )
    assert (found.scout_short_exectime, found.scout_ramcount_margin, unused) == (9, 20, ())
    assert settings_from({}, "f") == (Settings(), ())
    assert settings_from({"SCOUT_RAMCOUNT_MIN": None}, "f")[0].scout_ramcount_min is None


def test_names_that_no_rule_knows_stop_nothing() -> None:
    """gdpconfig has many more, and those of other activities; each is told."""
    others = {"SCOUT_MIN_OK_RATE_EXHAUSTED_user": 0.5, "SCOUT_SHORT_EXECTIME_managed": 9, "SCOUT_RAMCOUNT_RANG": 75}
    found, unused = settings_from({**others, "SCOUT_SHORT_EXECTIME_user": 8}, "f", "user")
    assert found == Settings(scout_short_exectime=8) and unused == tuple(sorted(others))
    assert settings_from({"SCOUT_SHORT_EXECTIME_user": 9}, "f") == (Settings(), ("SCOUT_SHORT_EXECTIME_user",))


@pytest.mark.parametrize(
    ("key", "value", "activity"),
    [
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
    found, unused = parameters_from({"cpuTime": 12, "ramCountUnit": "MBPerCoreFixed", "nGBPerJob": None}, "f", "t")
    assert not unused and (found.cpu_time, found.ram_count_unit, found.n_gb_per_job) == (12, "MBPerCoreFixed", None)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("ramUnit", "stones"),
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


def test_names_of_panda_s_tables_are_known_and_others_stop_nothing() -> None:
    """baseWalltime is baseTime, ramUnit is ramCountUnit; what nothing knows is told."""
    stated = {"baseWalltime": 60, "ramUnit": "MBPerCoreFixed", "taskName": "x", "cputime": 1}
    found, unused = parameters_from(stated, "f", "t")
    assert found == Parameters(base_time=60, ram_count_unit="MBPerCoreFixed") and unused == ("cputime", "taskName")
    with pytest.raises(ConfigurationError, match="baseTime or baseWalltime, not both"):
        parameters_from({"baseWalltime": 60, "baseTime": 60}, "f", "t")


def test_parameters_are_an_object() -> None:
    """A list or a number under a task's name is refused."""
    with pytest.raises(ConfigurationError, match="expected a table"):
        parameters_from([1], "tasks.json", "task7")
