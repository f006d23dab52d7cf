"""Real batch daemons for tests: HTCondor and Slurm of two Debian releases, Grid Engine; their logs on failure."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator

import pluggy
import pytest

import slurm_cluster
from condor_pool import RELEASES, CondorPool, DeadlineError, RootUnavailableError, obtain_root
from local_batch import Batch
from real_daemons import running_sites
from sge_cluster import SgeCluster
from slurm_cluster import SlurmCluster

_HERE = os.path.dirname(os.path.abspath(__file__))
# Without this one the suite has not shown anything; the others come and go with the archive.
_NEEDED = "trixie"
# What takes longest begins first, so that no worker is left alone with it in the end.
_LONGEST = ("pool", "test_documented_commands", "test_scenario", "slurm", "sge", "test_launch")
# The demonstration's promises are of seconds: it has its turn when the pools have gone.
_QUIET = "test_local_demo"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything in this folder is marked `daemons`, and all that is so is grouped by what one worker should do.

    First of all such hooks: pytest-xdist reads the groups in one of them.
    """
    for item in items:
        if str(item.path).startswith(_HERE + os.sep) and isinstance(item, pytest.Function):
            item.add_marker(pytest.mark.daemons)
            item.add_marker(pytest.mark.xdist_group(_group(item)))
        elif item.get_closest_marker("daemons"):
            item.add_marker(pytest.mark.xdist_group(item.path.stem))
    items.sort(key=_turn)


def _turn(item: pytest.Item) -> int:
    """When the item's group has its turn."""
    found = item.get_closest_marker("xdist_group")
    name = str(found.args[0]) if found else ""
    if name.startswith(_QUIET):
        return len(_LONGEST) + 1
    return next((place for place, start in enumerate(_LONGEST) if name.startswith(start)), len(_LONGEST))


def _group(item: pytest.Function) -> str:
    """Tests that share a pool or cluster stay together; the others go by file, release and batch system."""
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    for shared, release in (("pool", "release"), ("slurm", "slurm_release")):
        if shared in item.fixturenames:
            return f"{shared}-{parameters.get(release, _NEEDED)}"
    if "sge" in item.fixturenames:
        return "sge"
    own = [str(parameters[name]) for name in ("release", "slurm_release", "system") if name in parameters]
    return "-".join((item.path.stem, *(own or [_NEEDED])))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(call: pytest.CallInfo[None]) -> Generator[None, pluggy.Result[pytest.TestReport], None]:
    """Add the ends of the daemons' logs to the report of a failed test, unless its error has them already."""
    outcome = yield
    report = outcome.get_result()
    if report.failed and not (call.excinfo is not None and call.excinfo.errisinstance(DeadlineError)):
        for site in running_sites():
            report.sections.append((f"logs of the {type(site).__name__} ({site.release})", site.log_tails()))


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


@pytest.fixture(scope="session", params=list(slurm_cluster.RELEASES))
def slurm_release(request: pytest.FixtureRequest) -> str:
    """A Debian release with Slurm; both are needed, since their answers have different shapes."""
    name = str(request.param)
    slurm_cluster.obtain_root(name)
    return name


@pytest.fixture(scope="session")
def slurm(slurm_release: str) -> Iterator[SlurmCluster]:
    """A running cluster of four nodes of 8 cores. Tests share it: they leave no job, daemon or setting changed."""
    with SlurmCluster(nodes=4, cpus=8, release=slurm_release) as running:
        yield running


@pytest.fixture(scope="session")
def sge() -> Iterator[SgeCluster]:
    """A running cell of one machine with 16 slots. Tests share it: they leave no job or daemon changed."""
    with SgeCluster(slots=16) as running:
        yield running


@pytest.fixture
def batch() -> Iterator[Batch]:
    """The local batch system with alice and bob, who are owed 8 cores each; no daemon runs yet."""
    made = Batch()
    made.account("alice", 8)
    made.account("bob", 8)
    try:
        yield made
    finally:
        made.close()
