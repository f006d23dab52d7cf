"""Slurm's task prolog: names the job's directories to each of its tasks, the batch script included.

Runs as the job's user; slurmd takes the lines `export NAME=value` and `unset NAME` from its standard output. Variables
that came with the submitter's environment, from another job or made up, are overruled or taken away. Standard error is
the job's own: what is worth a line goes to the system's log alone.
"""

from __future__ import annotations

import _stat as stat  # `stat` itself would be one more module for a hook to load
import posix
import time

from drainwise.node import DIRECTORIES, JOB_STATUS, with_twins, with_urls
from drainwise.node.hook import run_to_end, settings_or_defaults, status_of, write_output
from drainwise.slurm import COMPLETE, LEASE
from drainwise.slurm.node.environment import job_id, node_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from drainwise.slurm.node.environment import Environment

_POLL = 0.005
LIMITS_WAIT = 1.0
"""Seconds that a starting job waits at most until the agent knows its limits."""
BIND_VARIABLES = ("APPTAINER_BIND", "SINGULARITY_BIND")


def wait_for_limits(tree: str) -> None:
    """Wait until the tree is marked complete, at most `LIMITS_WAIT` from when the prolog made it.

    A task that starts later, or after the clock was set back, waits no longer than that either.
    """
    made = status_of(f"{tree}/{LEASE}")
    age = time.time() - made.st_mtime if made is not None else LIMITS_WAIT
    end = time.monotonic() + min(LIMITS_WAIT, LIMITS_WAIT - age)
    while status_of(f"{tree}/{COMPLETE}") is None and time.monotonic() < end:
        time.sleep(_POLL)


def lines(tree: str | None, uid: int, site: str | None = None, below: str = "") -> str:
    """Return the lines for slurmd: each directory of the tree by its three names, `unset` for one that is not there.

    A tree whose $JOBSTATUS is not `uid`'s is another job's and counts as none. site: the URL of the server of the
    runtime directory, `below` the tree's path there: features that the job has a token for are named by their URLs.
    """
    found: dict[str, str] = {}
    for name, directory in DIRECTORIES.items():
        status = None if tree is None else status_of(f"{tree}/{directory}")
        if status is not None and stat.S_ISDIR(status.st_mode):
            if directory == JOB_STATUS and status.st_uid != uid:
                return lines(None, uid)
            found[name] = f"{tree}/{directory}"
    variables = {twin: path for name, path in found.items() for twin in with_twins(name)}
    if site is not None and tree is not None:
        from drainwise.features.job_token import read_token  # noqa: PLC0415 - only where the site has a server

        token = read_token(tree)
        variables = variables if token is None else with_urls(variables, site, below, token)
    exported = [
        f"export {twin}={variables[twin]}\n" if twin in variables else f"unset {twin}\n"
        for name in DIRECTORIES
        for twin in with_twins(name)
    ]
    return "".join(exported)


def bind_lines(tree: str, environment: Environment) -> str:
    """Return the lines that have Apptainer and Singularity bind the job's tree into each container that it starts.

    What the job binds already stays before it; a value that slurmd could not take back as it is stays alone.
    """
    if status_of(tree) is None:
        return ""
    found = []
    for name in BIND_VARIABLES:
        own = environment.get(name.encode("ascii"), b"").decode("ascii", "replace")
        if own.isascii() and (own.isprintable() or not own) and tree not in own.split(","):
            found.append(f"export {name}={own}{',' if own else ''}{tree}\n")
    return "".join(found)


def name_directories(settings_path: str) -> None:
    """Wait for the limits of the job that the environment names, then print what it may know."""
    settings, environment = settings_or_defaults(settings_path), posix.environ
    below = f"{node_name(environment)}/{job_id(environment)}"
    tree = f"{settings.runtime_dir}/{below}"
    wait_for_limits(tree)
    printed = lines(tree, posix.geteuid(), settings.features_url, below)
    if settings.whole("container_bind") and "export " in printed:
        printed += bind_lines(tree, environment)
    write_output(printed.encode("ascii"))


def main(settings_path: str) -> NoReturn:
    """Run the hook, and end this process."""
    run_to_end(lambda: name_directories(settings_path))
