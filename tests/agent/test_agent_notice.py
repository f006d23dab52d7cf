"""The agent in its batch system: what is shown of it, and that nothing which goes wrong there harms a cycle."""

from __future__ import annotations

import dataclasses
import os

import pytest

from drainwise.agent.cycle import Cycle
from drainwise.agent.export.observers import AgentNotices, observers_of
from drainwise.agent.settings import AgentSettings
from drainwise.facts.errors import RightsRefused
from drainwise.htcondor.pool.collector import AGENT_TYPE, ad_of
from drainwise.pool.abilities import AgentNotice
from drainwise.requests.request import RequestFiles
from drainwise.siteconfig import SiteConfig
from drainwise.siteconfig.schema import AgentSection

from .memory_pool import NOW, SETTINGS, AlicesPool
from .test_page_export import after


class ShowingPool(AlicesPool):
    """Keeps what it is to show, or raises its fault."""

    def __init__(self) -> None:
        super().__init__()
        self.shown: list[AgentNotice] = []
        self.fault: Exception | None = None
        self.tried = 0

    def show_agent(self, notice: AgentNotice) -> None:
        self.tried += 1
        if self.fault is not None:
            raise self.fault
        self.shown.append(notice)


def cycle(**more: object) -> Cycle:
    return dataclasses.replace(after(AlicesPool()), **more)  # type: ignore[arg-type]


def test_it_tells_a_dead_agent_from_a_quiet_one() -> None:
    """Its last cycle, the next one, its state, and the last error with its time, which stays."""
    pool = ShowingPool()
    notices = AgentNotices(pool, "least-waste", 60.0, pytest.fail)
    notices.observe(cycle(fault="no\x1b answer", state="backing off", why="no answer", next_in=600.0, plan=None))
    notices.observe(cycle(started=NOW + 600))
    first, second = pool.shown
    assert (first.state, first.error, first.error_time, first.lifetime) == ("backing off", "no? answer", NOW, 1800)
    assert (second.state, second.error, second.error_time) == ("ok", "no? answer", NOW)
    assert (second.started, second.cycle, second.next_cycle, second.period) == (NOW, NOW + 600, NOW + 660, 60)
    assert second.acting and second.pid == os.getpid() and second.name.startswith("drainwise@")
    assert second.lifetime == 720, "a dead agent's is gone soon"
    notices.observe(cycle(acting=False))
    assert pool.shown[2].name.startswith("drainwise-dry-run@"), "it does not replace one that acts"
    notices.observe(cycle(acting=False, kill_switch="/etc/drainwise/kill-switch"))
    assert pool.shown[3].name == second.name


@pytest.mark.daemons
@pytest.mark.parametrize("fault", [RightsRefused("the collector refuses its ad"), OSError("fork"), ValueError("?")])
def test_what_is_refused_is_said_once_and_tried_again_later_and_later(fault: Exception) -> None:
    pool, lines, time = ShowingPool(), list[str](), [0.0]
    pool.fault = fault
    notices = AgentNotices(pool, "least-waste", 60.0, lines.append, lambda: time[0])
    for _ in range(60):
        notices.observe(cycle())
        time[0] += 60.0
    assert len(lines) == 1 and str(fault) in lines[0]
    assert 5 <= pool.tried <= 8
    pool.fault = None
    time[0] += 3600.0
    notices.observe(cycle())
    assert len(lines) == 2 and lines[1].endswith(": shown now")


def test_the_site_may_switch_it_off_and_other_pools_show_nothing() -> None:
    setup = AgentSettings(ShowingPool(), SETTINGS, True, 60.0, "/no/switch", RequestFiles("/no/requests"))
    assert len(observers_of(SiteConfig(), setup, "pool", pytest.fail)) == 1
    assert observers_of(SiteConfig(agent=AgentSection(advertise="no")), setup, "pool", pytest.fail) == ()
    other = dataclasses.replace(setup, pool=AlicesPool())
    assert observers_of(SiteConfig(), other, "pool", pytest.fail) == ()


def test_the_ad_has_a_type_of_its_own_and_a_bounded_life() -> None:
    pool = ShowingPool()
    AgentNotices(pool, "least-waste", 60.0, pytest.fail).observe(cycle())
    ad = ad_of(pool.shown[0])
    assert (ad["MyType"], ad["ClassAdLifetime"], ad["AgentState"], ad["Acting"]) == (AGENT_TYPE, 720, "ok", True)
    assert {"Name", "Machine", "LastCycle", "NextCycle", "CyclePeriod", "LastError", "DrainwiseVersion"} <= set(ad)
