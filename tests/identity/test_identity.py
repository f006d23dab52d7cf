"""Who sent a pilot: what a submitter writes is bounded and printable, and no plan looks at it."""

from __future__ import annotations

import dataclasses
import json
import os
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import drainwise
from drainwise.facts.errors import UsageError
from drainwise.pool.facts import Account, Pilot, Snapshot
from drainwise.pool.identity import ANYBODY, FORMER, LONGEST, PilotIdentity, as_values, identity_of
from drainwise.pool.snapshot_json import snapshot_as_json, snapshot_from_json, snapshot_hash
from drainwise.reclaim.decide.decision import make_plan
from drainwise.reclaim.plan_json import as_json
from drainwise.reclaim.settings import ReclaimSettings

ATLAS = PilotIdentity("atlas", "7.0")
HOSTILE = [
    "\x1b[2J\x1b[31mroot",
    "a\r\nVO other",
    "safe\u202etxt.exe",
    "a\u2066b\u200fc\u200bd",
    "\x00\x07\x7f\x9b31m",
    "\ud800lone",
    "x" * 10_000_000,
    " " * 5_000_000 + "late",
    "{vo}%s$(rm -rf /)`id`",
]
NOW = 1_795_249_000
RULES = ReclaimSettings("least-waste", 7200, 7200, 86_400, 3600, 1000, 1000, 1000)


@pytest.mark.parametrize("name", LONGEST)
@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_text_is_one_short_printable_line(name: str, text: str) -> None:
    found = identity_of({name: text, "vo": text if name == "vo" else "cms"}) or ANYBODY
    value = getattr(found, name)
    assert len(value) <= LONGEST[name] and value.isprintable() and value.isascii()


@given(st.dictionaries(st.sampled_from([*LONGEST, "other"]), st.none() | st.integers() | st.text(max_size=40)))
def test_any_values_make_an_identity_or_none(values: dict[str, object]) -> None:
    """What it says of itself as plain values makes it again."""
    found = identity_of(values)
    assert found is None or (found != ANYBODY and identity_of(as_values(found) or {}) == found)


def test_it_fits_who_names_a_part_of_it() -> None:
    assert ATLAS.fits(ANYBODY) and ATLAS.fits(PilotIdentity(vo="atlas", ce_job="7.0")) and ATLAS.fits(ATLAS)
    assert not ATLAS.fits(PilotIdentity(vo="atlas", ce_job="8.0")) and not ANYBODY.fits(PilotIdentity(vo="atlas"))


def test_in_words_is_all_that_is_known() -> None:
    assert PilotIdentity(vo="cms", ce_job="7.0").in_words() == "VO cms, CE job 7.0"
    assert ANYBODY.in_words() == ""


def pool(*identities: PilotIdentity | None) -> Snapshot:
    """Pilots of 8 cores of one user, each sent by one of these; a half must go."""
    pilots = tuple(
        Pilot(f"ce#{place}.0#1@{NOW - 9000}", f"slot1_{place}", "n1", "a", "alice", 8, NOW - 9000, identity=identity)
        for place, identity in enumerate(identities)
    )
    held, owed = 8.0 * len(pilots), 4.0 * len(pilots)
    return Snapshot(NOW, pilots, (Account("a", held, owed, 0.0, 9.0), Account("b", 0.0, owed, owed, 1.0, 8.0)))


def without_identities(value: object) -> object:
    """The plain values without who sent a pilot."""
    if isinstance(value, dict):
        return {name: without_identities(part) for name, part in value.items() if name != "identity"}
    return [without_identities(part) for part in value] if isinstance(value, list) else value


def test_no_plan_depends_on_who_sent_a_pilot() -> None:
    """The same orders for the same reasons, and the same facts by their hash."""
    known, unknown = pool(ATLAS, None, PilotIdentity(vo="cms"), ATLAS), pool(None, None, None, None)
    plans = [make_plan(one, NOW, RULES) for one in (known, unknown)]
    assert plans[0].orders
    assert without_identities(as_json(plans[0])) == without_identities(as_json(plans[1]))
    assert snapshot_hash(known) == snapshot_hash(unknown)


def test_only_what_shows_a_pilot_reads_who_sent_it() -> None:
    """The folders that decide do not read it, but for the JSON of a plan."""
    package = Path(drainwise.__file__).parent
    readers = {
        str(path.relative_to(package))
        for folder in ("reclaim", "room", "agent", "requests", "htcondor/demand")
        for path in (package / folder).rglob("*.py")
        if re.search(r"\.identity\b(?!\.)", path.read_text())
    }
    assert readers == {f"reclaim{os.sep}plan_json.py"}


def test_a_snapshot_keeps_it() -> None:
    """Where nobody tells, a snapshot has no such key: earlier versions of drainwise read that."""
    snapshot = pool(ATLAS, None)
    plain = json.loads(json.dumps(snapshot_as_json(snapshot)))
    assert snapshot_from_json(plain) == snapshot
    assert ["identity" in one for one in plain["pilots"]] == [True, False]


def test_what_snapshots_of_before_say_besides_is_passed_over() -> None:
    plain = json.loads(json.dumps(snapshot_as_json(pool(ATLAS, None))))
    plain["pilots"][0]["identity"].update(dict.fromkeys(FORMER, "/CN=a"))
    plain["pilots"][1]["identity"] = {"factory": "CERN"}
    assert snapshot_from_json(plain) == pool(ATLAS, None)


@pytest.mark.parametrize("odd", [{"vo": 7}, {"name": "x"}, "atlas", []])
def test_a_snapshot_with_another_identity_is_refused(odd: object) -> None:
    plain = json.loads(json.dumps(snapshot_as_json(pool(ATLAS))))
    plain["pilots"][0]["identity"] = odd
    with pytest.raises(UsageError, match="pilot 1, identity"):
        snapshot_from_json(plain)


def test_the_lengths_are_of_all_facts() -> None:
    assert list(LONGEST) == [one.name for one in dataclasses.fields(PilotIdentity)]
