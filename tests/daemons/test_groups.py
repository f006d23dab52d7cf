"""What shares a pool or a play stays in one worker of the suite: else each worker would bring it up for itself."""

from __future__ import annotations

import os

import pytest


@pytest.mark.skipif("PYTEST_XDIST_WORKER" not in os.environ, reason="one process runs all tests")
def test_a_group_stays_in_one_worker(request: pytest.FixtureRequest) -> None:
    """pytest-xdist knows the group of a test by its id; 3.8 does not get it there with pytest 9.2."""
    assert not request.config.getoption("loadgroup") or request.node.nodeid.endswith("@test_groups-trixie")
