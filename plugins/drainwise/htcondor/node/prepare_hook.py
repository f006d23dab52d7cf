"""The starter's prepare hook: before a job starts, make its feature directories and export their names.

Runs as the job's user, in the job's directory, with the job ad on standard input; what it prints is merged into the
starter's copy of that ad. It makes everything inside the job's own directory, so nothing is left to clean up.
"""

from __future__ import annotations

import posix
import time

from drainwise.common import acl
from drainwise.features import host
from drainwise.htcondor.node import sandbox
from drainwise.node import hook, with_urls
from drainwise.node.ad_text import literals, raw_values, string, whole
from drainwise.node.job_features import host_facts, job_facts, job_token, make_features

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

    from drainwise.features.facts import HostFacts, JobFacts
    from drainwise.node.ad_text import Literal
    from drainwise.node.settings import NodeSettings

_QUOTED = frozenset(" \t\r'")  # what cannot stand outside single quotes; a newline cannot stand in an ad at all


def assignment(name: str, value: str) -> str:
    """Write `NAME=value` in HTCondor's environment syntax: quoted as a whole where it must be, `'` is then doubled.

    Raises ValueError when there is a newline or NUL in it.
    """
    return _quoted(f"{name}={value}")


def _quoted(text: str) -> str:
    if "\n" in text or "\0" in text:
        raise ValueError("a newline or NUL cannot stand in an environment variable")
    return text if _QUOTED.isdisjoint(text) else "'" + text.replace("'", "''") + "'"


def from_old_syntax(raw: str, delimiter: str) -> str:
    """Convert the assignments of the old `Env` attribute (`A=1;B=2`, no quoting at all) to today's syntax.

    A piece without `=` is none, unless it has a `$$`, which HTCondor keeps for what it may stand for.
    """
    pieces = [piece.lstrip(" \t\r") for piece in raw.split(delimiter)]
    return " ".join(_quoted(piece) for piece in pieces if piece.find("=") > 0 or ("=" not in piece and "$$" in piece))


def _inside(raw: str) -> str:
    if len(raw) < 2 or raw[0] != '"' or raw[-1] != '"' or '"' in raw[1:-1].replace('\\"', ""):
        raise ValueError("the job's environment is not a string; it was left as it is")
    return raw[1:-1]


def with_variables(environment: str | None, old_env: str | None, delimiter: str, added: dict[str, str]) -> str:
    """Make the line for the hook's standard output.

    `environment` and `old_env` are the raw right-hand sides of the job ad's `Environment` and `Env` (with their
    quotation marks, still escaped) or None; `added` are the variables to set over the user's own. Raises ValueError
    when a value cannot be written or the job's own environment is not a string literal, which must not be lost.
    """
    kept = ""
    if environment is not None:
        kept = _inside(environment)
    elif old_env is not None:
        kept = from_old_syntax(_inside(old_env), delimiter)
    ours = " ".join(assignment(name, value) for name, value in added.items()).replace('"', '\\"')
    return f'Environment = "{kept + " " if kept else ""}{ours}"'


MIB = 1 << 20
JOB_ATTRIBUTES = ("GlobalJobId", "JobCurrentStartDate", "AllowedExecuteDuration", "AllowedJobDuration")
MACHINE_ATTRIBUTES = ("Cpus", "Memory", "Disk", "TotalCpus", "DetectedPhysicalCpus", "DetectedCpus")


def host_side(machine: dict[str, Literal], settings: NodeSettings) -> HostFacts:
    """Return the facts of this host, from the slot's ad and the site's settings."""
    physical, logical = whole(machine, "DetectedPhysicalCpus"), whole(machine, "DetectedCpus")
    if not physical or not logical:
        physical, logical = host.cores()
    elif logical == physical:
        logical = 0  # the draft's way of saying that hyper-threading is off
    total = whole(machine, "TotalCpus")
    if settings.is_returning_parts and total is not None:
        total //= 2  # a second slot has the same cores again
    return host_facts(settings, total, physical, logical)


