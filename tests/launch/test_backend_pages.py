"""The pages of the batch systems: every key is there, and their launch files are ones."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path

import pytest

from drainwise.common.typed_table import toml_reader
from drainwise_launch.files.launch_file import load_launch
from drainwise_launch.htcondor.submission import CondorLaunchSettings, condor_settings
from drainwise_launch.htcondor.submission import unfit as condor_unfit
from drainwise_launch.sge.submission import SgeSettings, sge_settings
from drainwise_launch.sge.submission import unfit as sge_unfit
from drainwise_launch.slurm.submission import ATTRIBUTES, OPTIONS, SlurmLaunchSettings, slurm_settings
from drainwise_launch.slurm.submission import unfit as slurm_unfit

PAGE = (Path(__file__).parents[2] / "docs" / "launch.md").read_text()
PAGES = {
    "sge": ("Grid Engine", SgeSettings, sge_settings, sge_unfit),
    "slurm": ("Slurm", SlurmLaunchSettings, slurm_settings, slurm_unfit),
    "htcondor": ("HTCondor", CondorLaunchSettings, condor_settings, condor_unfit),
}


def section(title: str) -> str:
    """What the page says of a batch system."""
    return PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


@pytest.mark.parametrize("backend", PAGES)
def test_every_key_is_on_its_page(backend: str) -> None:
    page, settings, _read, _unfit = PAGES[backend]
    table = "\n".join(line for line in section(page).splitlines() if line.startswith("| `"))
    keys = {one.name for one in fields(settings)} - {"options"}
    assert keys == set(re.findall(r"`([a-z_]+)`", " ".join(line.split("|")[1] for line in table.splitlines())))


@pytest.mark.parametrize("backend", PAGES)
def test_its_launch_file_is_one(backend: str, tmp_path: Path) -> None:
    if toml_reader() is None:
        pytest.skip("TOML needs Python 3.11 or tomli")
    page, _settings, read, unfit = PAGES[backend]
    text = re.findall(r"```toml\n(.*?)```", section(page), re.DOTALL)[0]
    (tmp_path / "f.toml").write_text(text)
    launch = load_launch(str(tmp_path / "f.toml"))
    table: Mapping[str, object] = launch.backends[backend]
    read(table, "", "f.toml")
    assert [(work.backend, unfit(work.resources)) for work in launch.works] == [(backend, "")]


def test_slurm_s_attributes_and_options_are_on_its_page() -> None:
    text = section("Slurm")
    assert all(f"`{name}`" in text for name in {*ATTRIBUTES} - {"licences"})
    assert all(f"{short} --{name}" in text for short, name in OPTIONS.items())
