"""What systemd says of the agent's unit."""

from __future__ import annotations

import subprocess
import time

from drainwise.agent.health import Keeper

UNIT = "drainwise-agent"

_ASKED = "LoadState,UnitFileState,ActiveState,SubState,NRestarts,Result,ExecMainStatus,ActiveEnterTimestampMonotonic"
_SECONDS = 5.0
_YOUNG = 60.0  # seconds; an agent that was started again and again has not lived longer
_MANY = 3


def systemd_keeper(program: str = "systemctl") -> Keeper | None:
    """What keeps the agent of this machine below systemd; None without systemd, or a unit in use."""
    command = [program, "show", UNIT, f"--property={_ASKED}"]
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return keeper_of(ran.stdout, time.monotonic()) if ran.returncode == 0 else None


def keeper_of(answer: str, now: float) -> Keeper | None:
    """The keeper by what `systemctl show` printed; `now` in s of the monotonic clock."""
    said = dict(line.split("=", 1) for line in answer.splitlines() if "=" in line)
    active, sub = said.get("ActiveState", ""), said.get("SubState", "")
    enabled = said.get("UnitFileState", "").startswith("enabled")
    if said.get("LoadState") != "loaded" or not (enabled or active in {"active", "activating", "failed", "reloading"}):
        return None
    starts, since = _whole(said.get("NRestarts")), _whole(said.get("ActiveEnterTimestampMonotonic")) / 1e6
    status = f"status {said.get('ExecMainStatus', '?')}, {said.get('Result', '?')}"
    fault, look = "", f"journalctl -u {UNIT} -n 20"
    if sub == "auto-restart" or active == "failed":
        fault = f"it ended ({status})"
    elif active == "inactive":
        fault, look = "its unit is enabled, and it is not running", f"systemctl start {UNIT}"
    elif starts >= _MANY and (active == "activating" or now - since < _YOUNG):
        fault = f"it was started again {starts} times, the last time less than a minute ago"
    return Keeper("systemd", 0, fault, look)


def _whole(text: str | None) -> int:
    return int(text) if text is not None and text.isdigit() else 0
