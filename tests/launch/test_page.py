"""docs/launch.md from top to bottom: its file and its commands."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from drainwise.common.typed_table import toml_reader
from drainwise_launch.choice.work import WEIGHT
from drainwise_launch.files.job_reader import _KINDS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "launch.md").read_text()


@pytest.mark.daemons
def test_the_page_as_typed(tmp_path: Path) -> None:
    if toml_reader() is None:
        pytest.skip("this Python reads no TOML")
    file, *_ = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    [commands] = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "night.toml").write_text(f"[backends.local]\ncpu = 2\n{file}")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "drainwise").write_text(f'#!/bin/sh\nexec {sys.executable} -m drainwise "$@"\n')
    (tmp_path / "bin" / "drainwise").chmod(0o755)
    environment = {
        "PATH": f"{tmp_path}/bin:/usr/bin:/bin",
        "PYTHONPATH": str(ROOT / "plugins"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    said = []
    for command in commands.strip().splitlines():
        ran = subprocess.run(
            ["sh", "-c", command], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert ran.returncode == 0, f"{command}\n{ran.stdout}{ran.stderr}"
        said.append(ran.stdout)
    assert said[:2] == ["4 done\n", "4 done (4 of them earlier)\n"]
    assert json.loads(said[2])["counts"]["done"] == 4
    assert said[3] == "4 done (4 of them earlier)\n"
    assert (tmp_path / "sum").read_text() == "210\n"
    assert sorted(os.listdir(tmp_path / "night.toml.launch" / "out")) == [
        "even.out", "odd.out", "prepare.out", "sum.out"
    ]  # fmt: skip


def test_the_page_names_every_key_and_the_figures_of_the_code() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", PAGE.partition("\n## Slurm\n")[0], re.MULTILINE))
    assert set(rows) == set(_KINDS)
    assert WEIGHT == 100 and "hundred" in PAGE and "101st" in PAGE
