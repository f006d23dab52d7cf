"""Site to job: facts of a job's machine and of the job itself, as directories of one small file per key."""

from __future__ import annotations

SHUTDOWN_FILE = "/var/lib/drainwise/shutdowntime"
"""The file of the machine's planned shutdown, unless the site's settings name another."""
