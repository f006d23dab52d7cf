"""Kinds of value: ranges hold, and nothing that a configuration or a script would take for code gets through."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.siteconfig.kinds import TextKind, choice, decimal, duration, integer, path, size, url, word
from drainwise.siteconfig.schema import keys

KINDS: list[TextKind[object]] = list({id(key.kind): key.kind for key in keys()}.values())


@pytest.mark.parametrize(
    ("kind", "good", "value"),
    [
        (duration("1m", "1h"), "1m", 60),
        (duration("1m", "1h"), "60m", 3600),
        (size("1MB", "1GB"), "1GB", 10**9),
        (integer(1, 100), "100", 100),
        (decimal("0.01", "1000"), "10.50", Decimal("10.50")),
        (choice("none", "least-waste"), "least-waste", "least-waste"),
        (path(), "/usr/libexec/drainwise-1.0+x", "/usr/libexec/drainwise-1.0+x"),
        (word(), "DRAINWISE_2", "DRAINWISE_2"),
        (url(), "https://%h.example.org:8443/jobs", "https://%h.example.org:8443/jobs"),
        (url(), "http://127.0.0.1:8080/", "http://127.0.0.1:8080/"),
    ],
)
def test_a_value_within_its_limits_is_read(kind: TextKind[object], good: str, value: object) -> None:
    """Limits belong to the range."""
    assert kind.parse(good) == value


@pytest.mark.parametrize(
    ("kind", "bad"),
    [
        (duration("1m", "1h"), "59s"),
        (duration("1m", "1h"), "61m"),
        (duration("1m", "1h"), "999999999d"),
        (size("1MB", "1GB"), "999kB"),
        (size("1MB", "1GB"), "1TB"),
        (integer(1, 100), "0"),
        (integer(1, 100), "101"),
        (integer(1, 100), "1_0"),
        (integer(1, 100), "9" * 5000),
        (integer(1, 100), "٣"),
        (decimal("0.01", "1000"), "0.001"),
        (decimal("0.01", "1000"), "1e2"),
        (decimal("0.01", "1000"), "nan"),
        (decimal("0.01", "1000"), "-1"),
        (decimal("0.01", "1000"), ".5"),
        (choice("none", "least-waste"), "None"),
        (url(), "https://"),
        (url(), "ftp://host/"),
        (url(), "https://user@host/"),
        (url(), "https://host/a b"),
        (url(), "https://host/$(x)"),
        (url(), "https://host/?q=1"),
        (url(), "https://%n/"),
        (url(), f"https://{'h' * 150}/"),
        (path(), "usr/bin"),
        (path(), "/usr/../etc"),
        (path(), "/usr/./bin"),
        (path(), "/usr//bin"),
        (path(), "/usr/bin/"),
        (path(), "/"),
        (path(), "~/bin"),
        (path(20), "/" + "a" * 20),
        (word(), "2X"),
        (word(), "A-B"),
        (word(), "A" * 33),
    ],
)
def test_a_value_beyond_its_limits_is_refused(kind: TextKind[object], bad: str) -> None:
    """Too small, too large, negative, relative, not in normal form, other digits."""
    with pytest.raises(ValueError, match=r".*"):
        kind.parse(bad)


of_a_kind = st.sampled_from(["8", "240.5", "30s", "/usr/bin", "https://host/", "word", "yes", "slot1@node"])
any_text = st.text(alphabet=st.characters(codec="utf-8"), max_size=40)


@given(text=any_text | of_a_kind | st.builds("{}{}".format, of_a_kind, st.sampled_from("\"'`$%\\(){}[];&|<>*?!#~x \n")))
def test_no_kind_lets_a_meaningful_character_through(text: str) -> None:
    """Quotes, `$(`, backticks, `%`, blanks, newlines and control characters of the site file reach no rendered file."""
    for kind in KINDS:
        try:
            shown = kind.show(kind.parse(text))
        except ValueError:
            continue
        assert shown.isascii()
        assert shown.isprintable()
        wildcards = "*?" if kind.name == "patterns" else ""  # names of files, which no shell reads
        assert not set(shown) & set("\"'`$%\\(){}[];&|<>*?!# ") - set(wildcards)


@pytest.mark.parametrize("attack", ["/bin/x\n", "/bin/$(id)", "/bin/`id`", '/bin/"x"', "/bin/%(a)s", "/bin/\x1b[0m"])
def test_a_path_that_would_be_code_is_refused(attack: str) -> None:
    """Hostile cases 15, 41 and 44: newline, ESC, quotes, macros, back-ticks."""
    with pytest.raises(ValueError, match=r".*"):
        path().parse(attack)
