"""Request files: what they may say, and that every fault names the file and the key."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path

import pytest

from drainwise.common import typed_table
from drainwise.facts.errors import ConfigurationError
from drainwise_tasks.validate.request import Request, as_json, load_request, release_can_thread, request_of
from drainwise_tasks.validate.thresholds import DOCUMENT, MCM

TOML = """
name = "minimum-bias"
command = ["{here}/simulate", "--events", "{events}", "--threads", "{cores}"]
events = 100
time_per_event = 2.5
size_per_event = 120
memory = 2300
release = "CMSSW_12_4_0"
filter_efficiency = 0.5
match_efficiency = 0.5
wall_limit = "2h"

[environment]
SEED = "7"
"""
LEAST: dict[str, object] = {
    "name": "r",
    "command": ["true"],
    "events": 1,
    "time_per_event": 1,
    "size_per_event": 1,
    "memory": 2000,
    "can_thread": True,
}


def test_a_request_in_toml(tmp_path: Path) -> None:
    """All keys; filter and match efficiency are multiplied, {here} is the request's directory."""
    if typed_table.toml_reader() is None:
        pytest.skip("this Python reads no TOML")
    (tmp_path / "request.toml").write_text(TOML)
    request = load_request(str(tmp_path / "request.toml"))
    assert request == Request(
        name="minimum-bias",
        command=(f"{tmp_path}/simulate", "--events", "{events}", "--threads", "{cores}"),
        events=100,
        time_per_event=2.5,
        size_per_event=120.0,
        memory=2300,
        can_thread=True,
        filter_efficiency=0.25,
        wall_limit=7200,
        environment={"SEED": "7"},
    )


def test_a_request_in_json(tmp_path: Path) -> None:
    """The least a request may say: one thread, no filter, 2, 4 and 8 cores, eight hours."""
    (tmp_path / "request.json").write_text(json.dumps(LEAST))
    request = load_request(str(tmp_path / "request.json"))
    assert (request.threads, request.filter_efficiency, request.cores, request.wall_limit) == (1, 1.0, (2, 4, 8), 28800)
    assert request_of(as_json(request), "again") == request


def test_thresholds_by_profile_and_one_by_one() -> None:
    """Those of the document where nothing is said; each may be changed on its own."""
    assert request_of(LEAST, "f").thresholds == DOCUMENT
    assert request_of({**LEAST, "profile": "mcm"}, "f").thresholds == MCM
    own = {"tries": 4, "memory_margin_below": [[1000, 2], [2000, 1.5]], "otherwise": "most-efficient"}
    request = request_of({**LEAST, "profile": "mcm", "thresholds": own}, "f")
    assert (request.thresholds.tries, request.thresholds.sigmas) == (4, 5)
    assert list(request.thresholds.memory_margin_below) == [(1000, 2), (2000, 1.5)]
    assert request_of(as_json(request), "again") == request


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"profile": "atlas"}, "profile = 'atlas': expected one of document, mcm"),
        ({"thresholds": 3}, "thresholds = '3': expected a table of keys"),
        ({"thresholds": {"trys": 3}}, r"\[thresholds\] trys = '3': expected one of .*did you mean tries"),
        ({"thresholds": {"tries": 0}}, r"\[thresholds\] tries = '0': expected a whole number from 1"),
        ({"thresholds": {"memory_margin_below": [[2, 1.5], [1, 2]]}}, "expected rising pairs"),
        ({"thresholds": {"memory_margin_below": [[2]]}}, "expected rising pairs"),
        ({"thresholds": {"memory_margin": 0.9}}, "expected a factor from 1 to 100"),
    ],
)
def test_wrong_thresholds_are_named(change: dict[str, object], expected: str) -> None:
    """File, section, key, value and what was expected."""
    with pytest.raises(ConfigurationError, match=expected):
        request_of({**LEAST, **change}, "f")


