"""Jobs on an HTCondor pool as submit descriptions, and what its nodes are configured with."""

from __future__ import annotations

from drainwise.htcondor.setup.render import drop_in_path, render
from drainwise.siteconfig import SiteConfig

TRANSFERRED = "should_transfer_files = YES\nwhen_to_transfer_output = ON_EXIT"


def described(arguments: object, *more: str, cores: int = 8, count: int = 1, executable: str = "/bin/sleep") -> str:
    """Return the description of jobs that sleep for `arguments` seconds, or of another executable; more: lines."""
    lines = [f"executable = {executable}", f"arguments = {arguments}", "transfer_executable = False"]
    lines += [f"request_cpus = {cores}", "request_memory = 64", "request_disk = 1MB", *more, f"queue {count}\n"]
    return "\n".join(lines)


def scripted(script: str, node: str, *more: str, cores: int = 8, count: int = 1) -> str:
    """Return the description of jobs that run a shell script (without single quotes) on one node."""
    arguments = f'''"-c '{script.replace('"', '""')}'"'''
    needs = f'requirements = Machine == "{node}.pool.test"'
    return described(arguments, needs, TRANSFERRED, *more, cores=cores, count=count, executable="/bin/sh")


def node_config(site: SiteConfig) -> str:
    """Return what the execute node's drop-in says of orders, without hooks and cron, whose files are not there."""
    [drop_in] = [file.text for file in render(site, "execute") if file.path == drop_in_path("execute")]
    foreign = ("HOOK", "STARTD_CRON", "STARTER_")
    return "\n".join(line for line in drop_in.splitlines() if not any(word in line for word in foreign))
