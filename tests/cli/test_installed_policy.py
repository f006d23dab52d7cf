"""docs/your-own-policy.md is true: its policy decides in `plan` and `reclaim`; what is not one is refused."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from drainwise.cli.main import main
from drainwise.common.plugin_entries import PluginEntries
from drainwise.facts.errors import ConfigurationError
from drainwise.reclaim import prices
from drainwise.reclaim.candidates import candidates_of
from drainwise.reclaim.settings import ReclaimSettings
from drainwise.siteconfig import load
from made_up_package import put_package

from .conftest import pilot

if TYPE_CHECKING:
    from .conftest import AlicesPool

DOCUMENT = (Path(__file__).parents[2] / "docs" / "your-own-policy.md").read_text()
[CODE], [ENTRY] = (re.findall(rf"```{language}\n(.*?)```", DOCUMENT, re.DOTALL) for language in ("python", "toml"))
WRONG = """
import numpy as np

from drainwise.reclaim.prices import PriceList

WRONG = PriceList("wrong", lambda it, settings: {})
"""
OF_BEFORE = """
class FEWEST_PILOTS:
    def choose(self, candidates, need):
        return ()
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
            prices, "_installed", PluginEntries(prices.GROUP, prices._accept, prices.POLICIES, said.append)
        )
        return said

    return put


def test_the_documented_policy_decides(pool: AlicesPool, install: Install, capsys: pytest.CaptureFixture[str]) -> None:
    said = install()
    assert main(["plan", "--policy", "fewest-pilots"]) == 0
    shown = capsys.readouterr().out
    assert "policy fewest-pilots: 2 pilots give back 16 of 16 cores" in shown
    assert "the fewest pilots" in shown
    assert main(["reclaim", "--once", "--act", "--policy", "fewest-pilots", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["policy"] == "fewest-pilots"
    assert len(pool.orders) == 2
    assert said == []


def test_it_sees_the_pilots_of_one_user_at_a_time(install: Install) -> None:
    install(WRONG.format("np.full(len(it), float(len(it)))"), ENTRY.replace("FEWEST_PILOTS", "WRONG"))
    settings, now = ReclaimSettings("fewest-pilots", 7200, 7200, 86_400, 3600, 100, 100, 100), 1_795_249_000
    figures = candidates_of([pilot(one, now, now, None) for one in range(3)], now, settings).figures
    assert prices.prices_of(figures, settings).tolist() == [3, 3, 3]
    assert prices.prices_of(figures, settings, np.array([0, 0, 1])).tolist() == [2, 2, 1]


def test_the_site_file_names_it(install: Install, tmp_path: Path) -> None:
    install()
    site = tmp_path / "site.ini"
    site.write_text("[reclaim]\npolicy = fewest-pilots\n")
    assert load(str(site)).reclaim.policy == "fewest-pilots"
    site.write_text("[reclaim]\npolicy = smallest-ones\n")
    with pytest.raises(ConfigurationError, match=r"one of least-waste, .* or a policy of an installed package"):
        load(str(site))


def test_every_key_of_the_document_exists(pool: AlicesPool, install: Install) -> None:
    names = re.findall(r"`(?:it)?\.([a-z_.]+)`", DOCUMENT)
    assert len(names) > 15
    keys = ", ".join(f"it.{name if hasattr_of(name) else 'columns.' + name}" for name in names if name != "now")
    install(CODE.replace("np.ones(len(it))", f"np.sum([np.isfinite(one) for one in ({keys})], axis=0)"))
    assert main(["plan", "--policy", "fewest-pilots"]) == 0


def hasattr_of(name: str) -> bool:
    """Whether a name of the document stands with its place, or is one of the figures."""
    return "." in name or name in {"remaining", "draining_waste", "kill_waste", "leave", "cut", "kill", "least"}


@pytest.mark.parametrize(
    ("returned", "fault"),
    [
        ("()", "gave prices of shape (0,); one for each of 4 pilots"),
        ("it.least[:, None]", "gave prices of shape (4, 1); one for each of 4 pilots"),
        ("it.least - 1e9", "gave the price -999"),
        ("it.least * np.inf", "gave the price inf; a price is finite and at least 0"),
        ("[float('nan')] * 4", "gave the price nan"),
        ("1 / 0", "failed: ZeroDivisionError: division by zero"),
        ("['a', 'b']", "failed: ValueError: "),
    ],
    ids=["none", "a table", "below 0", "infinite", "no number", "fails", "words"],
)  # fmt: skip
def test_what_is_no_price_gives_no_order(
    pool: AlicesPool, install: Install, returned: str, fault: str, capsys: pytest.CaptureFixture[str]
) -> None:
    install(WRONG.format(returned), ENTRY.replace("FEWEST_PILOTS", "WRONG"))
    assert main(["reclaim", "--once", "--act", "--policy", "fewest-pilots"]) != 0
    assert f"policy 'fewest-pilots' {fault}" in capsys.readouterr().err
    assert pool.orders == []


@pytest.mark.parametrize(
    "price", ["it.kill_waste * 0", "it.kill_waste * 1e300", "-it.columns.started - it.columns.started.min()"]
)
def test_no_price_list_changes_a_figure_or_a_number_of_cores(
    pool: AlicesPool, install: Install, price: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever the prices are, and though the function writes into what it is given."""
    install(
        WRONG.format(f"abs({price}) if it.columns.cores.__setitem__(slice(None), 1) is None else 0"),
        ENTRY.replace("FEWEST_PILOTS", "WRONG"),
    )
    given = []
    for policy in ("least-kill", "fewest-pilots"):
        assert main(["plan", "--policy", policy, "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        given.append([one["cores"] for user in found["users"] for one in user["orders"]])
    assert given == [[8, 8], [8, 8]]


@pytest.mark.parametrize(
    "code", ["import no_such_module", "FEWEST_PILOTS = 3", OF_BEFORE], ids=["no import", "no policy", "of before"]
)
def test_a_broken_one_is_refused_when_it_is_chosen(
    pool: AlicesPool, install: Install, code: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is told what a policy has to be."""
    said = install(code)
    assert main(["plan"]) == 0
    assert said == [], "nothing of it was imported"
    assert main(["plan", "--policy", "fewest-pilots"]) != 0
    told = capsys.readouterr().err
    assert "policy 'fewest-pilots' cannot be loaded: it has to be a price list (docs/your-own-policy.md); there" in told
    assert told.count("fewest-pilots") == 1, "the others are named"
    assert ["'fewest-pilots' (drainwise.policies) of package toy 1.0 is left out" in line for line in said] == [True]


def test_the_name_of_a_built_in_one_is_not_taken(pool: AlicesPool, install: Install) -> None:
    said = install(entry=ENTRY.replace("fewest-pilots", "paper"))
    assert prices.policy_names() == tuple(prices.POLICIES)
    assert "drainwise has one of this name itself" in said[0]
