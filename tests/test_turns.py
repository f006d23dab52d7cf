"""Which tests on daemons a submission runs: on a suite of its own, and what is noted of the last runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import turns

CONFTEST = """
import json
import pytest
import turns

@pytest.fixture(params=["old", "new"])
def release(request):
    return request.param

def pytest_collection_modifyitems(items):
    found = [[item.name for item in turns.choose(items, turn)[0]] for turn in range(4)]
    print("CHOSEN", json.dumps(found))
"""
TESTS = """
import pytest

def test_below(release): pass

@pytest.mark.play
def test_play(release): pass

@pytest.mark.play
@pytest.mark.parametrize("release", ["new"], indirect=True)
def test_new_only(release): pass

@pytest.mark.in_turn("twins", "one")
def test_one(): pass

@pytest.mark.all_releases
def test_minutes(): pass

@pytest.mark.play
@pytest.mark.in_turn("twins", "other")
def test_other(release): pass
"""


@pytest.fixture(scope="module")
def chosen(tmp_path_factory: pytest.TempPathFactory) -> list[set[str]]:
    """The tests that are chosen in each of four turns."""
    place = tmp_path_factory.mktemp("suite")
    (place / "conftest.py").write_text(CONFTEST)
    (place / "test_it.py").write_text(TESTS)
    (place / "pytest.ini").write_text("[pytest]\nmarkers =\n play\n in_turn\n whole\n")
    environment = {**os.environ, "PYTHONPATH": str(Path(turns.__file__).parent)}
    command = [sys.executable, "-m", "pytest", "-p", "turns", "--collect-only", "-q", "-s", "-p", "no:cacheprovider"]
    ran = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, check=False)
    [line] = [line for line in ran.stdout.splitlines() if line.startswith("CHOSEN ")]
    return [set(names) for names in json.loads(line.partition(" ")[2])]


def test_what_is_no_play_runs_on_all_releases_each_time(chosen: list[set[str]]) -> None:
    assert all({"test_below[old]", "test_below[new]"} <= names for names in chosen)


def test_a_play_runs_on_one_release_each_time_and_on_the_other_after_that(chosen: list[set[str]]) -> None:
    seen = [sorted(name for name in names if name.startswith("test_play")) for names in chosen]
    assert all(len(names) == 1 for names in seen)
    assert seen[0] == seen[1] != seen[2] == seen[3] or seen[0] != seen[1] == seen[2] != seen[3]
    assert all("test_new_only[new]" in names for names in chosen), "what has one release runs on it each time"


def test_of_a_group_one_member_runs_each_time_and_all_do_on_all_releases_in_the_end(chosen: list[set[str]]) -> None:
    members = {"test_one", "test_other[old]", "test_other[new]"}
    assert all(len(names & members) == 1 for names in chosen)
    assert set.union(*chosen) >= members


def test_a_changed_file_is_another_fingerprint(tmp_path: Path) -> None:
    """Also one that is new or has another name."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "a").write_text("1")
    (tmp_path / "file").write_text("2")
    found = [turns.fingerprint(["folder", "file"], tmp_path)]
    (tmp_path / "folder" / "a").write_text("3")
    found.append(turns.fingerprint(["folder", "file"], tmp_path))
    (tmp_path / "folder" / "b").write_text("")
    found.append(turns.fingerprint(["folder", "file"], tmp_path))
    (tmp_path / "folder" / "b").rename(tmp_path / "folder" / "c")
    found.append(turns.fingerprint(["folder", "file"], tmp_path))
    assert len(set(found)) == 4
    assert turns.fingerprint(["file", "folder"], tmp_path) == found[-1]


def test_what_tests_look_at_is_there() -> None:
    """A path that was moved would count as unchanged for ever."""
    for file, paths in turns.LOOKS_AT.items():
        assert all((turns.ROOT / path).exists() for path in (file, *paths)), file
