"""A claim holds as long as its pilot lives, and not a moment longer."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from drainwise.facts.errors import UsageError
from drainwise.pilot.queues.directory import Claims, put_back
from real_daemons.waiting import wait_for


def names(place: Path) -> set[str]:
    return {path.name for path in place.glob("*.json")}


@pytest.fixture
def queue(tmp_path: Path) -> Path:
    for name in ("a", "b", "c"):
        (tmp_path / f"{name}.json").write_text(name)
    return tmp_path


def recovered(claims: Claims) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    claims.recover(lambda file, pilot: found.append((file, pilot)))
    return found


def test_one_of_two_pilots_has_it(queue: Path) -> None:
    """A file is claimed once; what ends is moved on; the rest goes back."""
    one, two = Claims(str(queue), "one"), Claims(str(queue), "two")
    assert one.take("a.json") and not two.take("a.json") and two.take("b.json")
    one.settle("a.json", "done")
    two.give_back("b.json")
    assert names(queue) == {"b.json", "c.json"} and names(queue / "done") == {"a.json"}
    assert recovered(one) == recovered(two) == []
    one.close()
    two.close()
    assert os.listdir(queue / "running") == []


def test_a_pilot_that_was_killed_loses_its_claims(queue: Path) -> None:
    """HOSTILE 51: while it lives nobody touches them; after kill -9 the next one puts back all of them, once."""
    pid = os.fork()
    if pid == 0:
        dead = Claims(str(queue), "dead")
        for file in ("a.json", "b.json"):
            dead.take(file)
        (queue / "ready").touch()
        signal.pause()
    wait_for((queue / "ready").exists, what="the claims")
    one, two = Claims(str(queue), "one"), Claims(str(queue), "two")
    assert recovered(one) == []
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    assert sorted(recovered(one) + recovered(two)) == [("a.json", "dead"), ("b.json", "dead")]
    assert names(queue) == {"a.json", "b.json", "c.json"}
    assert sorted(os.listdir(queue / "running")) == ["one", "two"]
    one.close()
    two.close()


def test_what_could_not_be_moved_on_is_put_back_by_the_next(queue: Path) -> None:
    """A pilot that ends with a claim left leaves its directory to the next pilot."""
    one = Claims(str(queue), "one")
    one.take("a.json")
    one.close()
    two = Claims(str(queue), "two")
    assert recovered(two) == [("a.json", "one")] and "a.json" in names(queue)
    two.close()


def test_nothing_is_replaced_when_it_is_put_back(queue: Path) -> None:
    """Somebody put in another payload of the same name: both wait."""
    claims = Claims(str(queue), "one")
    claims.take("a.json")
    (queue / "a.json").write_text("another")
    (queue / "a.2.json").write_text("a third")
    claims.give_back("a.json")
    assert (queue / "a.json").read_text() == "another" and (queue / "a.3.json").read_text() == "a"
    claims.close()


def test_put_back_on_a_file_system_without_links(queue: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then by rename."""

    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    (queue / "running").mkdir()
    (queue / "running/x.json").write_text("x")
    monkeypatch.setattr(os, "link", refuse)
    assert put_back(str(queue / "running/x.json"), str(queue)) == "x.json"
    assert (queue / "x.json").read_text() == "x"


def test_a_claim_that_was_never_finished_is_taken_away(queue: Path) -> None:
    """A pilot killed while it made its claim directory leaves an empty one: gone after a minute, not before."""
    unfinished = queue / "running" / ".dead.new"
    unfinished.mkdir(parents=True)
    (unfinished / ".lock").touch()
    one = Claims(str(queue), "one")
    recovered(one)
    assert unfinished.exists()
    os.utime(unfinished, (time.time() - 100, time.time() - 100))
    recovered(one)
    assert not unfinished.exists()
    one.close()


def test_a_queue_that_cannot_hold_claims(tmp_path: Path) -> None:
    """A usage error that names it."""
    (tmp_path / "running").write_text("a file")
    with pytest.raises(UsageError, match="no claims can be made in running/"):
        Claims(str(tmp_path), "one")
