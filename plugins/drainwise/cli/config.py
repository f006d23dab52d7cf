"""`drainwise config htcondor | slurm | keys | example`: the files of each machine from the site file; all its keys."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from drainwise.siteconfig import DEFAULT_SITE_FILE, load

if TYPE_CHECKING:
    from drainwise.siteconfig.rendered_tree import RenderedFile

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
        if system == "slurm":
            rendered.add_argument(
                "--live",
                metavar="FILE",
                help="the output of `scontrol show config`, where the command does not work here; none: a new cluster",
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
    return _files(_rendered(args), args.out)


def _rendered(args: argparse.Namespace) -> Sequence[RenderedFile]:
    site = load(args.site)
    if args.action == "htcondor":
        from drainwise.htcondor.render import render as render_htcondor

        return render_htcondor(site, args.role)
    from drainwise.slurm.live_settings import settings_to_merge
    from drainwise.slurm.render import render

    own = settings_to_merge(site, args.live, args.out)
    for setting in own.retired:
        print(f"drainwise: slurm.conf has {setting} no more: drainwise's hooks do not run it any more", file=sys.stderr)
    return render(site, args.role, own)


def _files(files: Sequence[RenderedFile], out: str | None) -> int:
    """Print the files, or write them; 1 when one went beside what a person has edited."""
    from drainwise.siteconfig.edited_files import said_of, sparing_edited
    from drainwise.siteconfig.rendered_tree import write_tree

    if out is None:
        for file in files:
            print(f"##### {file.path} (mode {file.mode:04o})")
            print(file.text, end="")
        return 0
    written, kept = sparing_edited(files, out)
    write_tree(written, out)
    for file in written:
        print(f"wrote {os.path.join(out, file.path.lstrip('/'))}")
    for line in said_of(kept, out):
        print(line, file=sys.stderr)
    return 1 if kept else 0
