"""Kinds of nodes in one file of settings: the node finds its own, by names, CPU model and features."""

from __future__ import annotations

import posix
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import drainwise
from drainwise.facts.errors import ConfigurationError
from drainwise.facts.name_patterns import matches, patterns_in
from drainwise.node.node_kind import cpu_model, kind_of
from drainwise.node.settings import parse

SETTINGS = """\
hs23 = 100
jobslots = 8
grace_secs = 60
kind = epyc
host = wn[001-120].example.org, rome-*
hs23 = 1500
cpufactor_lrms = 1.3
jobslots = 128
kind = fast
feature = fast, nvme
wall_limit_secs = 7200
kind = this-cpu
cpu_model = MODEL
host = old*
scratch_limit_bytes = 5000
"""


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("wn[001-120].*", "wn017.example.org", True),
        ("wn[001-120]", "wn120", True),
        ("wn[001-120]", "wn121", False),
        ("wn[001-120]", "wn17", False),
        ("wn[001-120]", "wn0017", False),
        ("wn[1-12]", "wn7", True),
        ("wn[1-12]", "wn07", False),
        ("wn[1-3,7]", "wn7", True),
        ("rack[1-3]-n[01-20]", "rack2-n11", True),
        ("rack[1-3]-n[01-20]", "rack2-n21", False),
        ("a*b*c", "aXXbYYc", True),
        ("a*b*c", "aXXbYY", False),
        ("AMD EPYC 7*", "amd epyc 7763 64-Core Processor", True),
        ("Intel(R) Xeon(R)*2.20GHz", "Intel(R) Xeon(R) CPU E5-2650 v4 @ 2.20GHz", True),
        ("?", "", False),
        ("*", "", True),
        ("[", "[", True),
        ("[x]", "x", False),
        ("wn[5-x]", "wn5", False),
    ],
)
def test_patterns(pattern: str, text: str, expected: bool) -> None:
    assert matches(pattern, text) is expected


@given(st.text("ab*?", max_size=12), st.text("abc", max_size=12))
def test_stars_and_question_marks_are_the_shells(pattern: str, text: str) -> None:
    """Held against the regular expression that says the same."""
    said = "".join({"*": ".*", "?": "."}.get(letter, letter) for letter in pattern)
    assert matches(pattern, text) is (re.fullmatch(said, text) is not None)


def test_a_pattern_made_to_be_slow_is_not() -> None:
    """Many stars that fit everywhere and nowhere: the work grows with the product of both lengths at most."""
    program = (
        f"import sys; sys.path.append({str(Path(drainwise.__file__).parents[1])!r});"
        "from drainwise.facts.name_patterns import matches; print(matches('a*' * 100 + 'b', 'a' * 250))"
    )
    ran = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, timeout=5, check=True
    )
    assert ran.stdout == "False\n"


def test_commas_in_brackets_part_nothing() -> None:
    assert patterns_in("wn[1-3,5] , epyc*,") == ["wn[1-3,5]", "epyc*"]


@pytest.mark.parametrize(
    ("name", "features", "kind", "expected"),
    [
        ("wn017.example.org", (), "epyc", ("1500", "128", None)),
        ("rome-3", (), "epyc", ("1500", "128", None)),
        ("wn017.example.org", ("fast",), "epyc", ("1500", "128", None)),
        ("wn200.example.org", ("fast",), "fast", ("100", "8", "7200")),
        ("wn200.example.org", ("NVMe",), "fast", ("100", "8", "7200")),
        ("wn200.example.org", ("slow",), "", ("100", "8", None)),
        ("new1", (), "", ("100", "8", None)),
    ],
)
def test_the_first_kind_that_fits_counts_before_the_rest(
    name: str, features: tuple[str, ...], kind: str, expected: tuple[str | None, ...]
) -> None:
    """What it leaves out is what all nodes have."""
    here = parse(SETTINGS, "node.conf").of_node(name, features)
    assert here.kind == kind
    assert tuple(here.text(key) for key in ("hs23", "jobslots", "wall_limit_secs")) == expected
    assert here.whole("grace_secs") == 60


def test_all_conditions_must_hold() -> None:
    """The CPU model is this machine's; its own name counts beside the batch system's, with and without the domain."""
    model = cpu_model() or "unknown"
    text = SETTINGS.replace("MODEL", model.replace("[", "?").replace(",", "?")[:20] + "*")
    assert parse(text, "f").of_node("old7").whole("scratch_limit_bytes") == (5000 if cpu_model() else None)
    assert parse(text, "f").of_node("new7").kind == ""
    assert parse(SETTINGS, "f").of_node("old7").kind == "", "another CPU"
    mine = ("mine", {"host": posix.uname().nodename.partition(".")[0]})
    assert kind_of([mine], ["another"], []) == mine


def test_settings_without_kinds_are_every_nodes() -> None:
    """And nothing is loaded to find that out."""
    plain = parse("hs23 = 100\n", "f")
    assert plain.of_node("any") is plain
    program = (
        f"import sys; sys.path.append({str(Path(drainwise.__file__).parents[1])!r});"
        "from drainwise.node.settings import parse; parse('hs06 = 1', 'f').of_node('n'); print(*sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=True)
    assert "drainwise.node.settings" in ran.stdout and "node_kind" not in ran.stdout


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("grace_secs = 5", "grace_secs"),
        ("hs06 = fast", "hs06"),
        ("runtime_dir = /run", "runtime_dir"),
        ("host = ", "host"),
        ("colour = red", "colour"),
    ],
)
def test_a_kind_sets_what_a_kind_may_set(line: str, named: str) -> None:
    with pytest.raises(ConfigurationError, match=named):
        parse(f"kind = a\n{line}\n", "f")
    if named == "host":
        with pytest.raises(ConfigurationError, match="host"):
            parse("host = x\n", "f")


@pytest.mark.parametrize("text", ["", "model name\n", "processor : 0\nmodel name\t:  AMD  EPYC \n", "\xff\n"])
def test_a_cpuinfo_of_any_kind(tmp_path: Path, text: str) -> None:
    """One model with single blanks, or none."""
    file = tmp_path / "cpuinfo"
    file.write_text(text, encoding="latin-1")
    assert cpu_model(str(file)) == ("AMD EPYC" if "EPYC" in text else "")
    assert cpu_model(str(tmp_path)) == cpu_model(f"{tmp_path}/none") == ""
