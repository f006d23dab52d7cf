"""A payload's JSON is read strictly, and every refusal says what to do."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from all_but_one import all_but_one
from drainwise.facts.errors import PayloadError, UsageError
from drainwise.pilot.decide.payload import LONGEST, Payload, parse_payload, payload_text

SOUND: dict[str, object] = {"name": "p1", "command": ["sleep", "10"], "maximum": 60}


def test_defaults() -> None:
    """One core, expected to run for its maximum, no priority, no task; a string is a command for the shell."""
    found = parse_payload('{"name": "p1", "command": "sleep 10; true", "maximum": 60}')
    assert found == Payload("p1", 1, ("/bin/sh", "-c", "sleep 10; true"), 60.0, 60.0, 0.0, "")


def test_the_file_name_names_a_payload_without_a_name() -> None:
    """A default name is used, and obeys the same rule."""
    text = json.dumps({"command": ["true"], "maximum": 1})
    assert parse_payload(text, "from-file").name == "from-file"
    with pytest.raises(PayloadError, match="name"):
        parse_payload(text, ".hidden")
    with pytest.raises(PayloadError, match="name"):
        parse_payload(text)


names = st.from_regex(r"[A-Za-z0-9_+-][A-Za-z0-9._+-]{0,99}", fullmatch=True)
words = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
times = st.floats(0.001, LONGEST)


@given(
    names,
    st.integers(1, 10**6),
    st.lists(words, min_size=1).filter(lambda command: bool(command[0])),
    times,
    st.floats(0.001, 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(categories=["L", "N", "P", "S"]), max_size=200).filter(str.isprintable),
)
def test_what_is_written_is_read_again(
    name: str, cores: int, command: list[str], maximum: float, share: float, priority: float, task: str
) -> None:
    """Every sound payload makes a round trip through one line of ASCII."""
    made = Payload(name, cores, tuple(command), maximum * share, maximum, priority, task)
    text = payload_text(made)
    assert "\n" not in text and text.isascii()
    assert parse_payload(text) == made


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"name": "a/b"}, "name"),
        ({"name": ".dot"}, "name"),
        ({"name": "x" * 101}, "name"),
        ({"name": "new\nline"}, "name"),
        ({"name": "trailing\n"}, "name"),
        ({"name": 7}, "name"),
        ({"name": "naïve"}, "name"),
        ({"cores": 0}, "cores"),
        ({"cores": -1}, "cores"),
        ({"cores": 1.0}, "cores"),
        ({"cores": True}, "cores"),
        ({"cores": "8"}, "cores"),
        ({"cores": 10**40}, "cores"),
        ({"maximum": 0}, "maximum"),
        ({"maximum": -5}, "maximum"),
        ({"maximum": "60"}, "maximum"),
        ({"maximum": None}, "maximum"),
        ({"maximum": True}, "maximum"),
        ({"maximum": 10**400}, "maximum"),
        ({"maximum": 1e300}, "maximum"),
        ({"expected": 0}, "expected"),
        ({"expected": 61}, "expected"),
        ({"priority": "high"}, "priority"),
        ({"command": []}, "command"),
        ({"command": ""}, "command"),
        ({"command": [""]}, "command"),
        ({"command": ["a", 1]}, "command"),
        ({"command": "a\0b"}, "command"),
        ({"command": ["\ud800"]}, "command"),
        ({"command": {"sh": 1}}, "command"),
        ({"task": "two\nlines"}, "task"),
        ({"task": "\x1b[31m"}, "task"),
        ({"task": "x" * 201}, "task"),
        ({"task": 1}, "task"),
        ({"memory": 5}, "memory"),
        ({"Cores": 5}, "Cores"),
    ],
)
def test_what_is_wrong_is_named(changes: dict[str, object], named: str) -> None:
    """A wrong or unknown key is refused by its name, in one printable line of bounded length (attacks 32, 36, 41)."""
    with pytest.raises(PayloadError) as caught:
        parse_payload(json.dumps({**SOUND, **changes}))
    line = str(caught.value)
    assert named in line and line.isascii() and line.isprintable() and len(line) < 300


@pytest.mark.parametrize("key", ["command", "maximum"])
def test_what_is_missing_is_named(key: str) -> None:
    """There is no payload without a command and a maximum."""
    with pytest.raises(PayloadError, match=key):
        parse_payload(json.dumps({name: value for name, value in SOUND.items() if name != key}))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        "3",
        "{",
        "not json",
        '{"name": "a", "name": "b", "command": ["x"], "maximum": 1}',
        '{"name": "a", "command": ["x"], "maximum": Infinity}',
        '{"name": "a", "command": ["x"], "maximum": NaN}',
        '{"name": "a", "command": ["x"], "maximum": 1e999}',
        '{"name": "a", "command": ["x"], "maximum": ' + "9" * 5000 + "}",
        "[" * 100_000,
        '{"a":' * 100_000,
        " " * (2**20 + 1),
    ],
)
def test_what_is_no_object_is_refused(text: str) -> None:
    """Anything but one sound object is a PayloadError and nothing else (attacks 21, 34, 35, 36)."""
    with pytest.raises(PayloadError):
        parse_payload(text)


sound = {"name": st.just("p1"), "command": st.text("ab ", min_size=1), "maximum": st.integers(1, 10**6)}


@given(st.text() | all_but_one(sound, st.integers() | st.text()).map(json.dumps))
def test_any_text_is_a_payload_or_a_payload_error(text: str) -> None:
    """Nothing else is ever raised."""
    try:
        assert parse_payload(text).maximum > 0
    except PayloadError as error:
        assert isinstance(error, UsageError)


@pytest.mark.parametrize(("expected", "maximum"), [(math.nan, 5), (5, math.nan), (6, 5), (0, 5), (5, math.inf)])
def test_no_payload_has_times_that_cannot_be(expected: float, maximum: float) -> None:
    """A payload that is made by a program obeys the same rules for its times."""
    with pytest.raises(PayloadError):
        Payload("p", 1, (), expected, maximum)
