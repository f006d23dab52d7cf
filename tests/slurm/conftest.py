"""A made-up Slurm node for the tests of its hooks: an empty runtime directory, the hooks as a site has them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from drainwise.siteconfig import FeaturesSection, SiteConfig
from made_up_node import PYTHON, public_directory
from made_up_slurm_node import SlurmNode, install

PACKAGE = str(Path(__file__).parents[2] / "plugins" / "drainwise")
SITE = SiteConfig(
    features=FeaturesSection(hs06=Decimal("240.5"), cpufactor_lrms=Decimal("1.25"), wall_limit=86400, grace_job=60)
)
MakeNode = Callable[..., SlurmNode]


@pytest.fixture(scope="session")
def library() -> Iterator[str]:
    """Where the package is installed, once for all nodes."""
    if os.geteuid() != 0:
        pytest.skip("needs root: prolog and epilog run as root, the task prolog as the job's user")
    if not os.path.exists(PYTHON):
        pytest.skip(f"needs {PYTHON}")
    with public_directory() as base:
        yield f"{base}/library"


@pytest.fixture
def make_node(library: str) -> Iterator[MakeNode]:
    """Install a node; the arguments are keys of the site file's section [slurm]."""
    with public_directory() as base:
        yield lambda **slurm: install(
            PACKAGE, base, f"{base}/run", replace(SITE, slurm=replace(SITE.slurm, **slurm)), library
        )


@pytest.fixture
def node(make_node: MakeNode) -> SlurmNode:
    """A node with the site's defaults."""
    return make_node()
