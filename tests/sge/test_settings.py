"""The table [backends.sge]: the keys of open-lmake's documentation and ours; what is wrong is named by key."""

from __future__ import annotations

import pytest

from drainwise.facts.errors import ConfigurationError, UsageError
from drainwise_launch.sge.submission import SgeSettings, sge_settings

LEAST = {"bin": "/usr/bin", "root": "/var/lib/gridengine"}


def test_bin_and_root_are_enough() -> None:
    assert sge_settings(LEAST, "", "f.toml") == SgeSettings("/usr/bin", "/var/lib/gridengine")
    assert sge_settings(LEAST, "", "f.toml").n_max_queued_jobs == 10


def test_all_keys_arrive() -> None:
    table: dict[str, object] = {
        **LEAST,
        "cell": "c",
        "cluster": "p6444",
        "default_prio": -5,
        "cpu_resource": "cpu_r",
        "mem_resource": "mem_r",
        "tmp_resource": "tmp_r",
        "n_max_queued_jobs": 50,
        "repo_key": "r:",
    }
    assert vars(sge_settings(table, "", "f.toml")).items() >= table.items()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("bin", "usr/bin"),
        ("bin", 7),
        ("root", ""),
        ("default_prio", 1025),
        ("default_prio", -1024),
        ("default_prio", True),
        ("default_prio", "0"),
        ("n_max_queued_jobs", 0),
        ("cpu_resource", "cpu_r=1,x"),
        ("mem_resource", "mem r"),
        ("cell", "a\nb"),
        ("repo_key", "x" * 101),
        ("command_seconds", 0),
        ("repo", "x"),
    ],
)
def test_a_wrong_value_is_named(key: str, value: object) -> None:
    with pytest.raises(ConfigurationError, match=rf"f\.toml: \[backends\.sge\] {key} = "):
        sge_settings({**LEAST, key: value}, "", "f.toml")


@pytest.mark.parametrize("key", ["bin", "root"])
def test_grid_engine_is_not_looked_for(key: str) -> None:
    with pytest.raises(ConfigurationError, match=f"{key} = .*absolute path"):
        sge_settings({name: value for name, value in LEAST.items() if name != key}, "", "f.toml")


@pytest.mark.parametrize(("options", "priority"), [("-p -7", -7), ("-7", -7), ("-p 12", 12), ("", -1)])
def test_the_command_line_gives_the_priority(options: str, priority: int) -> None:
    assert sge_settings({**LEAST, "default_prio": -1}, options, "f").default_prio == priority


@pytest.mark.parametrize("options", ["-q long.q", "-p", "-p x", "-p 2000", "-p 1 -p 2", "'", "-p 1e3"])
def test_it_gives_nothing_else(options: str) -> None:
    with pytest.raises(UsageError, match="options for sge"):
        sge_settings(LEAST, options, "f")
