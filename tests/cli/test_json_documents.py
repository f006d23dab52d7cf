"""docs/json.md has every key that a command prints as JSON, with its type, and no other."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from drainwise.cli import check
from drainwise.cli.main import main
from drainwise.cli.text import FORMATS
from drainwise.features.facts import HostFacts, JobFacts, job_values, machine_values
from drainwise.features.write import write_directory
from drainwise.local.job import AccountQuota, LocalNode
from drainwise.local.store import LocalStore
from drainwise.pool.facts import Pilot
from drainwise.pool.finding import MISSING, OK, Finding
from drainwise.pool.snapshot_json import VERSION
from drainwise.reclaim.candidates import candidate_of
from drainwise.reclaim.counted_demand import Paused
from drainwise.reclaim.history import History
from drainwise.reclaim.plan import PartOrder, Withdrawal
from drainwise.reclaim.plan_json import candidate_as_json, part_as_json, withdrawal_as_json
from drainwise.reclaim.settings import ReclaimSettings
from drainwise.requests.request import VERSION as REQUEST_VERSION
from drainwise_tasks.validate import machine
from drainwise_tasks.validate.request import load_request
from drainwise_tasks.validate.state import text_of

from .conftest import AlicesPool

PAGE = (Path(__file__).parents[2] / "docs" / "json.md").read_text()
LOG = Path(__file__).parents[2] / "scripts" / "local_demo" / "lcg-excerpt.swf"
HEAD = ("format", "version")
"""Keys of every document, which the page names once."""
ROW = re.compile(r"(?m)^\| (`.+?`) \| (optional )?(list of )?([^:|]+?)(: [^|]+)? \|$")
"""Keys of one type and meaning; whether they may be absent, are lists, and what they hold."""
VERSIONS = {**FORMATS, "snapshot": VERSION, "request": REQUEST_VERSION}


class Row(NamedTuple):
    """A key of the page: its path, where a part in capitals stands for any name; its types; where it stands.

    origin: the section and key of the page, by which a row that several sections share is known.
    """

    path: tuple[str, ...]
    types: frozenset[str]
    may_be_absent: bool
    origin: tuple[str, str]

    def is_about(self, path: tuple[str, ...]) -> bool:
        """Return whether this row is about a key that was printed."""
        return len(path) == len(self.path) and all(own in (one, "*") for one, own in zip(path, self.path))

    def above(self) -> Row:
        """Return the row without the last part of its path."""
        return self._replace(path=self.path[:-1])

    def allows(self, kind: str) -> bool:
        return kind in self.types or (kind == "integer" and "number" in self.types)


def places_of(part: str, path: tuple[str, ...]) -> list[int]:
    """Where a part stands in a path."""
    return [at for at, one in enumerate(path) if one == part]


def rows_of(title: str) -> list[Row]:
    """The rows of a section, with those of the sections that it refers to."""
    section = PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    assert section, f"the page has no section {title}"
    own, found = [], []
    for keys, optional, listed, types, _ in ROW.findall(section):
        for key in re.findall(r"`([^`]+)`", keys):
            path = tuple("*" if one.isupper() else one for one in key.replace("[]", ".[]").split("."))
            if listed:
                own.append(Row(path, frozenset({"list"}), bool(optional), (title, key)))
                path = (*path, "[]")
            other = re.fullmatch(r"\[([a-z ]+)\]\(#[a-z-]+\)(?: or (null))?", types)
            kinds = set(types.split(" or ")) if other is None else {"object", other[2] or "object"}
            row = Row(path, frozenset(kinds), bool(optional or listed), (title, f"{key}[]" if listed else key))
            own.append(row)
            if other is not None:
                found += [one._replace(path=(*path, *one.path)) for one in rows_of(other[1])]
    mine = {row.path for row in own}
    own += [Row((name,), frozenset({"text", "integer"}), True, (title, name)) for name in HEAD if title in VERSIONS]
    known = {row.path for row in own}
    entries = {row.path[: row.path.index("[]", at) + 1] for row in own for at in places_of("[]", row.path)} - known
    own += [Row(path, frozenset({"object"}), True, (title, ".".join(path))) for path in entries]
    base = re.search(r"keys of \[([a-z ]+)\]", section)
    if base is not None:
        found += [row for row in rows_of(base[1]) if row.path not in mine]
    return own + found


def printed(value: object, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Each key of a document by its path, with its type."""
    if path:
        yield path, type_of(value)
    if isinstance(value, dict):
        for key, one in value.items():
            yield from printed(one, (*path, key))
    elif isinstance(value, list):
        for one in value:
            yield from printed(one, (*path, "[]"))


