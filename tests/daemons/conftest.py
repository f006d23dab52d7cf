"""Real batch daemons for tests: a running HTCondor pool per Debian release, and its logs when a test fails."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator

import pluggy
import pytest

from condor_pool import RELEASES, CondorPool, DeadlineError, RootUnavailableError, obtain_root, running_pools

_HERE = os.path.dirname(os.path.abspath(__file__))
# Without this one the suite has not shown anything; the others come and go with the archive.
_NEEDED = "trixie"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything in this folder is marked `daemons`; what shares a pool runs in one worker of the suite."""
    for item in items:
        if str(item.path).startswith(_HERE + os.sep):
            item.add_marker(pytest.mark.daemons)
            parameters = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
            item.add_marker(pytest.mark.xdist_group(str(parameters.get("release", _NEEDED))))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(call: pytest.CallInfo[None]) -> Generator[None, pluggy.Result[pytest.TestReport], None]:
    """Add the ends of the daemons' logs to the report of a failed test, unless its error has them already."""
    outcome = yield
    report = outcome.get_result()
    if report.failed and not (call.excinfo is not None and call.excinfo.errisinstance(DeadlineError)):
        for pool in running_pools():
            report.sections.append((f"logs of the {pool.release} pool", pool.log_tails()))


@pytest.fixture(scope="session", params=list(RELEASES))
def release(request: pytest.FixtureRequest) -> str:
    """A Debian release whose root file system is there; tests that use it run once for each."""
    name = str(request.param)
    try:
        obtain_root(name)
    except RootUnavailableError as error:
        if name == _NEEDED:
            raise
        pytest.skip(f"no root file system of {name}: {error}")
    return name


@pytest.fixture(scope="session")
def pool(release: str) -> Iterator[CondorPool]:
    """A running pool of three nodes of 24 cores. Tests share it: they leave no job, slot or knob changed."""
    with CondorPool(nodes=3, cpus=24, release=release) as running:
        yield running
