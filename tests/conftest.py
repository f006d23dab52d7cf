"""What all tests share: signals as in a terminal; a made-up execute node in both layouts, and its programs."""

from __future__ import annotations

import argparse
import functools
import gc
import itertools
import os
import re
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from made_up_node import PYTHON, Node, Programs, install, install_library, public_directory, write

pytest_plugins = ["failure_reasons", "fewer_messages", "reached_asserts", "time_limits", "turns"]

PACKAGE = Path(__file__).parents[1] / "plugins" / "drainwise"
SETTINGS = "hs06 = 240.5\ncpufactor_lrms = 1.25\nwall_limit_secs = 86400\ngrace_secs_job = 60\n"
DAEMON = 1  # the uid of `daemon`: some user that is neither root nor the job's


def pytest_configure() -> None:
    """A suite started in the background of a shell inherits that signals are ignored; what it starts must not.

    Nor has it a window: readline, which pytest imports, puts a window's size into the environment of what is started.
    What is collected stays to the end: the garbage collector need not look at it.
    """
    for name in ("COLUMNS", "LINES"):
        os.environ.pop(name, None)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    gc.disable()
    argparse._ = functools.lru_cache(None)(argparse._)  # type: ignore[attr-defined] # each parser looks for catalogues


def pytest_collection_finish() -> None:
    """From here on there is garbage; memory is not so dear that it is looked for after every 700 objects."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """The fast subset does not even read what brings up daemons, nor the other one files in which nothing is marked."""
    if config.args != config.getini("testpaths"):
        return None
    daemons = Path(__file__).parent / "daemons"
    if config.option.markexpr == "not daemons":
        return True if collection_path == daemons else None
    if config.option.markexpr != "daemons" or collection_path.parent == daemons or collection_path.suffix != ".py":
        return None
    return None if "mark.daemons" in collection_path.read_text() else True


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """A test's id is in its environment, which takes no megabytes."""
    return f"{argname} of {len(val)}" if isinstance(val, (str, bytes)) and len(val) > 200 else None


# A property is about values; how fast one example runs says only how busy the machine is. In continuous integration the
# examples are the same in every run; elsewhere each run looks at new ones. Their number is said here alone, save where
# one takes long or few find the place: there are hundreds of properties, and the fast subset is to stay fast. The whole
# suite looks at more of them: HYPOTHESIS_PROFILE=thorough.
for name, examples in (("quick", 15), ("thorough", 40)):
    settings.register_profile(
        name,
        deadline=None,
        max_examples=examples,
        suppress_health_check=[HealthCheck.too_slow],
        derandomize="CI" in os.environ,
    )
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))


_NUMBERS = itertools.count()


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory of the test's own. pytest reads for each the names of all that were made before."""
    name = re.sub(r"\W", "_", request.node.name)[:30]
    return tmp_path_factory.mktemp(f"{name}{next(_NUMBERS)}", numbered=False)


@pytest.fixture
def volatile() -> Iterator[Path]:
    """A directory in memory, for what syncs files thousands of times: a busy disk makes seconds of it minutes."""
    memory = "/dev/shm"
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as made:
        yield Path(made)


@pytest.fixture(scope="session")
def node_library() -> Iterator[str]:
    """The package as installed on a node, once for all: nobody changes it."""
    if os.geteuid() != 0:
        pytest.skip("needs root: hooks run as the job's user and the cron as HTCondor's")
    if not os.path.exists(PYTHON):
        pytest.skip(f"needs {PYTHON}")
    with public_directory() as base:
        install_library(str(PACKAGE), f"{base}/library")
        yield f"{base}/library"


@pytest.fixture(scope="module")
def programs(node_library: str) -> Iterator[Programs]:
    """Hooks and cron as installed on a node; its planned shutdown stands in a file beside the settings."""
    with public_directory() as base:
        yield install(str(PACKAGE), base, f"{SETTINGS}shutdown_file = {base}/shutdowntime\n", node_library)


@pytest.fixture(params=["before 25.4", "since 25.4"])
def node(request: pytest.FixtureRequest, programs: Programs) -> Iterator[Node]:
    """An empty node in each layout, which has had the hooks for years."""
    with public_directory() as base:
        made = Node(base, request.param == "since 25.4", DAEMON)
        write(f"{made.state}.since", "1000000000", DAEMON)
        try:
            yield made
        finally:
            made.close()
