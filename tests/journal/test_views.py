"""What a user may read of its own pilots without the journal: enough to explain, and nothing of anybody else."""

from __future__ import annotations

import json
import os
import pwd
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.facts.errors import DrainwiseError
from drainwise.journal import views
from drainwise.journal.entries import ended_event
from drainwise.journal.event import Event, Outcome
from drainwise.journal.explain import Sought, explain, in_words
from drainwise.journal.file import JournalFile
from drainwise.journal.views import ALL, MOST_VIEWS, OWNER, JournalWithViews, own_events, view_name, views_in
from drainwise.pool.facts import Ending

from .facts import FIRST, NOW, decision, orders, remembering

NOBODY = pwd.getpwnam("nobody")


def events(user: str = "alice") -> list[Event]:
    """A decision, an order of each kind and an end, with secrets in them."""
    given_orders = orders(outcome=Outcome.DONE)
    [order] = [one for one in remembering(*given_orders).open_orders().values() if one.run == FIRST.run]
    found: list[Event] = [
        decision(),
        {**given_orders[0], "identity": {"subject": "/CN=secret"}, "room": ROOM},
        *given_orders[1:],
        ended_event(order, Ending(FIRST.run, NOW + 100, False, 3.0), NOW + 100),
    ]
    return [json.loads(json.dumps(one).replace('"alice"', json.dumps(user))) for one in found]


ROOM = {"place": "node1", "jobs": [{"kind": "bobs", "account": "group_b", "jobs": 1, "asks": "8", "example": "7.0"}]}


def written(place: Path, readers: str, events: list[Event], said: list[str] | None = None) -> Path:
    """The directory of views after these events."""
    said = [] if said is None else said
    journal = JournalWithViews(JournalFile(str(place / "journal")), str(place / "x.explain.d"), readers, said.append)
    for event in events:
        journal.write(event)
    return place / "x.explain.d"


def test_a_view_explains_as_the_journal_does(tmp_path: Path) -> None:
    """But for the names of other accounts and who sent the pilot."""
    directory = written(tmp_path, ALL, events())
    [view] = views_in(str(directory))
    [ours] = explain([view], Sought("slot1_1@node1"))
    [whole] = explain([str(tmp_path / "journal")], Sought("slot1_1@node1"))
    lines = ["\n".join(in_words(one)) for one in (ours, whole)]
    assert "group_b (16)" in lines[1] and "other accounts (16)" in lines[0]
    for words in ("ordered to end by", "least-waste: leaves by itself", "left by itself", "promised", "2 ordered and"):
        assert words in lines[0] and words in lines[1]


def test_a_view_names_nobody_else(tmp_path: Path) -> None:
    both = [*events(), *events(user="carol")]
    directory = written(tmp_path, ALL, both)
    assert sorted(os.listdir(directory)) == ["alice.jsonl", "carol.jsonl"]
    text = (directory / "alice.jsonl").read_text()
    assert "alice" in text
    for secret in ("carol", "group_b", "bob", "secret", '7.0"'):
        assert secret not in text


def test_what_was_not_acted_on_and_other_events_are_in_no_view() -> None:
    assert own_events({**decision(), "acting": False}) == {}
    for kind in ("state", "need", "payloads", "pilots", "followup", "demand", "returned"):
        assert own_events({"event": kind, "user": "alice", "time": NOW, "version": 2}) == {}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_the_user_of_that_name_alone_may_read_it(tmp_path: Path) -> None:
    """And may not write it; with `all` everybody may read it."""
    for place in (tmp_path, *tmp_path.parents[:3]):
        place.chmod(0o755)
    named = written(
        tmp_path, OWNER, [*events(user="nobody@pool"), *events(user="daemon"), *events(user="no such user")]
    )
    found = {path.name: stat.S_IMODE(path.stat().st_mode) & 0o007 for path in named.iterdir()}
    assert set(found.values()) == {0}
    as_nobody(lambda: readable(named, ["nobody@pool.jsonl"]))
    (tmp_path / "other").mkdir(mode=0o755)
    free = written(tmp_path / "other", ALL, events(user="daemon"))
    as_nobody(lambda: readable(free, ["daemon.jsonl"]))


def readable(directory: Path, names: list[str]) -> bool:
    """Whether whoever runs this may read these views and no other, and write none."""
    views = views_in(str(directory))
    return [Path(one).name for one in views] == names and not any(
        os.access(one, os.W_OK) for one in (directory, *directory.iterdir())
    )


def as_nobody(look: Callable[[], bool]) -> None:
    """Look as another user."""
    child = os.fork()
    if child == 0:
        os.setgroups([])
        os.setgid(NOBODY.pw_gid)
        os.setuid(NOBODY.pw_uid)
        os._exit(0 if look() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_view_is_bounded_and_so_is_their_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The older half goes; of the files the one that was written to least recently."""
    monkeypatch.setattr(views, "LARGEST_VIEW", 20_000)
    directory = written(tmp_path, ALL, events() * 40)
    assert sorted(os.listdir(directory)) == ["alice.jsonl", "alice.jsonl.1"]
    assert all(path.stat().st_size <= 20_000 for path in directory.iterdir())
    assert [Path(one).name for one in views_in(str(directory))] == ["alice.jsonl.1", "alice.jsonl"]
    monkeypatch.setattr(views, "MOST_VIEWS", 3)
    for number, path in enumerate(sorted(directory.iterdir())):
        os.utime(path, (number, number))
    written(tmp_path, ALL, [*events(user="bea"), *events(user="carol")])
    assert sorted(os.listdir(directory)) == ["alice.jsonl.1", "bea.jsonl", "carol.jsonl"]
    assert MOST_VIEWS > 100


@given(users=st.lists(st.text(max_size=200), min_size=2, max_size=2, unique=True))
def test_a_file_name_is_safe_and_of_one_user_alone(users: list[str]) -> None:
    """Whatever a user is called: no path, no hidden file, no control character, short enough for any file system."""
    names = [view_name(user) for user in (*users, "..", "/etc/passwd", "a\0b", "\ud800", "\\ud800")]
    assert len(set(names)) == len({*users, "..", "/etc/passwd", "a\0b", "\ud800", "\\ud800"})
    for name in names:
        assert name.isascii() and name.isprintable() and "/" not in name and not name.startswith(".")
        assert len(name) < 200


def test_a_view_that_cannot_be_written_stops_nothing_and_is_said_once(tmp_path: Path) -> None:
    """A link in its place is not followed; a journal that cannot be written does stop the agent."""
    (tmp_path / "x.explain.d").mkdir()
    (tmp_path / "x.explain.d" / "alice.jsonl").symlink_to(tmp_path / "elsewhere")
    said: list[str] = []
    written(tmp_path, ALL, events(), said)
    assert len(said) == 1 and "cannot be written" in said[0]
    assert not (tmp_path / "elsewhere").exists()
    assert len((tmp_path / "journal").read_text().splitlines()) == len(events())

    class Full:
        def write(self, event: Event) -> None:
            raise DrainwiseError("full")

    with pytest.raises(DrainwiseError):
        JournalWithViews(Full(), str(tmp_path / "y"), ALL, said.append).write(decision())
    assert not (tmp_path / "y").exists()
