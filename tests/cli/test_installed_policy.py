"""docs/your-own-policy.md is true: its policy decides in `plan` and `reclaim`; what is not one is refused."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from drainwise.cli.main import main
from drainwise.common.plugin_entries import PluginEntries
from drainwise.facts.errors import ConfigurationError
from drainwise.reclaim import policies
from drainwise.siteconfig import load
from made_up_package import put_package

if TYPE_CHECKING:
    from .conftest import AlicesPool

DOCUMENT = (Path(__file__).parents[2] / "docs" / "your-own-policy.md").read_text()
[CODE], [ENTRY] = (re.findall(rf"```{language}\n(.*?)```", DOCUMENT, re.DOTALL) for language in ("python", "toml"))
WRONG = """
from drainwise.reclaim.policy import LEAST_WASTE

class WRONG:
    def choose(self, candidates, need):
        return {}
"""

Install = Callable[..., "list[str]"]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Put the document's package, or one with other code, on sys.path; the list takes the warnings."""

    def put(code: str = CODE, entry: str = ENTRY) -> list[str]:
        place = tmp_path / "packages"
        points = re.sub('"', "", entry.replace("project.entry-points.", "").replace("site_policies:", "toy_code:"))
        put_package(place, "toy", points, code)
        monkeypatch.syspath_prepend(str(place))
        monkeypatch.delitem(sys.modules, "toy_code", raising=False)
        said: list[str] = []
        monkeypatch.setattr(
            policies, "_installed", PluginEntries(policies.GROUP, policies._accept, policies.POLICIES, said.append)
        )
        return said

    return put


def test_the_documented_policy_decides(pool: AlicesPool, install: Install, capsys: pytest.CaptureFixture[str]) -> None:
    said = install()
    assert main(["plan", "--policy", "largest-first"]) == 0
    shown = capsys.readouterr().out
    assert "policy largest-first: 2 pilots give back 16 of 16 cores" in shown
    assert "the largest pilot first" in shown
    assert main(["reclaim", "--once", "--act", "--policy", "largest-first", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["policy"] == "largest-first"
    assert len(pool.orders) == 2
    assert said == []


def test_the_site_file_names_it(install: Install, tmp_path: Path) -> None:
    install()
    site = tmp_path / "site.ini"
    site.write_text("[reclaim]\npolicy = largest-first\n")
    assert load(str(site)).reclaim.policy == "largest-first"
    site.write_text("[reclaim]\npolicy = smallest-first\n")
    with pytest.raises(ConfigurationError, match=r"one of least-waste, .* or a policy of an installed package"):
        load(str(site))


def test_every_key_of_the_document_exists(pool: AlicesPool, install: Install) -> None:
    names = re.findall(r"`(?:it)?\.([a-z_.]+)`", DOCUMENT)
    assert len(names) > 15
    keys = ", ".join(f"it.{name if hasattr_of(name) else 'columns.' + name}" for name in names if name != "now")
    install(CODE.replace("-it.columns.cores,", f"-it.columns.cores, {keys}"))
    assert main(["plan", "--policy", "largest-first"]) == 0


def hasattr_of(name: str) -> bool:
    """Whether a name of the document stands with its place, or is one of the figures."""
    return "." in name or name in {"remaining", "draining_waste", "kill_waste", "leave", "cut", "kill", "least"}


@pytest.mark.parametrize(
    ("choose", "fault"),
    [
        ("()", "chose 0 cores; every policy chooses exactly 16 of these"),
        ("LEAST_WASTE.choose(candidates, need) * 2", "chose a pilot twice"),
        ("LEAST_WASTE.choose(candidates, replace(need, cores=8, most=8))", "chose 8 cores"),
        ("[replace(one, option=one.candidate) for one in LEAST_WASTE.choose(candidates, need)]", "chose a pilot"),
        ("1 / 0", "failed: ZeroDivisionError: division by zero"),
        ("[None]", "failed: AttributeError: "),
    ],
    ids=["nobody", "twice", "too few", "its own deadline", "fails", "no choice"],
)  # fmt: skip
def test_a_choice_that_no_policy_may_make_gives_no_order(
    pool: AlicesPool, install: Install, choose: str, fault: str, capsys: pytest.CaptureFixture[str]
) -> None:
    install(f"from dataclasses import replace\n{WRONG.format(choose)}", ENTRY.replace("LARGEST_FIRST", "WRONG"))
    assert main(["reclaim", "--once", "--act", "--policy", "largest-first"]) != 0
    assert f"policy 'largest-first' {fault}" in capsys.readouterr().err
    assert pool.orders == []


@pytest.mark.parametrize("code", ["import no_such_module", "LARGEST_FIRST = 3"], ids=["no import", "no policy"])
def test_a_broken_one_is_refused_when_it_is_chosen(
    pool: AlicesPool, install: Install, code: str, capsys: pytest.CaptureFixture[str]
) -> None:
    said = install(code)
    assert main(["plan"]) == 0
    assert said == [], "nothing of it was imported"
    assert main(["plan", "--policy", "largest-first"]) != 0
    assert "policy 'largest-first' cannot be loaded; there are least-waste, open-need, paper" in capsys.readouterr().err
    assert ["'largest-first' (drainwise.policies) of package toy 1.0 is left out" in line for line in said] == [True]


def test_the_name_of_a_built_in_one_is_not_taken(pool: AlicesPool, install: Install) -> None:
    said = install(entry=ENTRY.replace("largest-first", "paper"))
    assert policies.policy_names() == tuple(policies.POLICIES)
    assert "drainwise has one of this name itself" in said[0]
