"""`drainwise features write | remove`: directories of features where no hook of ours makes them.

Two static directories, or the tree of a job in another batch system. Values come, each overruling those before it, from
what is counted here, a JSON file, the batch system, the environment (`DRAINWISE_FEATURE_TOTAL_CPU=24`), and options.
"""

from __future__ import annotations

import argparse
import json
import os
import pwd
import shlex
import time

from drainwise.common.foreign_tree import remove_tree
from drainwise.common.local_file import make_public, read_small, split_path
from drainwise.facts.errors import FeatureError, UsageError
from drainwise.features import SHUTDOWN_FILE, host, planned_shutdown
from drainwise.features.facts import deadline_values, job_values, machine_values
from drainwise.features.keys import JOB, MACHINE
from drainwise.features.stated import SHUTDOWN, STATED, Stated, facts_of, from_environment, from_json, from_text
from drainwise.features.write import write_directory
from drainwise.node.job_features import make_features
from drainwise.prologs.ask import SYSTEMS, described_by
from drainwise.prologs.described import DescribedJob

Actions = argparse._SubParsersAction  # noqa: SLF001 - argparse has no public name for it

_LARGEST_JSON = 1 << 16
_REMOVE_SECS = 10.0


def add_write(actions: Actions[argparse.ArgumentParser]) -> None:
    """Add both sub-commands."""
    text = "write features directories: static ones, or those of a job that another batch system starts"
    action = actions.add_parser("write", help=text, description=text)
    action.add_argument("--machine", metavar="DIR", help="write $MACHINEFEATURES there; a key that nobody states goes")
    action.add_argument("--job", metavar="DIR", help="write $JOBFEATURES there, likewise")
    action.add_argument(
        "--tree", metavar="DIR", help="make the three directories of a job there, print their variables"
    )
    action.add_argument("--owner", metavar="USER", help="with --tree, as root: whose job it is (default: as it says)")
    action.add_argument("--from", dest="system", choices=SYSTEMS, help="take the job's facts from this batch system")
    action.add_argument("--json", metavar="FILE", help='keys by name, as "features show --json" prints them')
    action.add_argument("--count", action="store_true", help="count the cores of this host")
    for key in STATED:
        option = f"--{key.name.replace('_', '-')}"
        action.add_argument(option, dest=f"key_{key.name}", metavar="V", help=f"{key.meaning} ({key.unit})")
    text = "remove the tree of a job that has ended"
    remove = actions.add_parser("remove", help=text, description=text)
    remove.add_argument("--tree", metavar="DIR", required=True)


def write(args: argparse.Namespace) -> int:
    """Write what is asked for. Raises UsageError for a value that is none, FeatureError where it cannot be written."""
    if not (args.tree or args.machine or args.job) or (args.tree and (args.machine or args.job)):
        raise UsageError("expected --tree, or --machine, --job or both: the directories to write")
    now = int(time.time())
    job = described_by(args.system, os.environ, now) if args.system else DescribedJob({}, {})
    host_facts, job_facts, stated = facts_of(
        [
            _counted() if args.count or args.tree else {},
            _json(args.json) if args.json else {},
            job.machine,
            job.job,
            from_environment(os.environ),
            _options(args),
        ]
    )
    planned, own = (_time(stated, directory) for directory in (MACHINE, JOB))
    if args.tree:
        if planned is None:
            planned = planned_shutdown.read(SHUTDOWN_FILE, now)[0]
        try:
            make_public(split_path(args.tree)[0])
            make_public(args.tree)
        except OSError as error:
            raise FeatureError(f"{args.tree}: {error.strerror}") from None
        deadline = min((one for one in (planned, own) if one is not None), default=None)
        variables = make_features(args.tree, host_facts, job_facts, deadline, now, _owner(args.owner or job.owner))
        for name, path in variables.items():
            print(f"export {name}={shlex.quote(path)}")
        return 0
    machine_deadline, job_deadline = deadline_values(planned, own, now)
    if args.machine:
        write_directory(args.machine, {**machine_values(host_facts), **machine_deadline})
    if args.job:
        write_directory(args.job, {**job_values(job_facts, host_facts), **job_deadline})
    return 0


def remove(args: argparse.Namespace) -> int:
    """Remove the tree; one that is not there is no fault. Raises FeatureError when it cannot be removed."""
    if os.path.lexists(args.tree):
        try:
            remove_tree(os.path.abspath(args.tree), time.monotonic() + _REMOVE_SECS)
        except OSError as error:
            raise FeatureError(f"{args.tree}: {error.strerror}") from None
    return 0


def _counted() -> Stated:
    physical, logical = host.cores()
    counted = {"phys_cores": physical, "log_cores": logical, "total_cpu": logical or physical}
    return {name: value for name, value in counted.items() if value is not None}


def _json(file: str) -> Stated:
    found = read_small(file, _LARGEST_JSON)
    if found is None:
        raise UsageError(f"{file}: no such file")
    try:
        return from_json(json.loads(found[0]), file)
    except (ValueError, RecursionError):
        raise UsageError(f"{file}: expected a JSON text") from None


def _options(args: argparse.Namespace) -> Stated:
    given = {key: getattr(args, f"key_{key.name}") for key in STATED}
    return {key.name: from_text(key, text, f"--{key.name}") for key, text in given.items() if text is not None}


def _time(stated: Stated, directory: str) -> int | None:
    value = stated.get(SHUTDOWN[directory])
    return value if isinstance(value, int) else None


def _owner(user: str | None) -> tuple[int, int] | None:
    """Return uid and gid to whom $JOBSTATUS is given; None where that is us. Raises UsageError for nobody's name."""
    if user is None or os.geteuid() != 0:
        return None
    try:
        entry = pwd.getpwuid(int(user)) if user.isdecimal() else pwd.getpwnam(user)
    except (KeyError, OverflowError):
        raise UsageError(f"--owner {user[:40]!a}: no such user") from None
    return entry.pw_uid, entry.pw_gid
