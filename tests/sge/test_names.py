"""Names for Grid Engine: none that it refuses, and the tag can be read again."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise_launch.backend import tag_of
from drainwise_launch.sge.submission import LONGEST, job_name, mangled, pattern_of

# As 8.1.9 answers: refused by name, or answered by none at all (blanks, what is not ASCII).
REFUSED = set("/:@\\*?\t\n ") | {"é"}
tags = st.from_regex(r"[A-Za-z0-9_-]{1,64}", fullmatch=True)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("repo:job", "repo;job"),
        ("a/b\\c", "a|b|c"),
        ("x@y*z?", "x&y+z!"),
        ("a b\tc\nd", "a_b_c_d"),
        ("é'\"`", "____"),
        ("%l.p", "%l.p"),
    ],
)
def test_close_looking_characters_stand_for_those_refused(text: str, name: str) -> None:
    assert mangled(text) == name


@given(st.text(max_size=300), st.text(max_size=300), tags)
def test_any_name_is_one_that_grid_engine_takes(key: str, name: str, tag: str) -> None:
    made = job_name(key, name, tag)
    assert tag_of(made) == tag
    assert len(made) <= LONGEST and made.isascii()
    assert not set(made) & REFUSED
    assert made[0].isalpha() or made[0] == "_"


@given(st.text(min_size=1, max_size=100), st.text(max_size=300), tags)
def test_the_accounting_is_asked_for_all_jobs_of_a_key(key: str, name: str, tag: str) -> None:
    pattern = pattern_of(key)
    assert re.fullmatch(r"[A-Za-z0-9_.;?-]+\*", pattern)  # nothing else than these is an operator to qacct
    assert fnmatchcase(job_name(key, name, tag), pattern)


def test_another_s_name_has_no_tag() -> None:
    assert [tag_of(name) for name in ("", "STDIN", "a b.", "x.y z")] == ["", "", "", ""]
