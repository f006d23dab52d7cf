"""Startds of the last whole answer that a young collector does not know yet are asked directly, so many at once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from drainwise.facts.errors import PoolUnreachable
from drainwise.htcondor.ads.values import Ad, Others
from drainwise.htcondor.pool import startds as module
from drainwise.htcondor.pool.startds import Answer, KnownStartds

NOW = 1795249000
NODES = ("node1", "node2", "node3")


def startd(node: str, *children: int) -> Ad:
    return {"Name": f"slot1@{node}", "Machine": node, "MyAddress": f"<{node}:1>", "ChildDSlotId": [*children]}


def slot(node: str, number: int) -> Ad:
    return {"Name": f"slot1_{number}@{node}", "Machine": node, "Cpus": 8}


def answer(*nodes: Ad, age: int = 40) -> Others:
    return Others(startds=nodes, collectors=[{"StatsLifetime": age, "StatsLastUpdateTime": NOW}])


def asked(address: str) -> Answer:
    """node3 does not answer."""
    node = address[1:].partition(":")[0]
    if node == "node3":
        raise PoolUnreachable("the startd does not answer")
    return [startd(node, 1)], [slot(node, 1)]


@pytest.fixture
def known(tmp_path: Path) -> KnownStartds:
    """The agent before knew three nodes; this one has just started."""
    KnownStartds(str(tmp_path / "startds.json")).learn([startd(node) for node in NODES])
    return KnownStartds(str(tmp_path / "startds.json"))


def test_what_was_whole_before_is_asked_for_after_both_started_anew(known: KnownStartds) -> None:
    """node1 is back, and one of its two slots; nothing of the others."""
    others, slots = answer(startd("node1", 1, 2)), [slot("node1", 2)]
    assert known.nodes == {*NODES}
    assert known.completed(answer(age=7200), slots, asked, NOW) == (answer(age=7200), slots), "it knows all there is"
    assert known.missing(others, slots) == {node: f"<{node}:1>" for node in NODES}
    others, seen = known.completed(others, slots, asked, NOW)
    assert [ad["Machine"] for ad in others.startds] == ["node1", "node2"]
    assert [(ad["Name"], ad["LastHeardFrom"]) for ad in seen] == [("slot1_1@node1", NOW), ("slot1_1@node2", NOW)]
    assert known.silent == {"node3"}
    known.learn(others.startds)
    assert (set(known.nodes), len(known.silent)) == ({"node1", "node2"}, 0)


def test_no_snapshot_asks_more_than_so_many_and_the_next_one_asks_the_others(
    known: KnownStartds, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_ASKED", 1)
    missing = known.missing(answer(), [])
    assert [sorted(known.ask(missing, asked, NOW + 60 * cycle)) for cycle in range(3)] == [
        ["node1"],
        ["node1", "node2"],
        ["node1", "node2"],
    ]
    assert known.silent == {"node3"}


@pytest.mark.parametrize("text", ["", "[]", "{", json.dumps({"node1": 7}), "[" * 99_999])
def test_a_file_that_is_none_names_nobody(tmp_path: Path, text: str) -> None:
    (tmp_path / "startds.json").write_text(text)
    assert KnownStartds(str(tmp_path / "startds.json")).nodes == set()


def test_without_a_place_for_the_file_this_process_knows(tmp_path: Path) -> None:
    one = KnownStartds(str(tmp_path / "none" / "startds.json"))
    one.learn([startd("node1")])
    assert one.nodes == {"node1"}
