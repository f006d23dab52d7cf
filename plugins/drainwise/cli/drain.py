"""`drainwise drain NODE... --by TIME`: have nodes left by their pilots by a time, at the least waste."""

from __future__ import annotations

import argparse
import time
from dataclasses import replace

from drainwise.cli.on_request import (
    add_request_options,
    cancel_request,
    list_requests,
    nodes_in,
    request_of,
    run_request,
)
from drainwise.cli.pool_options import add_pool_options, open_pool
from drainwise.facts.errors import UsageError
from drainwise.requests.node_list import known_nodes, nodes_of


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    text = "have nodes left by their pilots by a time, at the least waste"
    parser = subparsers.add_parser("drain", help=text, description=text)
    parser.add_argument(
        "nodes", nargs="*", metavar="NODE", help="a node, a range such as rack7-[01-12,15], or @FILE with one a line"
    )
    parser.add_argument("--act", action="store_true", help="order it; without it, only show what would be ordered")
    parser.add_argument("--journal", metavar="FILE", help="append its events there (default: the site's journal)")
    add_request_options(parser, parser.add_mutually_exclusive_group())
    add_pool_options(parser)
    parser.set_defaults(loop=False, period=None)


def run(args: argparse.Namespace) -> int:
    """Order, cancel or list; return the exit code. Raises UsageError for nodes or a time that are none."""
    if args.list or args.cancel is not None:
        if args.nodes or args.act or args.by is not None:
            raise UsageError("--list and --cancel go without nodes, --by and --act")
        return list_requests(args) if args.list else cancel_request(args)
    names = nodes_of(args.nodes)
    if not names:
        raise UsageError("expected nodes: names, ranges such as rack7-[01-12], or @FILE")
    if args.by is None:
        raise UsageError("expected --by TIME: when must the nodes be empty?")
    now = int(time.time())
    request = request_of(args, now)  # a wrong time needs no pool
    return run_request(args, replace(request, nodes=known_nodes(names, nodes_in(open_pool(args).snapshot(now)))))
