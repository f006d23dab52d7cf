"""Knobs of a drop-in: read with their reasons, and recognised in what a daemon answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

from drainwise.htcondor.setup.check_knobs import expected_knobs
from drainwise.htcondor.setup.knobs import Knob, knobs
from drainwise.siteconfig import FeaturesSection, HTCondorSection, SiteConfig

SITES = [
    SiteConfig(),
    SiteConfig(
        features=FeaturesSection(wall_limit=36000),
        htcondor=HTCondorSection(negotiator_policy="least-waste", retirement=0, max_vacate_time=60),
    ),
    SiteConfig(htcondor=HTCondorSection(partial_return="yes")),
]


def test_a_knob_has_the_comment_above_it() -> None:
    """The reason that a check gives is the comment of the drop-in."""
    text = "# head\n\n# why\n# and more\nA = 1\nB = $(B) x y\n# of nothing\n\nC_D = a == b\n"
    assert list(knobs(text)) == [Knob("A", "1", "why and more"), Knob("B", "$(B) x y", ""), Knob("C_D", "a == b", "")]


@pytest.mark.parametrize(
    ("text", "value", "there"),
    [
        ("True", "true", True),
        ("60", "60", True),
        ("60", "600", False),
        ("60", " 60 ", True),
        ("/a/b", "/a/b/c", False),
        ("$(X) one two", "", False),
        ("$(X) one two", "two, ONE", True),
        ("$(X) one two", "one twofold", False),
        ("$(X) one two", "one zero two", True),
        ("mine || ($(X))", "mine || (False)", True),
        ("mine || ($(X))", "(mine  ||  (A && B)) && C", True),
        ("mine || ($(X))", "False", False),
        ("f($(A), 1, $(B))", "f(x, 1, y)", True),
        ("f($(A), 1, $(B))", "f(x, 2, y)", False),
        ("--execute $(EXECUTE) --x", "--execute /e --x", True),
        ("if($(X:0))", "if(0)", True),
    ],
)
def test_a_knob_is_recognised_in_an_answer(text: str, value: str, there: bool) -> None:
    """Equal without macros; a list by its words; an expression by what stands around its macros, in order."""
    assert Knob("X", text, "").in_force(value) is there


def test_a_knob_that_is_not_set_is_not_in_force() -> None:
    """No answer is not an empty answer that happens to fit."""
    assert not Knob("X", "$(X)", "").in_force(None)


@pytest.mark.parametrize("site", SITES)
@pytest.mark.parametrize("role", ["execute", "access", "central"])
def test_every_rendered_knob_is_recognised_in_the_real_answer(
    site: SiteConfig, role: str, answers: Callable[[str, Iterable[str]], dict[str, str]]
) -> None:
    """HTCondor's own library resolves the drop-in behind a site's earlier values; every line is found again."""
    before = "PREEMPT = (Mine =?= 1)\nSTARTD_ATTRS = Mine\nMAXJOBRETIREMENTTIME = 3600\n"
    wanted = expected_knobs(site, role)
    live = answers(before + "\n".join(knob.line for knob in wanted), [knob.name for knob in wanted])
    assert [knob.name for knob in wanted if not knob.in_force(live.get(knob.name.casefold()))] == []


@pytest.mark.parametrize("role", ["execute", "access", "central"])
def test_no_rendered_knob_is_recognised_where_it_is_not(
    role: str, answers: Callable[[str, Iterable[str]], dict[str, str]]
) -> None:
    """HTCondor's defaults are never taken for ours, but for the one that is equal to ours."""
    wanted = expected_knobs(SITES[1], role)
    live = answers("", [knob.name for knob in wanted])
    found = {knob.name for knob in wanted if knob.in_force(live.get(knob.name.casefold()))}
    assert found <= {"NEGOTIATOR_CONSIDER_PREEMPTION"}
