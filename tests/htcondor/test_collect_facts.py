"""Getting the facts: a pool that does not answer ends the check in time."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import htcondor2
import pytest

from drainwise.facts.errors import PoolUnreachable
from drainwise.htcondor.setup import collect_facts
from drainwise.siteconfig import SiteConfig


@pytest.fixture
def silent_collector() -> Iterator[None]:
    """A collector that accepts every connection and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        before = htcondor2.param.get("COLLECTOR_HOST")
        htcondor2.param["COLLECTOR_HOST"] = f"127.0.0.1:{server.getsockname()[1]}"
        yield
        htcondor2.param["COLLECTOR_HOST"] = before or ""


def test_a_collector_that_never_answers_is_given_up(silent_collector: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hostile case 54: a bounded wait, then a clear fault."""
    monkeypatch.setattr(collect_facts, "_COLLECTOR_SECONDS", 0.2)
    with pytest.raises(PoolUnreachable, match=r"the collector did not answer within 0\.2 s"):
        collect_facts.collect(SiteConfig())
