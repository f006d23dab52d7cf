"""ClassAd expressions as texts: their literals, their parts, and what of them an administrator is shown."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.htcondor.demand.matching import conjuncts, literals_in, searched_names, unusual

# What condor_submit of 25.14.1 made of `requirements = HasFast`, with the job's own values put in.
SUBMITTED = (
    '(TARGET.HasFast) && (TARGET.Arch == "X86_64") && (TARGET.OpSys == "LINUX") &&'
    ' (versionGE(split(TARGET.CondorVersion)[1],"25.12.0") || (TARGET.Disk >= 1024)) && (TARGET.Memory >= 64) &&'
    ' (TARGET.Cpus >= 8) && ((TARGET.FileSystemDomain == "ce1") || (TARGET.HasFileTransfer))'
)


def test_only_what_not_every_job_asks_is_shown() -> None:
    assert unusual(SUBMITTED) == "TARGET.HasFast"
    assert unusual('(TARGET.Arch == "ppc64le") && (TARGET.Memory >= 64)') == 'TARGET.Arch == "ppc64le"'
    assert unusual("true") == ""
    assert unusual("TARGET.Licence >= 2 && TARGET.Rack", ["licence"]) == "TARGET.Rack"


def test_a_long_condition_is_cut() -> None:
    assert len(unusual(" || ".join(f"TARGET.A{number}" for number in range(1000)))) < 310


@pytest.mark.parametrize(
    ("expression", "parts"),
    [
        ("A && B", ["A", "B"]),
        ("(A && B) && C", ["A && B", "C"]),
        ("(A) && (B || C)", ["A", "B || C"]),
        ('A == ") && (" && B', ['A == ") && ("', "B"]),
        ("(A) || (B)", ["(A) || (B)"]),
        ('A == "\\"" && B', ['A == "\\""', "B"]),
    ],
)
def test_the_parts_are_those_that_all_must_hold(expression: str, parts: list[str]) -> None:
    assert conjuncts(expression) == parts


def test_literals_are_texts_without_case_and_numbers() -> None:
    found = literals_in(['Machine != "Node1" && stringListMember(Machine, "n2, n3") && Disk > 1024', "A2 > 1.5"])
    assert {"node1", "n2", "n3"} <= found.texts
    assert found.numbers == (1.5, 1024.0)


def test_an_attribute_whose_text_is_looked_into_is_named() -> None:
    assert "machine" in set(searched_names(['regexp("^n1", TARGET.Machine) && Arch == "X86_64"']))
    assert "arch" not in set(searched_names(['regexp("^n1", TARGET.Machine) && Arch == "X86_64"']))


@given(st.text(alphabet='()&|"\\ ,aA.1[]{}T=', max_size=60))
def test_any_text_is_looked_into(text: str) -> None:
    """HOSTILE 32 to 34: texts that no ClassAd would be."""
    literals_in([text])
    list(searched_names([text]))
    assert len(unusual(text)) <= max(len(text), 302)
