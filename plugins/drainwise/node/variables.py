"""The variables by which a job finds its directories, with the twins that container runtimes pass on."""

from __future__ import annotations

from drainwise.node import JOB_FEATURES, JOB_STATUS, MACHINE_FEATURES

DIRECTORIES = {"MACHINEFEATURES": MACHINE_FEATURES, "JOBFEATURES": JOB_FEATURES, "JOBSTATUS": JOB_STATUS}
"""The name of the directory that each variable names."""

CONTAINER_PREFIXES = ("", "APPTAINERENV_", "SINGULARITYENV_")


def with_twins(name: str) -> tuple[str, ...]:
    """The variable and its twins."""
    return tuple(prefix + name for prefix in CONTAINER_PREFIXES)
