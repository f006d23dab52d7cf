"""Real batch daemons for tests: HTCondor and Slurm of two Debian releases, Grid Engine; their logs on failure."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Mapping

import pluggy
import pytest

import slurm_cluster
import turns
from condor_pool import RELEASES, CondorPool, DeadlineError, RootUnavailableError, obtain_root
from local_batch import Batch
from real_daemons import running_sites
from sge_cluster import SgeCluster
from slurm_cluster import SlurmCluster

_HERE = os.path.dirname(os.path.abspath(__file__))
# Without this one the suite has not shown anything; the others come and go with the archive.
_NEEDED = "trixie"
# The demonstration's promises are of seconds: it has its turn when the pools have gone.
_QUIET = "test_local_demo"
_UNKNOWN = 100  # seconds, of a group in this folder of which the last run of everything noted nothing


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Generator[None, None, None]:
    """Everything in this folder is marked `daemons`, and all that is so is grouped by what one worker should do.

    What has no turn in this run is left out, unless it was asked for by its name.

    Around all such hooks: pytest-xdist reads the groups in one of them, and pytest puts together in another what shares
    a parameter.
    """
    for item in items:
        if _is_here(item):
            item.add_marker(pytest.mark.daemons)
        if item.get_closest_marker("daemons") and not item.get_closest_marker("xdist_group"):
            item.add_marker(pytest.mark.xdist_group(_group(item) if _is_here(item) else item.path.stem))
    if config.args == config.getini("testpaths") and not config.getoption("--all-releases"):
        items[:], others = turns.choose(items, turns.commits())
        config.hook.pytest_deselected(items=others)
    yield
    seconds = turns.last_run()["seconds"]
    items.sort(key=lambda item: _place(item, seconds))


def _is_here(item: pytest.Item) -> bool:
    """Whether the test stands in this folder."""
    return str(item.path).startswith(_HERE + os.sep) and isinstance(item, pytest.Function)


def _place(item: pytest.Item, seconds: Mapping[str, float]) -> tuple[bool, float, str, str]:
    """Where the item's group stands: what takes longest begins first, so that no worker is left alone with it."""
    found = item.get_closest_marker("xdist_group")
    group = str(found.args[0] if found else "")
    name, _, release = group.partition("-")
    return name == _QUIET, -seconds.get(group, _UNKNOWN if _is_here(item) else 0), release, name


def _group(item: pytest.Item) -> str:
    """One for each file, release and batch system, with daemons of its own."""
    assert isinstance(item, pytest.Function)
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
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


@pytest.fixture(scope="module")
def pool(release: str) -> Iterator[CondorPool]:
    """A running pool of three nodes of 24 cores. A file's tests share it: they leave no job, slot or knob changed."""
    with CondorPool(nodes=3, cpus=24, release=release) as running:
        yield running


@pytest.fixture(scope="session", params=slurm_cluster.SUPPORTED)
def slurm_release(request: pytest.FixtureRequest) -> str:
    """A Debian release with Slurm; both are needed, since their answers have different shapes."""
    name = str(request.param)
    slurm_cluster.obtain_root(name)
    return name


@pytest.fixture(scope="module")
def slurm(slurm_release: str) -> Iterator[SlurmCluster]:
    """A running cluster of four nodes of 8 cores. A file's tests share it: they leave no job or daemon changed."""
    with SlurmCluster(nodes=4, cpus=8, release=slurm_release) as running:
        yield running


@pytest.fixture(scope="module")
def sge() -> Iterator[SgeCluster]:
    """A running cell of one machine with 16 slots. A file's tests share it: they leave no job or daemon changed."""
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
