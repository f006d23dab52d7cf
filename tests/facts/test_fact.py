"""`@fact`."""

from __future__ import annotations

import pytest

from drainwise.facts import fact, set_field
from drainwise.pilotad.report import PilotReport
from drainwise.pilotad.site_ad import SiteAd


def test_equal_by_value_and_usable_in_sets() -> None:
    """Two facts of the same values are one."""
    assert {PilotReport(1, used_cpu=2.0), PilotReport(1, used_cpu=2.0)} == {PilotReport(1, used_cpu=2.0)}
    assert PilotReport(1) != PilotReport(2)
    others: list[object] = [(True, None), PilotReport(1)]
    assert SiteAd(True) not in others


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
    assert repr(SiteAd(True, 5)) == "SiteAd(vacate_desired=True, payload_deadline=5)"


def test_repr_leaves_out_what_is_as_by_default() -> None:
    """Of a report with two of nine values, two are of interest."""
    assert repr(PilotReport(5, used_cpu=2.0)) == "PilotReport(heartbeat=5, used_cpu=2.0)"


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ((), {}),
        ((True, 5, "6", None, None, 7, 8), {}),
        ((True,), {"vacate_desired": True}),
        ((True,), {"deadline": 5}),
        ((), {"x": 1}),
    ],
    ids=["missing", "too many", "twice", "unknown", "missing and unknown"],
)
def test_the_constructor_takes_each_field_once(
    given: tuple[bool | int | str | None, ...], named: dict[str, int]
) -> None:
    """As that of a dataclass; the message names the fields."""
    make: type = SiteAd
    with pytest.raises(TypeError, match="SiteAd takes each once: vacate_desired, payload_deadline, run, part, answer"):
        make(*given, **named)


def test_fields_by_place_and_by_name_are_the_same() -> None:
    """Defaults stand for what is left out."""
    assert SiteAd(True) == SiteAd(True, None) == SiteAd(payload_deadline=None, vacate_desired=True)
    assert SiteAd.__match_args__ == ("vacate_desired", "payload_deadline", "run", "part", "answer", "checkpoint_by")
    assert not hasattr(SiteAd(True), "__dict__")


def test_post_init_may_set_fields_still() -> None:
    """It is called with all of them set."""

    @fact
    class Even:
        """A number, rounded down."""

        number: int

        def __post_init__(self) -> None:
            set_field(self, "number", self.number // 2 * 2)

    assert Even(5) == Even(4)
    assert Even.__doc__ == "A number, rounded down."