def type_of(value: object) -> str:
    """The type as the page calls it."""
    names: dict[type, str] = {bool: "truth value", int: "integer", float: "number", str: "text", list: "list"}
    return "null" if value is None else names.get(type(value), "object")


def said(capsys: pytest.CaptureFixture[str], *words: str, codes: tuple[int, ...] = (0,)) -> Any:
    """The document that a command prints."""
    assert main(words) in codes
    return json.loads(capsys.readouterr().out)


Made = dict[str, list[Any]]


def of_a_pool(pool: AlicesPool, place: Path, capsys: pytest.CaptureFixture[str]) -> Made:
    """What is said of a pool with pilots that are asked and spared, and of what stands in the journal."""
    pool.versions = (("1.0", 3),)
    journal = str(place / "journal")
    plan = [said(capsys, "plan", "--json"), said(capsys, "plan", "--json", "--cores", "8")]
    reclaim = [said(capsys, "reclaim", "--once", "--json")]
    reclaim += [said(capsys, "reclaim", "--once", "--act", "--json", "--journal", journal)]
    reclaim += [said(capsys, "reclaim", "--cores", "8", "--by", "+3h", "--json")]
    return {
        "status": [said(capsys, "status", "--json")],
        "plan": plan,
        "reclaim": reclaim,
        "requests": [said(capsys, "reclaim", "--list", "--json")],
        "explain": said(capsys, "explain", "1.0", "--json", "--journal", journal),
        "report": [said(capsys, "report", "--json", "--journal", journal)],
        "snapshot": [said(capsys, "snapshot")],
    }


def of_a_local_batch_system(pool: AlicesPool, place: Path, capsys: pytest.CaptureFixture[str]) -> Made:
    with LocalStore(str(place / "batch"), create=True) as store:
        store.set_nodes([LocalNode("node1", 4)])
        store.set_account(AccountQuota("alice", 4))
    words = ("--directory", str(place / "batch"))
    assert main(["local", "submit", *words, "--account", "alice", "--", "true"]) == 0
    capsys.readouterr()
    return {
        "local account": said(capsys, "local", "account", *words, "--json"),
        "local job": said(capsys, "local", "queue", *words, "--json"),
    }


def of_a_machine(pool: AlicesPool, place: Path, capsys: pytest.CaptureFixture[str]) -> Made:
    now = int(time.time())
    site = place / "site.ini"
    site.write_text("[reclaim]\ngrace = 3h\nmargin = 1\n")
    host, job = HostFacts(total_cpu=24, hs06=300.5), JobFacts(allocated_cpu=8, jobstart_secs=now, job_id="1")
    write_directory(str(place / "machine"), machine_values(host))
    write_directory(str(place / "job"), job_values(job, host))
    words = ("--machine", str(place / "machine"), "--job", str(place / "job"), "--json")
    findings = [Finding(OK, "A", "fine", machine="n0"), Finding(MISSING, "B", "because", "B = 1", "0", "n1")]
    return {
        "shutdown": [said(capsys, "shutdown", "--file", str(place / "plan"), "--json")],
        "site file": [said(capsys, "config", "check", "--site", str(site), "--json", codes=(1,))],
        "doctor": [said(capsys, "doctor", "--site", "/no/site.ini", "--json", codes=(0, 1, 2))],
        "features": [said(capsys, "features", "show", *words)],
        "features check": [said(capsys, "features", "check", *words, codes=(0, 1))],
        "check": [json.loads(check.as_json(findings))],
    }


