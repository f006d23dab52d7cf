"""What each kind of client is shown of an order and of a planned shutdown, and what it never sees."""

from __future__ import annotations

from pathlib import Path

import pytest

from drainwise.facts.clients import PROFILES, ClientProfile
from drainwise.features.facts import HostFacts, JobFacts
from drainwise.node.job_features import make_features
from drainwise.node.site_notice import SiteNotice, give_notice

NOW = 1_795_249_000
FILES = (".site.ad", ".machinefeatures/shutdowntime", ".jobfeatures/shutdowntime_job")


@pytest.fixture
def job(tmp_path: Path) -> Path:
    make_features(str(tmp_path), HostFacts(total_cpu=8), JobFacts(allocated_cpu=8), None, NOW)
    return tmp_path


def shown(job: Path) -> tuple[str | None, ...]:
    """The last word of each file that is there."""
    return tuple((job / path).read_text().split()[-1] if (job / path).exists() else None for path in FILES)


@pytest.mark.parametrize(
    ("name", "deadline", "planned", "expected"),
    [
        ("paper", 600, None, (600, 600, 600)),
        ("paper", None, 900, (900, 900, 900)),
        ("panda", 3600, None, (3600, 3600, 3600)),
        ("dirac", 3600, 900, (900, 900, 900)),
        ("glideinwms", 3600, None, (3600, 5400, 5400)),
        ("glideinwms", 3600, 4000, (3600, 5400, 5400)),
        ("glideinwms", None, 4000, (4000, 5800, 5800)),
        ("alice", 3600, None, (3600, None, None)),
        ("alice", None, 3600, (3600, None, None)),
        ("alice", 3600, 900, (900, None, None)),
        ("none", 3600, 900, (None, None, None)),
    ],
)
def test_a_client_is_shown_what_it_may_see(
    job: Path, name: str, deadline: int | None, planned: int | None, expected: tuple[int | None, ...]
) -> None:
    """Times of `deadline`, `planned` and `expected` are seconds from now on."""
    times = [None if one is None else NOW + one for one in (deadline, planned)]
    give_notice(str(job), SiteNotice(times[0], times[1], PROFILES[name]), NOW)
    assert shown(job) == tuple(None if one is None else str(NOW + one) for one in expected)
    give_notice(str(job), SiteNotice(None, None, PROFILES[name]), NOW)
    assert shown(job) == (None, None, None)


@pytest.mark.parametrize("client", [one for one in PROFILES.values() if not one.shutdown_files], ids=lambda it: it.name)
def test_what_a_client_must_not_see_goes_where_it_stands(job: Path, client: ClientProfile) -> None:
    """As when the site's row is newer than the order."""
    give_notice(str(job), SiteNotice(NOW + 600, NOW + 900), NOW)
    give_notice(str(job), SiteNotice(NOW + 600, NOW + 900, client), NOW)
    assert shown(job)[1:] == (None, None)


def test_a_glidein_drains_until_its_very_end(job: Path) -> None:
    """Were its files gone at the deadline, it would take payloads again."""
    give_notice(str(job), SiteNotice(NOW, None, PROFILES["glideinwms"]), NOW)
    assert shown(job)[1:] == (str(NOW + 1800), str(NOW + 1800))
