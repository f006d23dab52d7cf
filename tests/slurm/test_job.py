"""What names one run of a job."""

from __future__ import annotations

import pytest

from drainwise.facts.errors import ActionRefused
from drainwise.slurm.jobs.job import label_and_start, run_name

T0 = 1795270000


@pytest.mark.parametrize("label", ["17", "4294967295", "12_3"])
def test_a_run_is_named_by_its_job_and_start(label: str) -> None:
    assert label_and_start(run_name(label, T0)) == (label, T0)


@pytest.mark.parametrize(
    "run",
    [
        "",
        "17",
        "17@",
        f"17@{T0} ",
        f"17;reboot@{T0}",
        f"-1@{T0}",
        f"12_@{T0}",
        f"12+1@{T0}",
        f"12,13@{T0}",
        f"१७@{T0}",
        f"ALL@{T0}",
    ],
)
def test_what_is_no_run_is_refused(run: str) -> None:
    """HOSTILE 44: a list, a component or a word for all jobs would reach more than one."""
    with pytest.raises(ActionRefused):
        label_and_start(run)
