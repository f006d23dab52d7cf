"""Options of the command line reach the backend that they are for, and no other."""

from __future__ import annotations

import pytest

from drainwise.facts.errors import UsageError
from drainwise_launch.files.launch_file import options_by_backend

BACKENDS = ("htcondor", "slurm", "sge", "local")


@pytest.mark.parametrize(
    ("texts", "named", "options"),
    [
        (["-p long"], ["slurm"], {"slurm": "-p long"}),
        (["-p long", "--mem 2G"], ["slurm"], {"slurm": "-p long --mem 2G"}),
        (["slurm:-p long", "sge:-p -100"], ["slurm", "sge"], {"slurm": "-p long", "sge": "-p -100"}),
        (["slurm:-p long"], ["sge"], {"slurm": "-p long"}),
        (["slurm:-p long", "-c 2"], ["slurm"], {"slurm": "-p long -c 2"}),
        (["--gres gpu:1"], ["slurm"], {"slurm": "--gres gpu:1"}),
        (["pbs:x"], ["slurm"], {"slurm": "pbs:x"}),
        (["-p long"], [], {}),
        ([], ["slurm", "sge"], {}),
    ],
)
def test_each_has_its_own(texts: list[str], named: list[str], options: dict[str, str]) -> None:
    assert options_by_backend(texts, BACKENDS, named) == options


def test_options_that_could_be_meant_for_several_are_refused() -> None:
    """`-p` is a partition of Slurm's and a priority of Grid Engine's."""
    with pytest.raises(UsageError, match=r"jobs go to sge and slurm: say for which it is, as sge:OPTIONS"):
        options_by_backend(["-p long"], BACKENDS, ["slurm", "sge"])
