"""What systemd says of the agent's unit becomes a keeper, and a fault where it does not run."""

from __future__ import annotations

from pathlib import Path

import pytest

from drainwise.agent.health import service_manager_of, systemd_manager

RUNS = {
    "LoadState": "loaded",
    "UnitFileState": "enabled",
    "ActiveState": "active",
    "SubState": "running",
    "NRestarts": "0",
    "Result": "success",
    "ExecMainStatus": "0",
    "ActiveEnterTimestampMonotonic": "1000000000",
}
NOW = 5000.0


def fault(**changed: str) -> str | None:
    """The fault of a unit with these properties; None when it is nobody's keeper."""
    keeper = service_manager_of("".join(f"{name}={value}\n" for name, value in {**RUNS, **changed}.items()), NOW)
    return None if keeper is None else keeper.fault


def test_an_agent_that_runs_has_no_fault() -> None:
    """Also one that was started again some times in its life, and one that has just been started."""
    assert fault() == ""
    assert fault(NRestarts="7") == ""
    assert fault(ActiveEnterTimestampMonotonic="4990000000") == ""


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"ActiveState": "failed", "Result": "exit-code", "ExecMainStatus": "2"}, "it ended (status 2, exit-code)"),
        ({"ActiveState": "activating", "SubState": "auto-restart", "ExecMainStatus": "1"}, "it ended (status 1"),
        ({"ActiveState": "activating", "SubState": "start", "NRestarts": "3"}, "started again 3 times"),
        ({"NRestarts": "9", "ActiveEnterTimestampMonotonic": "4990000000"}, "started again 9 times"),
        ({"ActiveState": "inactive", "SubState": "dead"}, "enabled, and it is not running"),
    ],
)
def test_an_agent_that_dies_is_told(changed: dict[str, str], words: str) -> None:
    """Between two starts it looks alive."""
    assert words in str(fault(**changed))


@pytest.mark.parametrize(
    "changed",
    [
        {"LoadState": "not-found", "UnitFileState": "", "ActiveState": "inactive"},
        {"UnitFileState": "disabled", "ActiveState": "inactive", "SubState": "dead"},
    ],
)
def test_a_unit_that_is_not_used_keeps_nobody(changed: dict[str, str]) -> None:
    assert fault(**changed) is None


@pytest.mark.parametrize("program", ["/does/not/exist", "false"])
def test_a_machine_without_systemd(program: str) -> None:
    assert systemd_manager(program) is None


def test_a_unit_that_does_not_run_is_named(tmp_path: Path) -> None:
    """It has one name, whoever brought it."""
    lines = "".join(f"{name}={value}\n" for name, value in {**RUNS, "ActiveState": "inactive"}.items())
    program = tmp_path / "systemctl"
    program.write_text(f"#!/bin/sh\n[ \"$1 $2\" = 'show drainwise-agent' ] && cat <<'END'\n{lines}END\n")
    program.chmod(0o755)
    manager = systemd_manager(str(program))
    assert manager is not None and manager.look == "systemctl start drainwise-agent"