def of_jobs(pool: AlicesPool, place: Path, capsys: pytest.CaptureFixture[str]) -> Made:
    launch, request, records = place / "l.json", place / "r.json", place / "records.jsonl"
    launch.write_text(json.dumps({"jobs": [{"name": "a", "command": ["true"]}]}))
    asks = {"events": 10, "time_per_event": 1, "size_per_event": 1, "memory": 2000, "can_thread": True}
    request.write_text(json.dumps({"name": "r", "command": ["true"], **asks}))
    begun = machine.begin(load_request(str(request)), "r-1", "local-batch")
    Path(f"{request}.state").write_bytes(text_of(begun))
    one = {"task": "sim", "start": 1_795_249_000, "end": 1_795_253_600, "cores": 8, "events": 1000, "core_power": 10}
    record = json.dumps({**one, "requested_seconds": 46000, "memory_bytes": 8 << 30})
    records.write_text(f"{record}\n" * 12 + "nonsense\n" + record.replace("sim", "new").replace("1000,", "9,") + "\n")
    scenario = ("--cores", "64", "--moments", "1", "--replications", "2", "--processes", "1")
    sacct = place / "sacct"
    row = "|COMPLETED|2026-11-01T00:00:00|2026-11-01T10:00:00|8|900\n"
    sacct.write_text(f"JobID|State|Start|End|AllocCPUS|TimelimitRaw\n1{row}2{row}3\n")
    return {
        "launch": [said(capsys, "launch", str(launch), "--json")],
        "validation": [said(capsys, "validate", str(request), "--show", "--json", codes=(0, 1))],
        "estimate": [said(capsys, "estimate", str(records), "--json")],
        "simulation": [said(capsys, "simulate", str(LOG), *scenario, "--policies", "least-waste", "--json")],
        "lease costs": [said(capsys, "simulate", str(sacct), "--json")],
        "estimate of a log": [said(capsys, "estimate", "--swf", str(LOG), "--json")],
    }


MAKERS: tuple[Callable[[AlicesPool, Path, pytest.CaptureFixture[str]], Made], ...] = (
    of_a_pool,
    of_a_local_batch_system,
    of_a_machine,
    of_jobs,
)


def test_the_page_has_a_section_for_each_document_and_its_version() -> None:
    for name, version in VERSIONS.items():
        section = PAGE.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
        assert re.search(rf"\bversion {version}\b", " ".join(section.split())), name


def test_every_key_that_is_printed_stands_on_the_page_and_the_other_way_round(
    pool: AlicesPool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With a type that the page allows; the keys of what it calls an object without listing any are not looked at."""
    made: Made = {}
    for maker in MAKERS:
        made.update(maker(pool, tmp_path, capsys))
    assert set(made) == set(FORMATS) | {"snapshot"}
    met, wanted = set[tuple[str, str]](), set[tuple[str, str]]()
    for name, documents in made.items():
        rows = rows_of(name)
        listed = {row.path[: len(row.path) - 1] for row in rows}
        for document in documents:
            assert (document["format"], document["version"]) == (f"drainwise {name}", VERSIONS[name])
            hidden: list[tuple[str, ...]] = []
            wanted |= {row.origin for row in rows if not row.may_be_absent and len(row.path) == 1}
            for path, kind in printed(document):
                if any(path[: len(one)] == one for one in hidden):
                    continue
                about = [row for row in rows if row.is_about(path)]
                assert about, f"{name}: {'.'.join(path)}, {kind}, stands nowhere on the page"
                assert any(row.allows(kind) for row in about), f"{name}: {'.'.join(path)} is {kind}"
                met |= {row.origin for row in about}
                wanted |= {
                    row.origin
                    for row in rows
                    if not row.may_be_absent and kind == "object" and row.above().is_about(path)
                }
                if not any(row.path in listed for row in about):
                    hidden.append(path)
    assert wanted - met == set()


def test_what_no_document_here_has_stands_on_the_page_as_the_code_has_it() -> None:
    """Demand that pauses, orders that are withdrawn, parts of pilots: their keys."""
    assert {row.path[0] for row in rows_of("paused demand")} == {field.name for field in fields(Paused)}
    one = candidate_of(
        Pilot("1@9", "1", "n", "a", "alice", 8, 9),
        99,
        ReclaimSettings("least-waste", 60, 60, 60, 60, 8, 8, 8),
        History(),
    )
    part = part_as_json(PartOrder(one, 4, 199, 1, None, 0, "", 4))
    shown = {"withdrawal": withdrawal_as_json(Withdrawal(one.pilot, 1, "")), "part": part}
    for title, plain in shown.items():
        known = candidate_as_json(one) if title == "part" else {}
        assert plain.keys() - known.keys() == {
            row.origin[1] for row in rows_of(title) if row.origin[0] == title and row.origin[1] not in known
        }
