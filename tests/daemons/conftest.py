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
# About how many seconds a group takes of each release, where that is more than a minute: what takes longest begins
# first, so that no worker is left alone with it in the end. Of a file of this folder that is not named it is not known.
_SECONDS = {
    "test_orders_on_pool": 540,
    "test_scenario": 420,
    "test_glidein_htcondor": 370,
    "test_slurm_pool": 340,
    "test_on_request_htcondor": 300,
    "test_glidein_slurm": 280,
    "test_documented_commands": 250,
    "test_on_request_slurm": 250,
    "test_node_side": 240,
    "test_observer_htcondor": 300,
    "test_config_on_pool": 210,
    "test_observer_slurm": 200,
    "test_dirac_slurm": 200,
    "test_room_made_htcondor": 200,
    "test_room_made_slurm": 200,
    "test_demonstration": 190,
    "test_identity_htcondor": 150,
    "test_four_kinds_htcondor": 150,
    "test_four_kinds_slurm": 150,
    "test_quickstart_htcondor": 150,
    "test_quickstart_slurm": 150,
    "test_parts_asked_htcondor": 150,
    "test_packages": 150,
    "test_useful_orders_on_pool": 150,
    "test_launch_htcondor": 150,
    "test_local_demo_ends": 150,
    "test_negotiator_users": 130,
    "test_condor_view": 120,
    "test_installing": 120,
    "test_policies": 110,
    "test_validation_condor": 110,
    "test_installing_on_pool": 100,
    "test_slurm_agent": 100,
    "sge": 100,
    "test_slurm_scenario": 90,
    "test_open_need_htcondor": 90,
    "test_round": 90,
    "test_ansible": 75,
    "test_floors": 60,
    "test_agent_hostile": 75,
    "test_useful_orders_slurm": 75,
    "test_slurm_cluster": 70,
    "test_defrag_htcondor": 70,
    "test_suite": 70,
}
# The demonstration's promises are of seconds: it has its turn when the pools have gone.
_QUIET = "test_local_demo"
_UNKNOWN = 100  # seconds


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Generator[None, None, None]:
    """Everything in this folder is marked `daemons`, and all that is so is grouped by what one worker should do.

    Around all such hooks: pytest-xdist reads the groups in one of them, and pytest puts together in another what shares
    a parameter.
    """
    for item in items:
        if _is_here(item):
            item.add_marker(pytest.mark.daemons)
        if item.get_closest_marker("daemons") and not item.get_closest_marker("xdist_group"):
            item.add_marker(pytest.mark.xdist_group(_group(item) if _is_here(item) else item.path.stem))
    yield
    items.sort(key=_turn)


def _is_here(item: pytest.Item) -> bool:
    """Whether the test stands in this folder."""
    return str(item.path).startswith(_HERE + os.sep) and isinstance(item, pytest.Function)


def _turn(item: pytest.Item) -> tuple[bool, int, str, str]:
    """When the item's group has its turn; those of one release follow each other."""
    found = item.get_closest_marker("xdist_group")
    name, _, release = str(found.args[0] if found else "").partition("-")
    seconds = _SECONDS.get(name, _UNKNOWN if _is_here(item) else 0)
    return name == _QUIET, -seconds, release, name


def _group(item: pytest.Item) -> str:
    """One for each file, release and batch system, with a pool of its own; the tests of Grid Engine share a cell."""
    assert isinstance(item, pytest.Function)
    if "sge" in item.fixturenames:
        return "sge"
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


@pytest.fixture(scope="session")
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


@pytest.fixture(scope="session")
def slurm(slurm_release: str) -> Iterator[SlurmCluster]:
    """A running cluster of four nodes of 8 cores. A file's tests share it: they leave no job or daemon changed."""
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
