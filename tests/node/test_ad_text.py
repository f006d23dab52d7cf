"""Literals out of ads in long form: what HTCondor's own library reads, or nothing."""

from __future__ import annotations

import classad2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.node.ad_text import literal, literals, raw_values, string, whole

names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,12}", fullmatch=True).filter(
    lambda name: name.lower() not in {"true", "false", "undefined", "error", "is", "isnt", "parent", "my", "target"}
)
# HTCondor refuses a newline in a value, and a NUL ends a C string.
texts = st.text(st.characters(max_codepoint=255, exclude_characters="\n\r\0"), max_size=30)
reals = st.floats(-1e300, 1e300)  # beyond, the library's own text reads back as infinity
values = st.one_of(texts, st.integers(-(2**63) + 1, 2**63 - 1), st.booleans(), reals)


@given(st.dictionaries(names, values, max_size=8))
def test_htcondors_own_long_form_is_read(attributes: dict[str, object]) -> None:
    """Every literal that the real library writes comes back with its value and its type."""
    ad = classad2.ClassAd()
    for name, value in attributes.items():
        ad[name] = value
    written = ad.printOld().encode("utf-8")  # the library's strings are bytes; Python's wheel takes them for UTF-8
    last = {name.lower(): value for name, value in attributes.items()}
    found = literals(written, list(attributes))
    for name in attributes:
        expected = last[name.lower()]
        if isinstance(expected, str):
            assert found[name] == expected.encode("utf-8").decode("latin-1")
        elif isinstance(expected, float):
            assert found[name] == pytest.approx(expected, rel=1e-12)
        else:
            assert found[name] == expected
            assert type(found[name]) is type(expected)


printable = st.text(st.characters(max_codepoint=126, min_codepoint=32), max_size=40)
written = printable.map('"{}"'.format) | st.integers().map(str) | reals.map(str) | st.sampled_from(["true", "FALSE"])


@given(printable | written)
def test_never_another_value_than_htcondors(text: str) -> None:
    """Whatever stands right of `=`: unknown, or what the real library evaluates it to."""
    ours = literal(text.strip())
    if ours is None:
        return
    ad = classad2.parseOne(f"A = {text}")
    if "A" in ad:  # else HTCondor cannot have written it
        assert ad.eval("A") == ours


@pytest.mark.parametrize(
    "text",
    [
        "undefined",
        "error",
        '"a" == "b"',
        '"a" + "b"',
        '"',
        "",
        "-",
        "1 + 1",
        "0x10",
        "1_000",
        "9" * 20,
        "9" * 5000,
        "1e309 + 1",
        "nan",
        "inf",
        "\u0661",
        "\u00b2",
        "ifThenElse(true, 1, 2)",
        "{1, 2}",
        "[ A = 1 ]",
        "(" * 20000,
        "'quoted'",
    ],
)
def test_what_is_no_literal_is_unknown(text: str) -> None:
    """HOSTILE 33, 34, 36: expressions, nesting and odd numbers are never guessed at."""
    assert literal(text) is None


def test_names_compare_without_case_and_as_a_whole() -> None:
    """`Cpus` is not found in `TotalCpus`, and is found as `CPUS`, on the first line and without a last newline."""
    ad = b"cpus = 4\nTotalCpus = 24.0\nMemory = 100"
    assert literals(ad, ("Cpus", "totalcpus", "MEMORY")) == {"Cpus": 4, "totalcpus": 24.0, "MEMORY": 100}
    assert raw_values(b"TotalCpus = 24\n", ("Cpus",)) == {}


def test_a_value_is_not_a_line() -> None:
    """HOSTILE 31, 32: a name inside of a string is no attribute."""
    assert raw_values(b'A = "x Name = \\"slot1_2@node\\""\n', ("Name",)) == {}


lines = st.builds(
    lambda it: b"%b = %b\n" % it, st.tuples(st.sampled_from([b"Name", b"cpus", b"X"]), st.binary(max_size=9))
)
with_values = st.tuples(lines, st.sampled_from([b'Name = "a', b"Cpus = 4", b"name = 1.5"]), lines).map(
    lambda it: it[0] + it[1] + b"\n" + it[2]
)


@given(st.binary(max_size=200) | with_values)
def test_any_bytes_can_be_read(data: bytes) -> None:
    """An ad of garbage costs its values and nothing else."""
    for value in literals(data, ("Name", "Cpus")).values():
        assert isinstance(value, (str, int, float))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (8, 8),
        (24.0, 24),
        (2.9, 2),
        (0, 0),
        (-1, None),
        (True, None),
        ("8", None),
        (2.0**63, None),
        (2**63 - 1, 2**63 - 1),
    ],
)
def test_whole_numbers(value: object, expected: int | None) -> None:
    """Counts and times are whole and not negative; HTCondor writes some of them as reals."""
    assert whole({"A": value}, "A") == expected  # type: ignore[dict-item]


def test_strings() -> None:
    """A number is no string."""
    assert string({"A": "x"}, "A") == "x"
    assert string({"A": 1}, "A") is None
    assert string({}, "A") is None
