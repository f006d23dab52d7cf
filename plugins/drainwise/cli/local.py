"""`drainwise local`: the embedded batch system: start and stop it, its accounts, submit, look at and remove jobs."""

from __future__ import annotations

import argparse
import signal
import sys

from drainwise.cli import local_jobs
from drainwise.cli.arguments import seconds, whole
from drainwise.cli.text import document, json_text
from drainwise.common.printable import printable
from drainwise.facts.errors import UsageError
from drainwise.local.control import start_daemon, stop_daemon
from drainwise.local.job import AccountQuota, parse_nodes
from drainwise.local.leases import DaemonSettings
from drainwise.local.store import LocalStore
from drainwise.local.system import add_directory, default_directory

DEFAULT_WALL_LIMIT = "1d"


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command and its sub-commands."""
    parser = subparsers.add_parser("local", help="the embedded batch system: leases are processes on this machine")
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    _add_daemon(actions)
    _add_account(actions)
    _add_submit(actions)
    queue = _action(actions, "queue", "show the jobs")
    queue.add_argument("--all", action="store_true", help="those that have ended, too")
    queue.add_argument("--json", action="store_true", help="print JSON: times in UNIX s")
    remove = _action(actions, "remove", "end jobs: SIGTERM, and SIGKILL after the daemon's --kill-wait")
    remove.add_argument("job", type=whole(), nargs="+", help="number of a job")
    part = _action(actions, "return", "ask the pilot in a job to return some of its cores and to go on with the others")
    part.add_argument("job", type=whole(), help="number of the job")
    part.add_argument(
        "--cores",
        type=whole(0),
        metavar="N",
        required=True,
        help="in all, with those that it has returned; 0: none",
    )
    part.add_argument(
        "--within",
        metavar="DURATION",
        type=seconds(),
        help="no more are asked for after that, such as 2h (default: never)",
    )
    part.add_argument("--chunk", type=whole(1), default=1, metavar="N", help="cores that are of use only together")
    wait = _action(actions, "wait", "wait until jobs have ended; 1 when one did not end with 0")
    wait.add_argument("job", type=whole(), nargs="*", help="number of a job (default: all that wait or run)")
    wait.add_argument(
        "--timeout", metavar="DURATION", type=seconds(), help="give up after that, such as 10m, and end with 1"
    )
    parser.set_defaults(run=run)


def _action(
    actions: argparse._SubParsersAction[argparse.ArgumentParser], name: str, text: str
) -> argparse.ArgumentParser:
    action = actions.add_parser(name, help=text, description=text)
    add_directory(action)
    return action


def _add_daemon(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    start = _action(actions, "start", "start the daemon in the background")
    serve = _action(actions, "serve", "run the daemon here until it is interrupted; leases go on")
    for action in (start, serve):
        action.add_argument(
            "--nodes", metavar="NxC", help="N made-up nodes of C cores, such as 4x16 (default: those of the last start)"
        )
        action.add_argument(
            "--kill-wait", metavar="DURATION", type=seconds(), default=10, help="from SIGTERM to SIGKILL (default: 10s)"
        )
    serve.add_argument("--foreground", action="store_true", help="show the log here instead of writing it to a file")
    serve.add_argument("--kill-leases", action="store_true", help="end the leases, too, when it is interrupted")
    stop = _action(actions, "stop", "stop the daemon; leases go on and are found again")
    stop.add_argument("--kill", action="store_true", help="end the leases, too, also when no daemon runs")


def _add_account(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    account = _action(actions, "account", "show the accounts, or make, change or remove one")
    account.add_argument("name", nargs="?", metavar="NAME")
    change = account.add_mutually_exclusive_group()
    change.add_argument(
        "--quota", metavar="CORES", type=whole(), help="cores it is owed; it may use more while they are free"
    )
    change.add_argument("--remove", action="store_true", help="remove it")
    account.add_argument("--json", action="store_true", help="print JSON")


def _add_submit(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    submit = _action(actions, "submit", "put jobs into the queue and print their numbers; also while no daemon runs")
    submit.add_argument("--account", metavar="NAME", required=True, help="whose quota they use")
    submit.add_argument("--user", metavar="NAME", help="whose pilots they are called (default: the login name)")
    submit.add_argument("--cores", type=whole(), default=1, help="of one node (default: 1)")
    submit.add_argument(
        "--wall", metavar="DURATION", type=seconds(), default=DEFAULT_WALL_LIMIT, help="longest run time (default: 1d)"
    )
    submit.add_argument(
        "--priority", type=whole(), default=0, help="of one account the highest starts first (default: 0)"
    )
    submit.add_argument("--count", type=whole(), default=1, help="how many of them (default: 1)")
    submit.add_argument("--env", metavar="NAME[=VALUE]", action="append", default=[], help="a variable for the job")
    submit.add_argument("command_line", metavar="COMMAND", nargs=argparse.REMAINDER, help="-- COMMAND ARGUMENTS…")


def run(args: argparse.Namespace) -> int:
    """Run the chosen action; the exit code."""
    directory = args.directory or default_directory()
    actions = {
        "start": _start,
        "serve": _serve,
        "stop": _stop,
        "account": _account,
        "submit": local_jobs.submit,
        "queue": local_jobs.queue,
        "remove": local_jobs.remove,
        "wait": local_jobs.wait,
        "return": local_jobs.ask_for_part,
    }
    return actions[args.action](args, directory)


def _start(args: argparse.Namespace, directory: str) -> int:
    pid = start_daemon(
        directory, DaemonSettings(kill_wait=args.kill_wait), parse_nodes(args.nodes) if args.nodes else ()
    )
    print(f"the local batch system in {printable(directory)} is served by pid {pid}")
    return 0


def _serve(args: argparse.Namespace, directory: str) -> int:
    from drainwise.local.daemon import Daemon
    from drainwise.local.log import to_file, to_terminal

    say = to_terminal if args.foreground else to_file(directory)
    nodes = parse_nodes(args.nodes) if args.nodes else ()
    daemon = Daemon(directory, DaemonSettings(kill_wait=args.kill_wait), say, nodes)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: daemon.stop())
    try:
        daemon.run()
        if args.kill_leases:
            daemon.end_leases()
    finally:
        daemon.close()
    return 0


def _stop(args: argparse.Namespace, directory: str) -> int:
    print(stop_daemon(directory, args.kill))
    return 0


def _account(args: argparse.Namespace, directory: str) -> int:
    change = args.remove or args.quota is not None
    if change and args.name is None:
        raise UsageError("which account? `drainwise local account NAME --quota CORES`")
    with LocalStore(directory, create=args.quota is not None) as store:
        if args.remove:
            store.drop_account(args.name)
        elif args.quota is not None:
            store.set_account(AccountQuota(args.name, args.quota))
        accounts = [one for one in store.accounts() if args.name in {None, one.name} or change]
        cores = sum(node.cores for node in store.nodes())
    if args.name is not None and not accounts and not change:
        raise UsageError(f"account {args.name[:100]!a}: there is none of that name")
    if args.json:
        shown = [document("local account", {"name": one.name, "quota": one.quota}) for one in accounts]
        print(json_text(shown))
        return 0
    for one in accounts:
        print(f"{one.name:<20} {one.quota:>7} cores")
    owed = sum(one.quota for one in accounts)
    if cores and owed > cores and (change or args.name is None):
        print(f"drainwise: the quotas promise {owed} cores, the nodes have {cores}", file=sys.stderr)
    return 0
