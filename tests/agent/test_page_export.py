"""The agent's page: what it says, that nobody's name becomes markup, that it stays small and is written whole."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import html.parser
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from drainwise.agent.cycle import AgentCycle, Cycle
from drainwise.agent.export.observers import observers_of, page_observer
from drainwise.agent.export.site_status import MOST_ACTS, SiteStatus, document, page
from drainwise.agent.settings import AgentSettings
from drainwise.facts.errors import ConfigurationError
from drainwise.journal.event import State
from drainwise.journal.memory import Memory
from drainwise.pool.facts import Account, Snapshot
from drainwise.requests.request import RequestFiles
from drainwise.siteconfig import SiteConfig
from drainwise.siteconfig.schema import PageSection

from .memory_pool import NOW, SETTINGS, AlicesPool

SETUP = AgentSettings(AlicesPool(), SETTINGS, True, 60.0, "/no/switch", RequestFiles("/no/requests"))
NASTY = "<script>x</script>\"'&{{ 7 * 7 }}\x1b[2J\n\u202e=cmd()" + "y" * 5000


class Found(html.parser.HTMLParser):
    """All that a browser would find."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def after(pool: AlicesPool, acting: bool = True, memory: Memory | None = None) -> Cycle:
    """A cycle of the agent itself on this pool."""
    pool.age = 0
    done = AgentCycle(pool, SETTINGS, memory or Memory(), None, lambda: NOW, acting).run()
    state = State.BACKING_OFF if done.fault else State.OK
    return dataclasses.replace(done, next_in=60.0, state=state, why=done.fault or "gives the orders of each plan")


def status(*cycles: Cycle, pilots: int = 200) -> dict[str, Any]:
    """What is known when these have ended, as its JSON has it."""
    kept = SiteStatus("htcondor on cm", "least-waste", pilots)
    found: dict[str, object] = {}
    for cycle in cycles:
        found = kept.after(cycle)
    read: dict[str, Any] = json.loads(document(found))
    return read


def test_it_says_who_holds_what_who_is_owed_and_what_was_done() -> None:
    found = status(after(AlicesPool(pilots=3, wanted=16)))
    assert (found["state"], found["policy"], found["acting"], found["kill_switch"]) == ("ok", "least-waste", True, None)
    assert {one["account"]: one["wanted"] for one in found["accounts"]["shown"]} == {"a": 0, "b": 16}
    assert (found["pilots"]["count"], found["pilots"]["cores"]) == (3, 24)
    assert [one["state"] for one in found["pilots"]["shown"]] == ["ordered", "ordered", "running"]
    assert all(one["kill_waste"] > 0 for one in found["pilots"]["shown"])
    assert [(one["act"], one["outcome"], one["user"]) for one in found["acts"]] == [("order", "done", "alice")] * 2
    assert all("ordered to end by" in one["detail"] and one["reason"] for one in found["acts"])
    assert found["decision"]["cores"]["deficit"] == 16 and found["coverage"]["open_orders"] == 0
    standings = {one["standing"]: one["pilots"] for one in found["coverage"]["standings"]}
    assert standings["fresh"] == 3 and sum(standings.values()) == 3
    shown = Found(page(found)).text
    assert all(
        part in shown for part in ("htcondor on cm", "least-waste", "2026-11-21 08:16:40Z", "Kill switch: not set")
    )


def test_a_dry_run_shows_what_it_would_order() -> None:
    found = status(after(AlicesPool(pilots=3, wanted=16), acting=False))
    assert found["decision"]["orders"]["count"] == 2 and found["acts"] == []
    assert [one["outcome"] for one in found["decision"]["orders"]["shown"]] == [None, None]
    assert "not given" in Found(page(found)).text


def test_a_cycle_that_saw_nothing_keeps_what_was_seen_before_it_and_says_so() -> None:
    pool = AlicesPool(pilots=3, wanted=16)
    first = after(pool)
    pool.snapshots_left = 0
    found = status(first, after(pool))
    assert (found["state"], found["fault"]) == ("backing off", "the batch system went away")
    assert found["seen"] == NOW and found["pilots"]["count"] == 3 and len(found["acts"]) == 2
    assert "This cycle saw nothing" in Found(page(found)).text
    nothing = status(after(pool))
    assert nothing["seen"] is None and "the batch system went away" in Found(page(nothing)).text


def test_the_kill_switch_is_named() -> None:
    cycle = dataclasses.replace(after(AlicesPool(pilots=1)), kill_switch="/etc/drainwise/kill-switch")
    assert "/etc/drainwise/kill-switch is there, no order is given" in Found(page(status(cycle))).text