def test_without_a_toml_reader_the_way_out_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An older Python without tomli says that JSON works, or what to install."""
    monkeypatch.setattr(typed_table, "_TOML_READERS", ("no_such_module",))
    (tmp_path / "request.toml").write_text(TOML)
    with pytest.raises(ConfigurationError, match=r"request\.toml.*JSON.*\.json.*Python 3\.11 or the package tomli"):
        load_request(str(tmp_path / "request.toml"))


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"name": "a b"}, "name = 'a b'"),
        ({"command": []}, "command"),
        ({"command": "true"}, "command = 'true': expected a list of words"),
        ({"command": ["a", "b\0"]}, "command"),
        ({"events": 0}, "events = '0': expected a whole number from 1"),
        ({"events": 1.5}, "events = '1.5'"),
        ({"events": True}, "events = 'True'"),
        ({"events": None}, "events = 'None'"),
        ({"time_per_event": 0}, "time_per_event = '0': expected seconds, a number above 0"),
        ({"time_per_event": -1}, "time_per_event"),
        ({"time_per_event": float("nan")}, "time_per_event"),
        ({"size_per_event": "12kB"}, "size_per_event = '12kB': expected kB"),
        ({"memory": 10**400}, "memory"),
        ({"threads": 0}, "threads"),
        ({"filter_efficiency": 0}, "filter_efficiency = '0': expected a number above 0, at most 1"),
        ({"match_efficiency": 1.1}, "match_efficiency"),
        ({"can_thread": "yes"}, "can_thread = 'yes': expected true or false"),
        ({"can_thread": None}, "can_thread"),
        ({"release": "7.4"}, "release = '7.4'"),
        ({"release": "CMSSW_7_3_0"}, "can_thread = 'True': expected false: CMSSW_7_3_0 does not know threads"),
        ({"cores": [1, 2]}, "cores"),
        ({"cores": [4, 2]}, "cores"),
        ({"cores": 4}, "cores"),
        ({"wall_limit": "2"}, "wall_limit = '2': expected seconds, or a duration"),
        ({"wall_limit": 0}, "wall_limit"),
        ({"environment": ["A"]}, "environment"),
        ({"environment": {"A=B": "1"}}, r"environment\.A=B"),
        ({"environment": {"DRAINWISE_X": "1"}}, r"environment\.DRAINWISE_X"),
        ({"environment": {"A": 1}}, r"environment\.A = '1'"),
        ({"memroy": 1}, "memroy.*did you mean memory"),
        ({"\x1b[2J": 1}, r"expected one of name, command"),
    ],
)
def test_every_fault_names_file_and_key(change: dict[str, object], expected: str) -> None:
    """One wrong key at a time."""
    with pytest.raises(ConfigurationError, match=f"my/request.toml: .*{expected}") as fault:
        request_of({**LEAST, **change}, "my/request.toml")
    assert "\x1b" not in str(fault.value)


@pytest.mark.parametrize("key", [key for key in LEAST if key != "can_thread"])
def test_a_missing_key_is_named(key: str) -> None:
    """What has no default must be there."""
    with pytest.raises(ConfigurationError, match=f"{key} = 'missing'"):
        request_of({name: value for name, value in LEAST.items() if name != key}, "request.toml")


def test_whether_a_program_threads_is_said_or_known() -> None:
    """7.3 and older know no nThreads; a request that says neither is asked."""
    known = {"CMSSW_5_3_0": False, "CMSSW_7_3_6": False, "CMSSW_7_4_0": True, "CMSSW_10_6_17_patch1": True, "7_4": None}
    assert {release: release_can_thread(release) for release in known} == known
    without = {key: value for key, value in LEAST.items() if key != "can_thread"}
    assert not request_of({**without, "release": "CMSSW_7_3_0"}, "f").can_thread
    assert not request_of({**LEAST, "can_thread": False, "release": "CMSSW_12_0_0"}, "f").can_thread
    with pytest.raises(ConfigurationError, match="may the program run on more than one core"):
        request_of(without, "f")


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("r.json", b"{", "expected JSON"),
        ("r.json", b"[]", "expected a table"),
        ("r.json", b'{"events": NaN}', "'NaN': expected JSON"),
        ("r.json", b'{"events": 1, "events": 2}', "events = '2': expected the key once"),
        ("r.json", b"[" * 100_000, "expected JSON"),
        ("r.json", b"\xff", "UTF-8 text on line 1"),
        ("r.json", b" " * (1 << 20) + b"{}", "a request of a page"),
        ("r.toml", b"name = ", "expected TOML"),
        ("r.toml", b"name = 1\nname = 2", "expected TOML"),
    ],
)
def test_what_is_no_request_file(tmp_path: Path, name: str, content: bytes, expected: str) -> None:
    """Half a file, keys twice, NaN, endless nesting: one line that names the file."""
    if name.endswith("toml") and typed_table.toml_reader() is None:
        pytest.skip("this Python reads no TOML")
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ConfigurationError, match=f"{name}: .*{expected}"):
        load_request(str(tmp_path / name))


def test_a_fifo_in_the_requests_place_keeps_nobody_waiting(tmp_path: Path) -> None:
    """What is no regular file is refused at once (HOSTILE 5)."""
    os.mkfifo(tmp_path / "r.json")
    with pytest.raises(ConfigurationError, match="not a regular file"):
        load_request(str(tmp_path / "r.json"))
    with pytest.raises(ConfigurationError, match="No such file"):
        load_request(str(tmp_path / "none.json"))


def test_every_threshold_is_documented_with_both_defaults() -> None:
    """docs/validation.md has a row for each, with the document's value and McM's."""
    page = (Path(__file__).parents[2] / "docs" / "validation.md").read_text()
    part = page.partition("\n## Other thresholds\n")[2].partition("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in part.splitlines() if line[:3] == "| `"]
    shown = {
        name: values
        for names, *cells, _ in rows
        for name, values in zip(
            names.replace("`", "").split(", "),
            zip(*(cell.split(", ") if "[" not in cell else [cell] for cell in cells)),
        )
    }
    both = [
        {
            name: f"{value:g}" if isinstance(value, float) else str(value)
            for name, value in json.loads(json.dumps(asdict(one))).items()
        }
        for one in (DOCUMENT, MCM)
    ]
    assert shown == {name: (both[0][name], both[1][name]) for name in both[0]}
