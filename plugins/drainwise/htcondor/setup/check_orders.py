"""Judge whether orders can be given, by each startd's answer to the caller."""

from __future__ import annotations

from collections.abc import Iterator

from drainwise.htcondor.setup.check_facts import DaemonFacts
from drainwise.htcondor.setup.knobs import means_anyone, words
from drainwise.pool.finding import DANGEROUS, MISSING, OK, Finding
from drainwise.siteconfig import SiteConfig

_LISTS = ("ALLOW_{}_STARTD", "STARTD.ALLOW_{}", "ALLOW_{}")  # the first one that is set counts

RESTARTS = "The next reboot will do; -peaceful waits for the end of all jobs there and takes none meanwhile"
"""What the two ways to mend it do to a node."""


def restart_line(node: str) -> str:
    """Return the line by which the startd of a node takes orders."""
    return f"condor_restart -startd -peaceful {node}   (one node after the other, or each node's next reboot)"


def judge_orders(daemon: DaemonFacts, _: SiteConfig) -> Iterator[Finding]:
    """Judge whether this startd would take an order of the caller, and what must be done where it would not."""
    trial, what = daemon.trial, "orders"
    if trial is None:
        return
    who, names = trial.identity, _list(daemon, "ADMINISTRATOR")
    if not who:
        why = "the startd does not authenticate the caller by any method that both know, so it takes no order"
        line = "SEC_DEFAULT_AUTHENTICATION_METHODS = FS, IDTOKENS   (and a token for the agent)"
        yield Finding(MISSING, what, why, line)
    elif not trial.allowed and trial.by_root:
        why = (
            f"this startd knows the agent as {who} and does not give it the level ADMINISTRATOR: it refuses every"
            " order. Add the line there and condor_reconfig; or give the agent a token of an identity that stands"
            " there, in the directory that SEC_TOKEN_DIRECTORY names, for root also in /etc/condor/tokens.d"
        )
        yield Finding(MISSING, what, why, f"{names} = $({names}), {who}", who)
    elif not trial.allowed:
        why = f"this startd knows who runs this check as {who}, who may give no orders: nothing is said of the agent"
        yield Finding(MISSING, what, why, "sudo drainwise check htcondor   (as the agent's user)", who)
    elif trial.taken is False and daemon.knobs.get("enable_runtime_config", "").strip().casefold() == "true":
        why = (
            "the startd has not been started since ENABLE_RUNTIME_CONFIG is set, which counts from its start: it"
            f" refuses every order. {RESTARTS}; without -peaceful they are killed"
        )
        yield Finding(MISSING, what, why, restart_line("NODE"), who)
    elif trial.taken is not False:  # else a knob of the drop-in is not in force, which has a line of its own
        why = "it takes orders of the caller" if trial.taken else "it gives the caller the level ADMINISTRATOR"
        if trial.beside:
            why += ", from its own machine; an agent elsewhere may come as another: run the check there, too"
        yield Finding(OK, what, why, value=who)


def judge_writers(daemon: DaemonFacts, _: SiteConfig) -> Iterator[Finding]:
    """Judge whether all who may submit have WRITE at a startd: then they can put attributes over those of its slots.

    A list that the site chose itself is in order as it is.
    """
    name, what = _list(daemon, "WRITE"), "ALLOW_WRITE_STARTD"
    value = daemon.knobs.get(name.casefold(), "").strip()
    if any(means_anyone(word) for word in words(value)):
        why = (
            "whoever may submit has WRITE at this startd, too, and can put attributes over what it publishes: hide"
            " orders, forge reports (condor_update_machine_ad). Jobs need no such right there"
        )
        line = f"{what} = root@$(UID_DOMAIN), condor@$(UID_DOMAIN)"
        if daemon.knobs.get("legacy_allow_semantics", "").strip().casefold() == "true":
            why += "; but with LEGACY_ALLOW_SEMANTICS the schedds may need it, so they must be in the list"
            line += ", SCHEDD...   (the identity or host of each schedd)"
        yield Finding(DANGEROUS, what, why, line, f"{name} = {value}")
    elif value:
        yield Finding(OK, what, "only whom the site names may change what it publishes", value=value)


def _list(daemon: DaemonFacts, level: str) -> str:
    """Return the knob by which this startd knows to whom it gives a level."""
    names = [name.format(level) for name in _LISTS]
    return next((name for name in names if daemon.knobs.get(name.casefold(), "").strip()), names[-1])
