"""Find the files in a job's directory on an execute node, before and since HTCondor 25.4.

Before: `dir_<pid>/` is the job's directory (0700, the user's) with the ads in it. Since: `dir_<pid>/` is the daemon's,
`dir_<pid>/htcondor/` holds the ads that can be trusted and `dir_<pid>/scratch/` is the job's directory.
"""

from __future__ import annotations

SCRATCH = "scratch"
ADS = "htcondor"
UPDATE_AD = ".update.ad"
MACHINE_AD = ".machine.ad"
JOB_AD = ".job.ad"
"""The job's own, which lies in its directory in both."""

AD_LIMIT = 4 << 20  # bytes; twice the largest environment that a process can have


def update_ad(scratch: str) -> str:
    """Return the path of the refreshed slot ad of the job in `scratch` (absolute, without a trailing slash)."""
    above, _, name = scratch.rpartition("/")
    return f"{above}/{ADS}/{UPDATE_AD}" if name == SCRATCH else f"{scratch}/{UPDATE_AD}"


def parent(path: str) -> str:
    """Return the directory that holds `path` (absolute, without a trailing slash)."""
    return path.rpartition("/")[0] or "/"


def below_execute(scratch: str) -> str:
    """Return the path of a job's directory (absolute, without a trailing slash) below $(EXECUTE).

    >>> below_execute("/var/lib/condor/execute/dir_7/scratch"), below_execute("/var/lib/condor/execute/dir_7")
    ('dir_7/scratch', 'dir_7')
    """
    above, _, name = scratch.rpartition("/")
    return f"{above.rpartition('/')[2]}/{name}" if name == SCRATCH else name
