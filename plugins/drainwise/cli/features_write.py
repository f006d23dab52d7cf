"""`drainwise features write | remove`: directories of features where no hook of ours makes them.

Two static directories, or the tree of a job in another batch system. Values come, each overruling those before it, from
what is counted here, a JSON file, the batch system, the environment (`DRAINWISE_FEATURE_TOTAL_CPU=24`), and options.
"""

from __future__ import annotations

import argparse
import os
import pwd
import shlex
import time

from drainwise.cli.command_line.options import Command, option
from drainwise.common.foreign_tree import remove_tree
from drainwise.common.local_file import make_public, read_json, split_path
from drainwise.facts.client_rules import USER, ClientRules, user_texts
from drainwise.facts.clients import PAPER, PROFILES
from drainwise.facts.errors import FeatureError, UsageError
from drainwise.features import SHUTDOWN_FILE, host, planned_shutdown
from drainwise.features.facts import JOB, MACHINE, deadline_values, job_values, machine_values
from drainwise.features.prologs import SYSTEMS, DescribedJob, described_by
from drainwise.features.stated import SHUTDOWN, STATED, Stated, facts_of, from_environment, from_json, from_text
from drainwise.features.write import write_directory
from drainwise.node.job_features import make_features

_LARGEST_JSON = 1 << 16
_REMOVE_SECS = 10.0


def write(args: argparse.Namespace) -> int:
    """Write what is asked for. Raises UsageError for a value that is none, FeatureError where it cannot be written."""
    if not (args.tree or args.machine or args.job) or (args.tree and (args.machine or args.job)):
        raise UsageError("expected --tree, or --machine, --job or both: the directories to write")
    now = int(time.time())
    job = described_by(args.system, os.environ, now) if args.system else DescribedJob({}, {})
    content = _json(args.json) if args.json else {}
    clients = _clients(content, args.json)
    host_facts, job_facts, stated = facts_of(
        [
            _counted() if args.count or args.tree else {},
            from_json(content, args.json),
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
        owner = _owner_of(args.owner or job.owner)
        if not _is_shown(owner.pw_name if owner else None, clients):
            deadline = None
        given = (owner.pw_uid, owner.pw_gid) if owner is not None and os.geteuid() == 0 else None
        variables = make_features(args.tree, host_facts, job_facts, deadline, now, given)
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


def _json(file: str) -> object:
    try:
        content = read_json(file, _LARGEST_JSON)
    except ValueError:
        raise UsageError(f"{file}: expected a JSON text") from None
    if content is None:
        raise UsageError(f"{file}: no such file")
    return content


def _clients(content: object, file: str) -> ClientRules | None:
    """Take the rows that say which users' pilots are of which kind of client out of a JSON text; None for no rows."""
    rows = content.pop("clients", None) if isinstance(content, dict) else None
    if rows is None:
        return None
    try:
        if not isinstance(rows, dict) or not all(isinstance(row, str) for row in rows.values()):
            raise ValueError(rows)
        if unknown := rows.keys() - {*PROFILES, "default"}:
            raise ValueError(min(unknown))
        return ClientRules(rows, rows.get("default", PAPER.name))
    except (KeyError, ValueError) as error:
        raise UsageError(f"{file}: clients: {str(error)[:40]!a}: expected rows as in [clients]") from None


def _is_shown(user: str | None, clients: ClientRules | None) -> bool:
    """Decide whether the job of this user may see a shutdown; as long as nobody says whose it is, it may not."""
    if not clients:
        return True
    return user is not None and clients.profile_of({USER: user_texts((user,))}).shutdown_files


def _options(args: argparse.Namespace) -> Stated:
    given = {key: getattr(args, f"key_{key.name}") for key in STATED}
    return {key.name: from_text(key, text, f"--{key.name}") for key, text in given.items() if text is not None}


def _time(stated: Stated, directory: str) -> int | None:
    value = stated.get(SHUTDOWN[directory])
    return value if isinstance(value, int) else None


def _owner_of(user: str | None) -> pwd.struct_passwd | None:
    """Return whose job it is: as root by what is said (None: nothing), else ourselves. Raises UsageError for nobody."""
    try:
        if os.geteuid() != 0:
            return pwd.getpwuid(os.geteuid())
        return None if user is None else pwd.getpwuid(int(user)) if user.isdecimal() else pwd.getpwnam(user)
    except (KeyError, OverflowError):
        if os.geteuid() != 0:
            return None
        raise UsageError(f"--owner {str(user)[:40]!a}: no such user") from None


WRITE = Command(
    "write features directories: static ones, or those of a job that another batch system starts",
    (
        option("--machine DIR", "write $MACHINEFEATURES there; a key that nobody states goes"),
        option("--job DIR", "write $JOBFEATURES there, likewise"),
        option("--tree DIR", "make the three directories of a job there, print their variables"),
        option("--owner USER", "with --tree, as root: whose job it is (default: as it says)"),
        option("--from", "take the job's facts from this batch system", dest="system", choices=SYSTEMS),
        option(
            "--json FILE",
            'keys by name, as "features show --json" prints them; with --tree "clients": rows of [clients] by users',
        ),
        option("--count", "count the cores of this host"),
        *(
            option(f"--{key.name.replace('_', '-')} V", f"{key.meaning} ({key.unit})", dest=f"key_{key.name}")
            for key in STATED
        ),
    ),
    write,
)
REMOVE = Command("remove the tree of a job that has ended", (option("--tree DIR", None, required=True),), remove)
