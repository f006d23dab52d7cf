"""Shared by the nodes of every batch system: settings, the process of a hook, a job's features, the site notice to it.

The names are those of the three directories in a job's own directory, and of the variables that name them to the job.
"""

from __future__ import annotations

MACHINE_FEATURES = ".machinefeatures"
JOB_FEATURES = ".jobfeatures"
JOB_STATUS = ".jobstatus"

DIRECTORIES = {"MACHINEFEATURES": MACHINE_FEATURES, "JOBFEATURES": JOB_FEATURES, "JOBSTATUS": JOB_STATUS}
"""The directory that each variable names."""

CONTAINER_PREFIXES = ("", "APPTAINERENV_", "SINGULARITYENV_")


def with_twins(variable: str) -> tuple[str, ...]:
    """Return a variable and its twins, which container runtimes pass on."""
    return tuple(prefix + variable for prefix in CONTAINER_PREFIXES)
