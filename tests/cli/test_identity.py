"""A VO's ticket: status, explain and report tell of the pilots that it sent."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from drainwise.cli.main import main
from drainwise.pool.facts import Snapshot
from drainwise.pool.identity import PilotIdentity

from .conftest import AlicesPool

ATLAS = PilotIdentity("atlas", "7.0")
SENT = {"slot1_1@node1": ATLAS, "slot1_3@node1": PilotIdentity(vo="cms", ce_job="8.0")}


@pytest.fixture(autouse=True)
def sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two of the four pilots came through a CE."""
    bare = AlicesPool.snapshot

    def snapshot(self: AlicesPool, now: int) -> Snapshot:
        seen = bare(self, now)
        pilots = tuple(dataclasses.replace(one, identity=SENT.get(one.name)) for one in seen.pilots)
        return dataclasses.replace(seen, pilots=pilots)

    monkeypatch.setattr(AlicesPool, "snapshot", snapshot)


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main([*words]) == 0
    return capsys.readouterr().out


def test_the_columns_of_status(pool: AlicesPool, capsys: pytest.CaptureFixture[str]) -> None:
    """One word each for programs; by name and by their order."""
    out = said(capsys, "status", "--format", "name,vo,cejob", "--sort", "vo")
    assert [line.split() for line in out.splitlines()[1:3]] == [
        ["slot1_1@node1", "atlas", "7.0"],
        ["slot1_3@node1", "cms", "8.0"],
    ]
    found = json.loads(said(capsys, "status", "--json"))["pilots"]
    assert {one["name"]: one["identity"] for one in found}["slot1_3@node1"] == {"vo": "cms", "ce_job": "8.0"}
    assert sum(one["identity"] is None for one in found) == 2


@pytest.mark.parametrize(
    ("options", "names"),
    [
        (["--vo", "atlas"], ["slot1_1@node1"]),
        (["--ce-job", "8.0"], ["slot1_3@node1"]),
        (["1.0", "--vo", "atlas"], ["slot1_1@node1"]),
        (["slot1_1@node1"], ["slot1_1@node1"]),
    ],
)
def test_explain_by_who_sent_it(
    journal: str, capsys: pytest.CaptureFixture[str], options: list[str], names: list[str]
) -> None:
    out = said(capsys, "explain", *options, "--journal", journal)
    assert [line.split(":")[0] for line in out.splitlines() if line and line[0] != " "] == names


def test_explain_says_who_sent_it(journal: str, capsys: pytest.CaptureFixture[str]) -> None:
    out = said(capsys, "explain", "1.0", "--journal", journal)
    assert "\n  VO atlas, CE job 7.0\n" in out


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--vo", "lhcb"], "knows no pilot of VO lhcb; it begins"),
        (["2.0", "--vo", "atlas"], "knows no pilot that is called 2.0 and of VO atlas"),
        (["--vo", "a\x1b[2Jtlas"], "knows no pilot of VO a?[2Jtlas"),
    ],
)
def test_explain_knows_none(journal: str, capsys: pytest.CaptureFixture[str], options: list[str], words: str) -> None:
    assert main(["explain", *options, "--journal", journal]) == 1
    assert words in capsys.readouterr().err


def test_explain_needs_a_name(journal: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "--journal", journal]) == 2
    assert "which pilot?" in capsys.readouterr().err
    assert main(["explain", "--vo", "", "--journal", journal]) == 2
    assert "--vo: expected a name" in capsys.readouterr().err


def test_the_end_of_an_order_is_told_by_vo_too(
    pool: AlicesPool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What ends an order does not say again who sent the pilot."""
    path = str(tmp_path / "journal")
    said(capsys, "reclaim", "--once", "--act", "--journal", path)
    [order] = [
        event
        for event in map(json.loads, Path(path).read_text().splitlines())
        if event["event"] == "order" and event["name"] == "slot1_1@node1"
    ]
    assert order["identity"]["vo"] == "atlas"
    ended = {
        **{name: order[name] for name in ("version", "run", "name", "node", "account", "user", "cores", "started")},
        "ordered": order["time"],
        "deadline": order["deadline"],
        "kind": order["kind"],
        "vacated": False,
        "event": "ended",
        "time": order["time"] + 60,
        "ended": order["time"] + 50,
        "by_others": False,
        "cpu_seconds": None,
        "believed": True,
        "predicted": 5,
        "realised": 5,
        "possible": 9,
        "cores_freed": 8,
    }
    with open(path, "a", encoding="ascii") as stream:
        stream.write(json.dumps(ended) + "\n")
    assert "left by itself" in said(capsys, "explain", "--vo", "atlas", "--journal", path)
    assert "left by itself" not in said(capsys, "explain", "--vo", "cms", "--journal", path)


def test_report_by_vo(journal: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(said(capsys, "report", "--json", "--journal", journal))
    by_vo = {one["vo"]: one["ordered"] for one in found["vos"]}
    assert by_vo.keys() >= {"atlas", "cms"} or by_vo.keys() >= {"atlas"}
    assert sum(by_vo.values()) == found["total"]["ordered"]
    assert json.loads(said(capsys, "report", "--json", "--vo", "atlas", "--journal", journal))["total"]["ordered"] == 1
    assert "By virtual organisation" in said(capsys, "report", "--journal", journal)
    html = tmp_path / "report.html"
    said(capsys, "report", "--html", str(html), "--journal", journal)
    assert '<th scope="row" class="t">atlas</th>' in html.read_text()
    assert said(capsys, "report", "--vo", "lhcb", "--journal", journal) == "no order was given to pilots of VO lhcb\n"


def test_a_forged_identity_in_a_journal_is_cut_and_printable(journal: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Somebody with the right to write it, or another program."""
    text = Path(journal).read_text()
    text = text.replace('"vo":"atlas"', '"vo":"at\\u001b[2Jl\\u202eas"').replace('"vo":"cms"', '"vo":7')
    Path(journal).write_text(text)
    out = said(capsys, "explain", "1.0", "--journal", journal)
    assert "VO at?[2Jl?as" in out and "\x1b" not in out
    assert "\x1b" not in said(capsys, "report", "--journal", journal)


def test_without_any_identity_nothing_is_different(
    pool: AlicesPool, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No line and no table for what nobody tells."""
    for name in tuple(SENT):
        monkeypatch.delitem(SENT, name)
    path = str(tmp_path / "journal")
    said(capsys, "reclaim", "--once", "--act", "--journal", path)
    assert "  VO " not in said(capsys, "explain", "1.0", "--journal", path)
    assert "By virtual organisation" not in said(capsys, "report", "--journal", path)
