"""The daemon sleeps until it is woken, and one that cannot be woken loses nothing but time."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

from drainwise.local.wake import WAKE, Sleeper, wake_daemon

AGES = 1e6
"""Seconds that nobody waits for: what ends, ends for another reason."""


def slept(sleeper: Sleeper, seconds: float) -> float:
    before = time.monotonic()
    sleeper.sleep(seconds)
    return time.monotonic() - before


def test_a_clients_word_ends_the_sleep_once(tmp_path: Path) -> None:
    sleeper = Sleeper(str(tmp_path))
    wake_daemon(str(tmp_path))
    wake_daemon(str(tmp_path))
    sleeper.sleep(AGES)
    assert slept(sleeper, 0.05) >= 0.04
    sleeper.close()


def test_without_a_daemon_a_client_is_not_held_up(tmp_path: Path) -> None:
    wake_daemon(str(tmp_path))
    os.mkfifo(tmp_path / WAKE)
    wake_daemon(str(tmp_path))


def test_a_thousand_words_at_once_hold_up_nobody(tmp_path: Path) -> None:
    sleeper = Sleeper(str(tmp_path))
    for _ in range(70_000):
        sleeper.wake()
    wake_daemon(str(tmp_path))
    while slept(sleeper, 0.02) < 0.01:
        pass
    sleeper.close()


def test_the_end_of_a_watched_process_ends_the_sleep_once(tmp_path: Path) -> None:
    """Once: whoever cannot take note of the end at that moment must not spin."""
    sleeper = Sleeper(str(tmp_path))
    child = subprocess.Popen(["/bin/sleep", "0.1"])
    assert sleeper.watch("a", child.pid)
    sleeper.sleep(AGES)
    assert slept(sleeper, 0.05) >= 0.04
    child.wait()
    sleeper.close()


def test_nothing_is_left_behind_and_what_a_killed_one_left_does_not_matter(tmp_path: Path) -> None:
    Sleeper(str(tmp_path))  # never closed, as by a kill -9
    sleeper = Sleeper(str(tmp_path))
    wake_daemon(str(tmp_path))
    sleeper.sleep(AGES)
    sleeper.close()
    assert list(tmp_path.iterdir()) == []
