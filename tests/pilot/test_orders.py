"""Everything the site can say, and what a pilot makes of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from all_but_one import all_but_one
from drainwise.pilot.decide.lease import Lease, SiteOrders, orders_from
from drainwise.pilot.decide.settings import PilotSettings
from drainwise.pilotad.site_ad import SiteAd

from .work import T0

LEASE = Lease(8, T0, T0 + 10_000)
NOW = T0 + 1000
SETTINGS = PilotSettings(term_grace=25)
SOON, LATER = T0 + 2000, T0 + 5000


def orders(
    ad: SiteAd | None = None, job: int | None = None, machine: int | None = None, terminated: float | None = None
) -> SiteOrders:
    """What holds when this was told."""
    return orders_from(ad, job, machine, terminated, LEASE, SETTINGS, NOW)


def test_nothing_told() -> None:
    """No `.site.ad`, no shutdown, no signal: the lease as it is."""
    assert orders() == SiteOrders(leave=False, deadline=T0 + 10_000, draining=False, source="lease")


def test_ordered_to_leave() -> None:
    """VACATE_DESIRED: give the cores back, at the latest by the deadline told, or else by the end of the lease."""
    assert orders(SiteAd(True, SOON)) == SiteOrders(True, SOON, True, ".site.ad")
    assert orders(SiteAd(True)) == SiteOrders(True, T0 + 10_000, True, ".site.ad")


@pytest.mark.parametrize(("job", "machine", "source"), [(SOON, None, "shutdowntime_job"), (None, SOON, "shutdowntime")])
def test_a_site_that_knows_only_the_features(job: int | None, machine: int | None, source: str) -> None:
    """Either shutdown file alone shortens the lease and makes the pilot drain, but not leave at once."""
    assert orders(None, job, machine) == SiteOrders(leave=False, deadline=SOON, draining=True, source=source)


def test_a_planned_shutdown_is_no_order_to_drain() -> None:
    """VACATE_DESIRED = False with a deadline shortens the lease, and the shutdown files that say so too do no more."""
    assert orders(SiteAd(False, SOON)) == SiteOrders(False, SOON, False, ".site.ad")
    told = orders(SiteAd(False, SOON), SOON, SOON)
    assert (told.leave, told.draining, told.deadline) == (False, False, SOON)


def test_no_order_any_more() -> None:
    """VACATE_DESIRED going back to False gives the lease back."""
    assert orders(SiteAd(False)) == SiteOrders(False, T0 + 10_000, False, "lease")


def test_sigterm() -> None:
    """Nobody told a deadline: there is only the grace after the signal."""
    assert orders(terminated=NOW - 5) == SiteOrders(True, NOW + 20, True, "SIGTERM")


@pytest.mark.parametrize(("ad", "job"), [(SiteAd(True, SOON), None), (None, SOON), (SiteAd(True), SOON)])
def test_sigterm_after_an_order_keeps_the_orders_deadline(ad: SiteAd | None, job: int | None) -> None:
    """The batch system ends the job at the time it told, not earlier."""
    found = orders(ad, job, terminated=NOW - 5)
    assert (found.leave, found.deadline) == (True, SOON)


@pytest.mark.parametrize(("ad", "job"), [(SiteAd(False, SOON), None), (SiteAd(False, SOON), SOON), (None, None)])
def test_a_planned_shutdown_of_the_machine_is_not_the_deadline_of_a_sigterm(ad: SiteAd | None, job: int | None) -> None:
    """The machine goes later; the signal is about this job now."""
    found = orders(ad, job, SOON, terminated=NOW - 5)
    assert (found.leave, found.deadline) == (True, NOW + 20)


def test_a_shutdown_that_this_lease_began_after() -> None:
    """A stale machine file was survived already; nothing is ordered by it."""
    assert orders(machine=T0 - 1) == orders()


times = st.none() | st.integers(T0 - 1000, T0 + 20_000)
ads = st.none() | st.builds(SiteAd, st.booleans(), times)


@given(
    st.tuples(ads, times, times, times, times)
    | all_but_one(dict.fromkeys("abcde", st.none()), {"a": ads, "b": times, "e": times}).map(
        lambda one: tuple(one[name] for name in "abcde")  # Hypothesis gives them in any order
    )
)
def test_the_earliest_deadline_holds_and_never_lies_in_the_past(
    said: tuple[SiteAd | None, int | None, int | None, int | None, int | None],
) -> None:
    """Whatever is told together, no known time is overlooked, and none that has passed is waited for again."""
    ad, job, machine, terminated, end = said
    lease = Lease(8, T0, end)
    found = orders_from(ad, job, machine, terminated, lease, SETTINGS, NOW)
    told = [end, job, ad.payload_deadline if ad else None, machine if machine and machine >= T0 else None]
    known = [time for time in told if time is not None]
    if found.deadline is None:
        assert not known and terminated is None
    else:
        assert found.deadline >= NOW
        assert all(found.deadline <= max(NOW, time) for time in known)
    assert found.leave == (bool(ad and ad.vacate_desired) or terminated is not None)
    assert found.draining or not found.leave


@given(ads, times, times, times)
def test_asking_again_changes_nothing(
    ad: SiteAd | None, job: int | None, machine: int | None, terminated: int | None
) -> None:
    """The same word later is the same order until its deadline has come, so that nothing is logged twice."""
    first = orders_from(ad, job, machine, terminated, LEASE, SETTINGS, T0)
    again = orders_from(ad, job, machine, terminated, LEASE, SETTINGS, T0 + 10)
    assert again == first or (first.deadline is not None and first.deadline < T0 + 10)
