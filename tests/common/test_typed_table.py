"""Whatever a person wrote: it is of its kind, or one line says the file, the key, the value and what was expected."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.common.typed_table import (
    Kind,
    absolute_path,
    argument,
    choice,
    in_file,
    list_of,
    matching,
    number,
    optional,
    read_json,
    read_table,
    table_of,
    text,
    truth,
    whole,
)
from drainwise.facts.errors import ConfigurationError

KINDS: dict[str, Kind[Any]] = {
    "on": truth(),
    "count": whole(1, 9),
    "rate": number(0, 1),
    "seconds": number(0, 1e9, "seconds above 0", above=True),
    "name": text(5, least=1),
    "letter": matching("[a-z]", "a small letter"),
    "unit": choice("MB", "GB"),
    "bin": absolute_path(),
    "share": optional(number(0, 1)),
    "command": list_of(argument(), "a list of words", least=1),
    "environment": table_of(argument(), "a table of variables", matching("[A-Z]+", "capitals")),
}
WRONG = in_file("x.toml", "part")
SCALARS = st.none() | st.booleans() | st.floats() | st.text()


def test_a_table_is_read_as_it_stands() -> None:
    found = {
        "on": False,
        "count": 9,
        "rate": 0,
        "seconds": 0.5,
        "name": "é",
        "letter": "q",
        "unit": "GB",
        "bin": "/usr/bin",
        "share": None,
        "command": ["./run", ""],
        "environment": {"A": "b\n"},
    }
    assert read_table(found, KINDS, WRONG) == {**found, "command": ("./run", "")}
    assert read_table({}, KINDS, WRONG) == {}


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("on", 1, "on = '1': expected true or false"),
        ("count", True, "count = 'True': expected a whole number from 1 to 9"),
        pytest.param("count", 10**5000, "count = 'a very large number': expected a whole number", id="huge"),
        ("count", 1.0, "count = '1.0': expected a whole number from 1 to 9"),
        ("rate", float("nan"), "rate = 'nan': expected a number from 0, at most 1"),
        ("rate", True, "rate = 'True': expected a number"),
        ("seconds", 0, "seconds = '0': expected seconds above 0"),
        ("name", "", "name = '': expected a printable text of 1 to 5 characters"),
        ("name", "a\x1b[2J", r"name = 'a\x1b[2J': expected a printable text"),
        ("letter", "a\n", r"letter = 'a\n': expected a small letter"),
        ("unit", "TB", "unit = 'TB': expected one of MB, GB"),
        ("unit", ["MB"], "unit = \"['MB']\": expected one of MB, GB"),
        ("bin", "usr/bin", "bin = 'usr/bin': expected an absolute path"),
        ("share", 2, "share = '2': expected a number from 0, at most 1, or null"),
        ("command", [], "command = '[]': expected a list of words"),
        ("command", "ls", "command = 'ls': expected a list of words"),
        ("command", ["ls", 1], "command.2 = '1': expected text that is UTF-8 and has no NUL"),
        ("command", ["\ud800"], r"command.1 = '\ud800': expected text that is UTF-8"),
        ("environment", {"a": "b"}, "environment.a = 'a': expected capitals"),
        ("environment", {"A": "\0"}, r"environment.A = '\x00': expected text that is UTF-8 and has no NUL"),
        ("environment", [], "environment = '[]': expected a table of variables"),
        ("cuont", 1, "cuont = '1': expected one of on, count"),
    ],
)
def test_what_is_wrong_is_named(key: str, value: object, said: str) -> None:
    with pytest.raises(ConfigurationError) as fault:
        read_table({key: value}, KINDS, WRONG)
    assert str(fault.value).startswith(f"x.toml: [part] {said}")


def test_a_key_that_is_nearly_one_is_guessed() -> None:
    with pytest.raises(ConfigurationError, match=r"did you mean count\?$"):
        read_table({"cuont": 1}, KINDS, WRONG)


def test_what_is_needed_is_missed() -> None:
    with pytest.raises(ConfigurationError, match="bin = 'missing': expected an absolute path"):
        read_table({"count": 1}, KINDS, WRONG, required=("count", "bin"))
    with pytest.raises(ConfigurationError, match="'7': expected a table"):
        read_table(7, KINDS, WRONG)


@given(st.dictionaries(st.text() | st.sampled_from(sorted(KINDS)), st.recursive(SCALARS, st.lists, max_leaves=6)))
def test_whatever_stands_there_is_of_its_kind_or_refused(found: dict[str, object]) -> None:
    """HOSTILE 41: and the error is one printable line."""
    try:
        read_table(found, KINDS, WRONG)
    except ConfigurationError as fault:
        assert str(fault).isprintable() or not str(fault).isascii()
        assert "\n" not in str(fault)


def test_json_has_each_key_once_and_each_number_is_one() -> None:
    assert read_json('{"a": [1, 2.5, null]}', WRONG) == {"a": [1, 2.5, None]}
    for written, said in [
        ('{"a": 1, "a": 2}', "a = '2': expected the key once"),
        ('{"a": NaN}', "'NaN': expected JSON, which has no such number"),
        ("{", "Expecting property name"),
        ("[" * 100_000, "'nested too deeply': expected JSON"),
    ]:
        with pytest.raises(ConfigurationError) as fault:
            read_json(written, WRONG)
        assert said in str(fault.value)


@given(st.dictionaries(st.text(), st.integers() | st.text()))
def test_json_is_read_as_it_was_written(value: dict[str, object]) -> None:
    assert read_json(json.dumps(value), WRONG) == value
