"""docs/install.md says which rendered file goes on which machine: all of them, and no other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from drainwise.htcondor.setup.render import render as render_htcondor
from drainwise.siteconfig import SiteConfig
from drainwise.slurm.setup.render import render as render_slurm

PAGE = (Path(__file__).parents[2] / "docs" / "install.md").read_text()


def shown(system: str, role: str) -> set[str]:
    """The paths in the rows of a role, which stands in the first of them."""
    table = PAGE.partition("\n## Which file goes on which machine\n")[2].partition("\n## ")[0]
    found, here = set[str](), False
    for line in table.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) != 4:
            continue
        if cells[0]:
            here = cells[0].startswith(system) and cells[1] == role
        if here:
            found |= set(re.findall(r"`(/[^`]+)`", cells[2]))
    return found


@pytest.mark.parametrize("role", ["execute", "access", "central"])
def test_the_files_of_a_machine_of_htcondor(role: str) -> None:
    assert shown("HTCondor", role) == {one.path for one in render_htcondor(SiteConfig(), role)}


@pytest.mark.parametrize("role", ["node", "controller"])
def test_the_files_of_a_machine_of_slurm(role: str) -> None:
    assert shown("Slurm", role) == {one.path for one in render_slurm(SiteConfig(), role)}
