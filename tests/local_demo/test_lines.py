"""Without a terminal, and after the live table: plain lines of at most 80 columns, of which none is lost."""

from __future__ import annotations

import pytest

from local_demo.lines import WIDTH, Lines, folded
from local_demo.sums import verdict

LONG = [
    "",
    "  youngest-first would have killed " + ", ".join(f"p{number}" for number in range(1, 40)),
    verdict(12345, 98765),
]


def test_a_wide_line_goes_on_in_the_next_one() -> None:
    """Word by word, behind an indent; an empty line stays."""
    found = folded(LONG)
    assert found[0] == ""
    assert max(map(len, found)) <= WIDTH
    assert [line.split() for line in (" ".join(found)).split("least-waste")] == [
        line.split() for line in (" ".join(LONG)).split("least-waste")
    ]
    assert all(line.startswith("    ") for line in found if line and not line.startswith(("  y", "least-waste")))


def test_what_happens_is_folded_too_and_the_first_line_says_how_to_stop(capsys: pytest.CaptureFixture[str]) -> None:
    Lines().say(12.5, "bob " * 40)
    first, *others = capsys.readouterr().out.splitlines()
    assert first.startswith("Ctrl-C stops it")
    assert others[0].startswith("  12.5 s  bob bob")
    assert max(map(len, others)) <= WIDTH
    assert sum(line.count("bob") for line in others) == 40
