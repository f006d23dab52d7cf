"""drainwise's commands beside a real Slurm cluster, on this machine and in the cluster's network."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from acting_agent import ENVIRONMENT
from slurm_site import SlurmSite


def site_file(site: SlurmSite, directory: Path, more: str = "") -> Path:
    """Write a site file with which the commands find the cluster's tools; more: lines of [agent], further sections."""
    tools = site.cluster.outside_env("root")["PATH"].split(os.pathsep)[0]
    file = directory / "site.ini"
    file.write_text(f"[slurm]\nbin_dir = {tools}\n[agent]\nstate_dir = {directory}\n{more}")
    return file


def command(site: SlurmSite, file: Path, *words: str) -> str:
    """What a command prints."""
    argv = [sys.executable, "-m", "drainwise", *words, "--pool", "slurm", "--site", str(file)]
    return site.cluster.run_outside(argv, environment={**ENVIRONMENT, "COLUMNS": "200"}).stdout
