"""The site's command that destroys a virtual machine is run when it is safe to run, and nothing else is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from apart import apart
from drainwise.cli.main import main
from drainwise.facts.errors import FeatureError
from drainwise.features.read import open_features
from drainwise.features.virtual_machine import checked_command

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: the command must be root's")


@pytest.fixture
def command(tmp_path: Path) -> Path:
    """A command that leaves a mark, and its machine's features."""
    command = tmp_path / "poweroff"
    command.write_text(f'#!/bin/sh\necho "$#" > {tmp_path}/mark\nexit 7\n')
    command.chmod(0o755)
    (tmp_path / "machine").mkdir()
    (tmp_path / "machine/shutdown_command").write_text(f"{command}\n")
    return command


def test_it_is_run_and_its_code_is_ours(command: Path) -> None:
    assert main(["features", "end-machine", "--machine", str(command.parent / "machine")]) == 7
    assert (command.parent / "mark").read_text() == "0\n"


@apart
def test_a_pilot_runs_it_at_its_end(command: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the queue is empty and its report is written."""
    queue = command.parent / "queue"
    queue.mkdir()
    monkeypatch.setenv("MACHINEFEATURES", str(command.parent / "machine"))
    monkeypatch.chdir(command.parent)
    words = ["pilot", "run", "--cores", "1", "--seconds", "60", "--idle-limit", "0", "--queue", str(queue)]
    assert main([*words, "--end-machine"]) == 7
    assert (command.parent / "mark").exists()


@pytest.mark.parametrize(
    ("mode", "owner", "reason"),
    [
        (0o775, 0, "others than root"),
        (0o757, 0, "others than root"),
        (0o755, 4711, "others than root"),
        (0o644, 0, "may not run"),
    ],
)
def test_what_another_could_have_written_is_not_run(command: Path, mode: int, owner: int, reason: str) -> None:
    command.chmod(mode)
    os.chown(command, owner, 0)
    with pytest.raises(FeatureError, match=reason):
        checked_command(open_features(str(command.parent / "machine")))


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("poweroff", "absolute path"),
        ("/absent/poweroff", "No such file"),
        ("/tmp", "found a directory"),
        ("/bin/sh;x", "No such"),
    ],
)
def test_what_is_no_command_is_said(command: Path, value: str, reason: str) -> None:
    (command.parent / "machine/shutdown_command").write_text(f"{value}\n")
    with pytest.raises(FeatureError, match=reason):
        checked_command(open_features(str(command.parent / "machine")))


def test_without_the_key_there_is_no_command(command: Path) -> None:
    (command.parent / "machine/shutdown_command").unlink()
    with pytest.raises(FeatureError, match="no shutdown_command"):
        checked_command(open_features(str(command.parent / "machine")))
