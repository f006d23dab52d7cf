"""`drainwise config htcondor | slurm | keys | example`: the files of each machine from the site file; all its keys."""

from __future__ import annotations

import argparse
import os

from drainwise.siteconfig import DEFAULT_SITE_FILE, load

ROLES = {"htcondor": ("execute", "access", "central", "all"), "slurm": ("node", "controller", "all")}


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command and its sub-commands."""
    parser = subparsers.add_parser("config", help="render the batch system's configuration from the site file")
    actions = parser.add_subparsers(dest="action", metavar="htcondor | slurm | keys | example", required=True)
    text = "print, or write below a directory, the files of a machine"
    for system, roles in ROLES.items():
        rendered = actions.add_parser(system, help=text, description=text)
        rendered.add_argument("--role", choices=roles, required=True, help="what the machine is in the pool")
        rendered.add_argument("--site", metavar="FILE", default=DEFAULT_SITE_FILE, help="default: %(default)s")
        rendered.add_argument(
            "--out", metavar="DIR", help="write the tree below DIR (/ installs it) instead of printing it"
        )
    actions.add_parser("keys", help="print the table of the site file's keys as Markdown")
    actions.add_parser("example", help="print a site file in which every key is explained")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the chosen action; the exit code."""
    if args.action == "keys":
        from drainwise.siteconfig.documentation import markdown

        print(markdown(), end="")
        return 0
    if args.action == "example":
        from drainwise.siteconfig.documentation import example

        print(example(), end="")
        return 0
    return _files(args.action, args.role, args.site, args.out)


def _files(system: str, role: str, site_file: str, out: str | None) -> int:
    if system == "slurm":
        from drainwise.slurm.render import render
    else:
        from drainwise.htcondor.render import render
    from drainwise.siteconfig.rendered_tree import write_tree

    files = render(load(site_file), role)
    if out is None:
        for file in files:
            print(f"##### {file.path} (mode {file.mode:04o})")
            print(file.text, end="")
        return 0
    write_tree(files, out)
    for file in files:
        print(f"wrote {os.path.join(out, file.path.lstrip('/'))}")
    return 0
