"""The immutable record."""

from __future__ import annotations

import pytest

from drainwise.pilotad.report import PilotReport
from drainwise.pilotad.site_ad import SiteAd


def test_equal_by_value_and_usable_in_sets() -> None:
    """Two facts of the same values are one."""
    assert {PilotReport(1, used_cpu=2.0), PilotReport(1, used_cpu=2.0)} == {PilotReport(1, used_cpu=2.0)}
    assert PilotReport(1) != PilotReport(2)
    assert SiteAd(True) != (True, None)


def test_cannot_be_changed() -> None:
    """Neither a field nor a new attribute can be set, nor one removed."""
    report = PilotReport(1)
    for name in ("heartbeat", "other"):
        with pytest.raises(AttributeError):
            setattr(report, name, 5)
    with pytest.raises(AttributeError):
        del report.heartbeat
    assert report == PilotReport(1)


def test_repr_names_the_fields() -> None:
    """A failing test says what differed."""
    assert repr(SiteAd(True, 5)) == "SiteAd(payload_deadline=5, vacate_desired=True)"