class NastyPool(AlicesPool):
    """All that a user can name has a hostile name, and the accountant has lost its mind."""

    def snapshot(self, now: int) -> Snapshot:
        seen = super().snapshot(now)
        pilots = tuple(
            dataclasses.replace(one, name=NASTY, user=NASTY, account=NASTY, node=NASTY) for one in seen.pilots
        )
        accounts = (*seen.accounts, Account(NASTY, float("nan"), float("inf"), 1e300, float("-inf")))
        return dataclasses.replace(seen, pilots=pilots, accounts=accounts, notices=(NASTY,), versions=((NASTY, 1),))


def test_no_name_becomes_markup_and_no_figure_spoils_the_json() -> None:
    """HOSTILE 41, 45."""
    found = status(after(NastyPool(pilots=3, wanted=16)))
    text = page(found)
    shown = Found(text)
    assert not {tag for tag, _ in shown.tags} & {"script", "link", "img", "iframe", "object", "embed", "a", "form"}
    assert not [names for _, names in shown.tags if {"src", "href", "style", "onload", "onclick"} & set(names)]
    assert "<script>x</script>\"'&{{ 7 * " in shown.text, "it is shown as what it is"
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f\u202e]", text + json.dumps(found, ensure_ascii=False))
    assert max(map(len, re.findall(r"[^<>]+", text.partition("</style>")[2]))) < 1500


def test_its_policy_allows_its_own_style_and_nothing_else() -> None:
    text = page(status(after(AlicesPool())))
    [policy] = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]+)"', text)
    [style] = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert policy.replace("&#39;", "'").split("; ")[:2] == ["default-src 'none'", f"style-src 'sha256-{digest}'"]


def test_of_very_many_pilots_it_shows_the_first_and_counts_all() -> None:
    """A site of 5,000 pilots: those on their way out come first."""
    pool = AlicesPool(pilots=5000, wanted=16)
    found = status(after(pool), pilots=100)
    assert (found["pilots"]["count"], len(found["pilots"]["shown"])) == (5000, 100)
    assert [one["state"] for one in found["pilots"]["shown"]].count("ordered") == 2
    assert found["pilots"]["shown"][0]["state"] == "ordered"
    text = page(found)
    assert len(text) < 200_000 and "The first 100 of 5000 pilots are shown." in text


def test_the_acts_that_it_keeps_are_bounded() -> None:
    kept = SiteStatus("pool", "least-waste", 10)
    for _ in range(MOST_ACTS):
        found = kept.after(after(AlicesPool(pilots=3, wanted=16)))
    assert isinstance(found["acts"], list) and len(found["acts"]) == MOST_ACTS


def test_both_files_are_written_whole_into_a_directory_of_the_site(tmp_path: Path) -> None:
    """One line when the directory is not there, one when it is; nothing beside the two files."""
    place, lines = tmp_path / "www", list[str]()
    observe = page_observer(PageSection(directory=str(place)), "site.ini", "pool", "least-waste", lines.append)
    assert observe is not None
    cycle = after(AlicesPool(pilots=3))
    observe(cycle)
    observe(cycle)
    assert lines == [f"page, {place}: No such file or directory"]
    place.mkdir()
    old = place / "index.html"
    old.symlink_to(tmp_path / "elsewhere")
    observe(cycle)
    assert lines[1:] == [f"page, {place}: works again"]
    assert sorted(os.listdir(place)) == ["index.html", "status.json"] and not (tmp_path / "elsewhere").exists()
    assert old.read_text().rstrip().endswith("</html>") and not old.is_symlink()
    assert json.loads((place / "status.json").read_text())["pilots"]["count"] == 3
    assert oct(old.stat().st_mode & 0o777) == "0o644"


def test_a_page_that_cannot_be_made_fails_no_cycle(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    lines: list[str] = []
    observe = page_observer(PageSection(directory=str(tmp_path)), "site.ini", "pool", "least-waste", lines.append)
    assert observe is not None
    broken = dataclasses.replace(after(AlicesPool()), next_in=float("inf"))
    observe(broken)
    observe(broken)
    assert len(lines) == 1 and "a fault of drainwise itself: OverflowError" in lines[0]


def test_without_jinja2_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigurationError, match=r"\[page\] directory = '/srv/www': expected jinja2"):
        page_observer(PageSection(directory="/srv/www"), "site.ini", "pool", "least-waste", pytest.fail)


def test_a_site_that_wants_no_page_has_none() -> None:
    assert page_observer(PageSection(), "site.ini", "pool", "least-waste", pytest.fail) is None
    assert observers_of(SiteConfig(), SETUP, "pool", pytest.fail) == ()
