"""The table [backends.slurm] and the command line's options, those of open-lmake's documentation."""

from __future__ import annotations

import pytest

from drainwise.facts.errors import ConfigurationError, UsageError
from drainwise_launch.slurm.submission import SlurmLaunchSettings, command_line_options, slurm_settings


def test_nothing_is_needed() -> None:
    assert slurm_settings({}, "", "f.toml") == SlurmLaunchSettings()
    assert SlurmLaunchSettings().n_max_queued_jobs == 10 and not SlurmLaunchSettings().use_nice


def test_all_keys_arrive() -> None:
    table: dict[str, object] = {
        "config": "/etc/slurm.conf",
        "n_max_queued_jobs": 50,
        "repo_key": "night shift/",
        "use_nice": True,
        "bin": "/opt/bin",
        "init_timeout": 2.5,
        "licenses": "matlab, tool@server",
    }
    assert vars(slurm_settings(table, "", "f.toml")).items() >= table.items()


def test_more_licences_are_names_with_commas_between_them() -> None:
    assert slurm_settings({"licenses": "matlab, tool@server"}, "", "f").more_licenses == {"matlab", "tool@server"}
    assert not SlurmLaunchSettings().more_licenses


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("init_timeout", 0),
        ("init_timeout", float("nan")),
        ("init_timeout", "10"),
        ("licenses", ""),
        ("licenses", "a,,b"),
        ("licenses", ["a"]),
        ("config", "slurm.conf"),
        ("config", 1),
        ("n_max_queued_jobs", 0),
        ("n_max_queued_jobs", "10"),
        ("n_max_queued_jobs", True),
        ("repo_key", 1),
        ("repo_key", "a\nb"),
        ("repo_key", "x" * 61),
        ("use_nice", 1),
        ("use_nice", "yes"),
        ("lib_slurm", "/usr/lib/libslurm.so"),
        ("options", {}),
    ],
)
def test_a_wrong_value_is_named(key: str, value: object) -> None:
    with pytest.raises(ConfigurationError, match=rf"f\.toml: \[backends\.slurm\] {key} = "):
        slurm_settings({key: value}, "", "f.toml")


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("", {}),
        ("-c 4 --mem 2G --tmp=100", {"cpus-per-task": "4", "mem": "2G", "tmp": "100"}),
        ("-C 'a&b' -x node[1-3]", {"constraint": "a&b", "exclude": "node[1-3]"}),
        ("--gres gpu:1 -L matlab:2", {"gres": "gpu:1", "licenses": "matlab:2"}),
        ("-w node1 -p long -q high --reservation r", None),
        ("-plong -c4", {"partition": "long", "cpus-per-task": "4"}),
        ("--wckey k1", {"wckey": "k1"}),
        ("--partition=long --qos=high", {"partition": "long", "qos": "high"}),
    ],
)
def test_the_options_of_the_table(text: str, options: dict[str, str] | None) -> None:
    if options is None:
        options = {"nodelist": "node1", "partition": "long", "qos": "high", "reservation": "r"}
    assert command_line_options(text) == options


@pytest.mark.parametrize(
    "text", ["--wrap=id", "-J x", "long", "-p", "-p -c 4", "--mem=", "'", "-p a\x1bb", "--export=ALL"]
)
def test_no_others(text: str) -> None:
    with pytest.raises(UsageError, match="options for slurm"):
        command_line_options(text)


@pytest.mark.parametrize("text", ["-h", "-c 4 --help"])
def test_help_is_the_table(text: str) -> None:
    with pytest.raises(UsageError, match=r"^options for slurm: -A\|--account NAME, -c\|--.*--reservation .*-h\|--help"):
        command_line_options(text)
