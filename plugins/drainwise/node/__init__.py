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


def with_urls(variables: dict[str, str], site: str, tree: str, token: str) -> dict[str, str]:
    """Return a job's variables with URLs for the directories that its site serves, in place of paths.

    site: the server's URL. tree: the path of the job's tree below the server's root; token: its token.
    """
    from drainwise.features.job_token import features_url  # noqa: PLC0415 - only where the site has a server

    directory = {twin: DIRECTORIES[name] for name in ("MACHINEFEATURES", "JOBFEATURES") for twin in with_twins(name)}
    # What the job reports in `$JOBSTATUS` stays a local directory.
    return {
        name: features_url(site, tree, token, directory[name]) if name in directory else path
        for name, path in variables.items()
    }