def job_side(job: dict[str, Literal], machine: dict[str, Literal], settings: NodeSettings, now: int) -> JobFacts:
    """Return the facts of this job, from its ad, the slot's ad and the site's settings; `now` in UNIX s."""
    limits = (whole(job, "AllowedExecuteDuration"), whole(job, "AllowedJobDuration"))
    started = whole(job, "JobCurrentStartDate") or now
    memory, disk = (whole(machine, "Memory") or 0) * MIB or None, (whole(machine, "Disk") or 0) * 1024 or None
    return job_facts(settings, string(job, "GlobalJobId"), whole(machine, "Cpus"), started, limits, memory, (disk,))


def machine_ad(more: tuple[str, ...] = ()) -> dict[str, Literal]:
    """Read the slot's ad, with `more` attributes; empty, and logged, when it cannot be read: that costs some keys."""
    try:
        ad = hook.read_bounded(hook.variable("_CONDOR_MACHINE_AD"), sandbox.AD_LIMIT)
    except (KeyError, OSError) as error:
        hook.say(f"no machine ad, so cores, memory and disk are left out of the features: {error}")
        return {}
    return literals(ad, MACHINE_ATTRIBUTES + more)


def lend_passage(scratch: str) -> None:
    """Let the daemon's user, who owns the directory above, pass through the job's directory to its reports.

    In a pool without root that is the job's user itself, who needs no passage.
    """
    above = sandbox.parent(scratch)
    owner = posix.stat(above).st_uid
    if owner == posix.geteuid():
        return
    try:
        if owner == 0:
            raise ValueError(f"{above} belongs to root, not to HTCondor's own user")
        acl.lend(scratch, owner, acl.PASS_THROUGH)
    except (OSError, ValueError) as error:
        hook.say(f"this job's pilot reports cannot be published: no access list on its directory: {error}")


def with_line(ad: bytes, line: bytes) -> bytes:
    """Put this line, `Name = value`, into the ad in the place of the attribute of that name."""
    name = line[: line.index(b" ")].lower()
    kept = [one for one in ad.splitlines() if one.partition(b"=")[0].strip().lower() != name]
    return b"\n".join([*kept, line, b""])


def prepare(settings_path: str) -> bytes:
    """Make the three directories and print the job's new environment; returns the job's ad with it."""
    settings, now = hook.settings_or_defaults(settings_path), int(time.time())
    scratch = hook.variable("_CONDOR_SCRATCH_DIR").rstrip("/")
    lend_passage(scratch)
    ad = hook.read_input(sandbox.AD_LIMIT)
    machine = machine_ad(sandbox.kind_attributes(settings))
    settings = sandbox.of_slot(settings, machine)
    job = job_side(literals(ad, JOB_ATTRIBUTES), machine, settings, now)
    later = 0
    planned = hook.planned_shutdown(settings, now)
    if planned is not None and settings.clients is not None:
        client = sandbox.client_in(ad, settings.clients)
        planned = planned if client is not None and client.shutdown_files else None
        later = 0 if client is None else client.shown_later
    variables = make_features(scratch, host_side(machine, settings), job, planned, now, None, later)
    if not variables:
        return ad
    if settings.features_url:
        token, below = job_token(scratch, None, "this job"), sandbox.below_execute(scratch)
        variables = variables if token is None else with_urls(variables, settings.features_url, below, token)
    raw = raw_values(ad, ("Environment", "Env", "EnvDelim"))
    delimiter = raw.get("EnvDelim", '";"')[1:-1] or ";"
    line = with_variables(raw.get("Environment"), raw.get("Env"), delimiter, variables).encode("latin-1")
    hook.write_output(line + b"\n")
    return with_line(ad, line)


def main(settings_path: str, site_hook: Sequence[str] = ()) -> NoReturn:
    """Run the hook; it ends this process, or becomes the site's own hook, a path and its arguments."""
    if site_hook:
        from drainwise.htcondor.node.next_hook import put_input, run_before  # noqa: PLC0415 - few sites have one

        run_before(site_hook, lambda: put_input([prepare(settings_path)]))
    hook.run_to_end(lambda: prepare(settings_path), orderly=True)
