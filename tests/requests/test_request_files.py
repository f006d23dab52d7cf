"""Requests stand until their time or until they are cancelled, and no file of another kind is taken for one."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest_mock import MockerFixture

from drainwise.facts.errors import UsageError
from drainwise.requests import request as request_module
from drainwise.requests.request import AdminRequest, RequestFiles, request_as_json, request_from_json

NOW = 1_795_249_000
CORES = AdminRequest("r1", NOW, NOW + 3600, cores=16, user="alice", reason="the power", who="root")
NODES = AdminRequest("r2", NOW + 1, NOW + 7200, nodes=("n1", "n2"))
names = st.text(max_size=9)


def test_a_request_names_five_nodes() -> None:
    five = replace(NODES, nodes=tuple(f"n{one}" for one in range(1, 6)))
    assert five.in_words().startswith("request r2: n1, n2, n3, n4, n5 empty by ")
    more = replace(NODES, nodes=(*five.nodes, "n6"))
    assert more.in_words().startswith("request r2: n1, n2, n3, n4, n5, … empty by ")


@given(
    st.builds(
        AdminRequest,
        st.text(min_size=1, max_size=9),
        st.integers(0, 2**40),
        st.integers(0, 2**40),
        st.integers(1, 10**6),
        st.none() | names,
        st.none() | names,
        st.lists(names, max_size=2).map(tuple),
        names,
        names,
    )
)
def test_the_round_trip_is_exact(request_: AdminRequest) -> None:
    one = replace(request_, cores=0) if request_.nodes else request_
    assert request_from_json(json.loads(json.dumps(request_as_json(one)))) == one


def test_what_was_added_stands_for_another_process_until_its_time(tmp_path: Path) -> None:
    files = RequestFiles(str(tmp_path / "agent.requests"))
    assert files.standing(NOW) == ((), ())
    files.add(NODES)
    files.add(CORES)
    assert RequestFiles(files.directory).standing(NOW) == ((CORES, NODES), ())
    assert os.stat(os.path.join(files.directory, "r1.json")).st_mode & 0o777 == 0o644
    assert files.standing(CORES.by + 1) == ((NODES,), ())
    assert files.standing(NODES.by + 10**8) == ((NODES,), ()), "nodes stay closed until that is cancelled"


def test_two_that_are_made_in_one_second_have_two_names(tmp_path: Path) -> None:
    files = RequestFiles(str(tmp_path))
    assert [files.add(CORES).name for _ in range(3)] == ["r1", "r1-2", "r1-3"]
    assert [one.name for one in files.standing(NOW)[0]] == ["r1", "r1-2", "r1-3"]


def test_a_directory_that_cannot_be_read_is_no_directory_without_requests(tmp_path: Path) -> None:
    """Else all that was ordered for them would be withdrawn."""
    (tmp_path / "agent.requests").write_text("")
    with pytest.raises(UsageError, match="the requests cannot be read: Not a directory"):
        RequestFiles(str(tmp_path / "agent.requests")).standing(NOW)


def test_one_that_is_cancelled_stands_no_more_and_an_unknown_name_is_refused(tmp_path: Path) -> None:
    files = RequestFiles(str(tmp_path))
    files.add(CORES)
    files.add(NODES)
    assert files.cancel("r1", NOW) == CORES
    assert files.standing(NOW) == ((NODES,), ())
    for name in ("r1", "../r2", "r2.json", ""):
        with pytest.raises(UsageError, match="there is r2"):
            files.cancel(name, NOW)


def test_what_is_over_is_removed_when_another_one_is_added(tmp_path: Path) -> None:
    files = RequestFiles(str(tmp_path))
    files.add(CORES)
    files.add(replace(CORES, name="r9", made=CORES.by + 1, by=CORES.by + 99))
    assert sorted(os.listdir(tmp_path)) == ["r9.json"]


def test_of_two_hundred_requests_some_are_cancelled_first(tmp_path: Path) -> None:
    for number in range(199):
        (tmp_path / f"a{number}.json").write_text("")
    files = RequestFiles(str(tmp_path))
    files.add(CORES)
    with pytest.raises(UsageError, match="200 requests stand; cancel some first"):
        files.add(NODES)


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ("", "not JSON"),
        ("[" * 10_000, "not JSON"),
        ("{}", "not a request"),
        (json.dumps({**request_as_json(CORES), "version": 2}), "version 2"),
        (json.dumps({**request_as_json(CORES), "cores": 0}), "expected cores or nodes"),
        (json.dumps({**request_as_json(CORES), "nodes": ["n1"]}), "expected cores or nodes"),
        (json.dumps({**request_as_json(CORES), "by": "soon"}), "by: expected int"),
        (json.dumps({**request_as_json(CORES), "more": 1}), "'more' is not known"),
        (json.dumps({**request_as_json(NODES), "nodes": [1]}), "node 1: expected text"),
        (json.dumps({**request_as_json(CORES), "name": "r3"}), "called 'r3' inside"),
    ],
)
def test_a_file_that_is_no_request_is_passed_over_and_named(tmp_path: Path, content: str, fault: str) -> None:
    files = RequestFiles(str(tmp_path))
    files.add(NODES)
    (tmp_path / "r1.json").write_text(content)
    found, (sentence,) = files.standing(NOW)
    assert found == (NODES,)
    assert "r1.json is passed over: " in sentence
    assert fault in sentence


def test_one_that_goes_while_they_are_read_is_none(tmp_path: Path, mocker: MockerFixture) -> None:
    """Another process may cancel it between the list of the names and the look."""
    files = RequestFiles(str(tmp_path))
    files.add(NODES)
    mocker.patch.object(os, "listdir", autospec=True, return_value=["r1.json", "r2.json"])
    assert files.standing(NOW) == ((NODES,), ())


def test_a_fifo_or_a_link_is_passed_over(tmp_path: Path) -> None:
    files = RequestFiles(str(tmp_path))
    os.mkfifo(tmp_path / "a.json")
    (tmp_path / "b.json").symlink_to("/etc/passwd")
    found, faults = files.standing(NOW)
    assert found == ()
    assert len(faults) == 2


def test_so_many_requests_stand_and_no_more(tmp_path: Path, mocker: MockerFixture) -> None:
    """What is over makes place."""
    mocker.patch.object(request_module, "_MOST", 2)
    files = RequestFiles(str(tmp_path))
    for _ in range(2):
        files.add(CORES)
    with pytest.raises(UsageError, match="2 requests stand; cancel some first"):
        files.add(NODES)
    assert files.add(replace(NODES, made=CORES.by + 3600)).name == "r2"


def test_what_is_made_at_the_first_second_is_a_request() -> None:
    first = replace(CORES, made=0, by=0)
    assert request_from_json(request_as_json(first)) == first
    for odd in (replace(first, made=-1), replace(first, by=-1), replace(first, name=""), replace(first, cores=0)):
        with pytest.raises(UsageError, match="expected cores or nodes"):
            request_from_json(request_as_json(odd))


def test_an_account_that_goes_on_is_told_once(tmp_path: Path) -> None:
    files = RequestFiles(str(tmp_path))
    for account in ("atlas", "cms", "atlas"):
        files.resume(account)
    (tmp_path / "x.resume").write_text("{")
    (tmp_path / "y.resume").write_text("5")
    assert sorted(files.resumed()) == ["atlas", "cms"]
    assert list(files.resumed()) == [] and os.listdir(tmp_path) == []
