"""The node's files that jobs could not use, as the cron finds them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from drainwise.htcondor.node import cron_state
from drainwise.htcondor.node.cron_state import unusable_files


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """All that there must be, in directories of its own."""
    for name, mode in (("pilot-cron", 0o755), ("prepare-hook", 0o755), ("update-hook", 0o755), ("node.conf", 0o644)):
        (tmp_path / name).write_text("")
        (tmp_path / name).chmod(mode)
    for name in ("hooks.conf", "prepare_hook.py", "update_hook.py"):
        (tmp_path / name).write_text("")
        (tmp_path / name).chmod(0o644)
    monkeypatch.setattr(sys, "argv", [f"{tmp_path}/pilot-cron"])
    monkeypatch.setattr(cron_state, "__file__", f"{tmp_path}/cron_state.py")
    return tmp_path


def found(node: Path) -> list[str]:
    return [Path(path).name for path in unusable_files(f"{node}/node.conf")]


def test_a_sound_node_has_none(node: Path) -> None:
    assert found(node) == []


@pytest.mark.parametrize(
    "name", ["prepare-hook", "update-hook", "hooks.conf", "node.conf", "prepare_hook.py", "update_hook.py"]
)
def test_what_is_gone_or_closed_to_the_jobs_users_is_named(node: Path, name: str) -> None:
    """Also what only root can read: as an installation under umask 077 leaves it."""
    (node / name).chmod(0o700)
    assert found(node) == [name]
    (node / name).unlink()
    assert found(node) == [name]
