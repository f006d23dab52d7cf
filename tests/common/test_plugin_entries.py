"""What other packages add is found by their metadata, loaded when it is needed, and never in the way when broken."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from drainwise.common.plugin_entries import PluginEntries
from made_up_package import put_package

GROUP = "drainwise.toys"


class Shelf:
    """A directory on sys.path."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def put(self, package: str, entries: str, code: str = "", version: str = "1.0") -> None:
        """Add a package with these entry points, and one of another group."""
        text = f"[{GROUP}]\n{entries}\n[other]\nnone = nowhere:nothing\n"
        put_package(self.directory, package, text, code, version)


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shelf:
    monkeypatch.syspath_prepend(str(tmp_path))
    return Shelf(tmp_path)


def accept(name: str, found: object) -> int:
    if not isinstance(found, int):
        raise TypeError(f"{name} is a {type(found).__name__}, expected an int")
    return found


def entries() -> tuple[PluginEntries[int], list[str]]:
    """The group and the warnings it gave."""
    said: list[str] = []
    return PluginEntries(GROUP, accept, ("mine",), said.append), said


def test_an_installed_package_adds_its_object(shelf: Shelf) -> None:
    shelf.put("good", "good = good_code:VALUE\nother-one = good_code:OTHER", "VALUE, OTHER = 7, 8")
    found, said = entries()
    assert found.names() == ("good", "other-one")
    assert (found.get("good"), found.get("never")) == (7, None)
    assert found.all() == {"good": 7, "other-one": 8}
    assert not said


def test_a_name_alone_imports_nothing(shelf: Shelf) -> None:
    shelf.put("lazy", "lazy = lazy_code:VALUE", "VALUE = 1")
    found, _ = entries()
    assert found.names() == ("lazy",)
    assert "lazy_code" not in sys.modules


@pytest.mark.parametrize(
    ("code", "fault"),
    [
        ("import no_such_module", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("raise SystemExit('away')", "SystemExit: away"),
        ("1 +", "SyntaxError: invalid syntax"),
        ("OTHER = 1", "AttributeError: "),
        ("VALUE = 'x'", "TypeError: bad is a str, expected an int"),
        ("raise ValueError('two\\nlines \\x1b[2J')", "ValueError: two lines ?[2J"),
    ],
)
def test_a_broken_one_is_left_out_with_one_line_that_names_package_and_fault(
    shelf: Shelf, code: str, fault: str
) -> None:
    shelf.put("broken", "bad = broken_code:VALUE", code, version="2.5")
    shelf.put("good", "good = good_code:VALUE", "VALUE = 7")
    sys.modules.pop("broken_code", None)
    found, said = entries()
    assert found.all() == {"good": 7}
    assert found.get("bad") is None
    assert len(said) == 1
    assert said[0].startswith(f"'bad' ({GROUP}) of package broken 2.5 is left out: {fault}")


def test_names_that_are_taken_or_no_names_are_left_out(shelf: Shelf) -> None:
    shelf.put("first", "same = first_code:VALUE", "VALUE = 1")
    shelf.put("second", "same = second_code:VALUE\nmine = second_code:VALUE\n../etc = second_code:VALUE", "VALUE = 2")
    found, said = entries()
    assert found.names() == ("same",)
    assert {line.partition(" ")[0] for line in said} == {"'same'", "'mine'", "'../etc'"}


def test_a_second_package_of_the_same_name_is_hidden(shelf: Shelf, tmp_path: Path) -> None:
    """As its modules are: only what stands first on sys.path can be imported."""
    shelf.put("twice", "twice = twice_code:VALUE", "VALUE = 1")
    Shelf(tmp_path).put("twice", "older = twice_code:VALUE", "VALUE = 1", version="0.9")
    found, said = entries()
    assert len(found.names()) == 1
    assert not said


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("entry_points.txt", b"[console_scripts]\nno equals sign\n"),
        ("entry_points.txt", b"[drainwise.toys]\nt\xffy = m:o\n"),
        ("METADATA", b"Name: bro\xffken\n"),
    ],
)
def test_metadata_that_cannot_be_read_hinder_no_other_package(shelf: Shelf, file: str, content: bytes) -> None:
    """Any package of the machine may have such, and what was left of one that is gone."""
    shelf.put("good", "good = good_code:VALUE", "VALUE = 7")
    shelf.put("rotten", "bad = rotten_code:VALUE")
    [information] = shelf.directory.glob("rotten-*.dist-info")
    (information / file).write_bytes(content)
    found, said = entries()
    assert found.names() == ("good",)
    assert len(said) == 1 and " is left out: its metadata: " in said[0]


def test_metadata_are_read_only_when_a_name_is_asked_for() -> None:
    """Reading them takes longer than starting a command that needs none."""
    program = (
        "import sys; from drainwise.common.plugin_entries import PluginEntries as P; P('x', print, ());"
        " print('importlib.metadata' in sys.modules)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": ":".join(sys.path)},
    )
    assert ran.stdout == "False\n"
