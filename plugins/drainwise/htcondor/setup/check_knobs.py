"""Judge one daemon: the knobs of its drop-in, what makes orders or sandboxes dangerous, and whether it takes orders.

The knobs of condor_defrag, too, where `[htcondor] defrag = yes`: what the site has set of its own besides ours.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from drainwise.facts.units import format_duration
from drainwise.htcondor.node import USUAL_INTERVAL
from drainwise.htcondor.node.cron_state import seconds
from drainwise.htcondor.setup.check_facts import DaemonFacts
from drainwise.htcondor.setup.knobs import Knob, knobs, means_anyone, plain, words
from drainwise.htcondor.setup.render import PUSHES, drop_in_path, hooks_path, render, update_intervals
from drainwise.pool.finding import DANGEROUS, MISSING, OK, Finding, Rule, judged
from drainwise.siteconfig import SiteConfig

RANK = "DEFRAG_RANK"
SCHEDULE = "DEFRAG_DRAINING_SCHEDULE"
_PRICE = "$(DRAINWISE_NODE_PRICE)"
_BEFORE = "$(DEFRAG_RANK:0)"
_PUBLISHED = "childpilotdrainprice"
_NOT_THE_SITES = {"-expectedmachinegracefuldrainingbadput", "0", ""}
"""What stands before ours where the site has set nothing: HTCondor's default."""


def judge_defrag(daemon: DaemonFacts, site: SiteConfig) -> Iterator[Finding]:
    """Judge the ranks and schedules in force on the central manager, also of a condor_defrag with a name of its own.

    A rank that the site merged with the price is in order.
    """
    if site.htcondor.defrag != "yes":
        return
    wanted = expected_knobs(site, "central")
    for name, value in daemon.knobs.items():
        prefix, found, rest = name.rpartition(RANK.casefold())
        if found and not rest and (not prefix or prefix.endswith(".")) and plain(value) not in _NOT_THE_SITES:
            yield _rank(name.upper(), value, wanted)
        prefix, found, rest = name.rpartition(SCHEDULE.casefold())
        if found and not rest and prefix.endswith(".") and value.strip().casefold() not in {"graceful", ""}:
            why = "it gives no retirement: each pilot on the node gets SIGTERM at once"
            yield Finding(DANGEROUS, name.upper(), why, f"{name.upper()} = graceful", value)


def _rank(name: str, value: str, wanted: tuple[Knob, ...]) -> Finding:
    """Judge one rank: ours, the site's merged with the price, or one that leaves either out."""
    before = _before(value, wanted)
    if before is None and _PUBLISHED in value.casefold():
        return Finding(OK, name, "the site's own rank, merged with what draining a node loses", value=value)
    if before is None:
        why = "this rank takes the place of ours: condor_defrag does not drain where that costs least"
        return Finding(MISSING, name, why, _merged(name, value), value)
    if before not in _NOT_THE_SITES:
        why = "a rank of the site's own is set in an earlier file and counts no more; in a later file both count"
        return Finding(MISSING, name, why, _merged(name, before), before)
    return Finding(OK, name, "the node whose draining costs least first", value=value)


def _before(value: str, wanted: tuple[Knob, ...]) -> str | None:
    """Return what stood in the knob's place before ours; None where ours is not in force.

    A configuration that HTCondor reads twice has ours in ours.
    """
    texts = {knob.name: knob.text for knob in wanted}
    ours = texts[RANK].replace(_PRICE, texts[_PRICE[2:-1]])
    start, _, end = map(plain, ours.partition(_BEFORE))
    live, before = plain(value), None
    while live.startswith(start) and live.endswith(end):
        live = before = live[len(start) : len(live) - len(end)].strip()
    return before


def _merged(name: str, rank: str) -> str:
    return f"{name} = 1000000000 * ({rank}) - {_PRICE}"


_LISTS = ("ALLOW_{}_STARTD", "STARTD.ALLOW_{}", "ALLOW_{}")  # the first one that is set counts

RESTARTS = "The next reboot will do; -peaceful waits for the end of all jobs there and takes none meanwhile"
"""What the two ways to mend it do to a node."""


ENABLE = "echo 'DRAINWISE_ENABLED = True' > /etc/condor/config.d/40-drainwise-enabled.conf && condor_reconfig"
"""What puts drainwise in force on a node with the packages."""


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


FOLLOWS_WEIGHTS = (25, 0)
"""From here on a slot is charged by its present weight: seen on 25.14.1, and not on 23.9.6; never tried between."""


def judge_partial_return(daemon: DaemonFacts, site: SiteConfig) -> Iterator[Finding]:
    """Name the release of one execute node's startd that charges who returns cores for all of them.

    It cannot be mended there, and is not called missing.
    """
    if site.htcondor.partial_return == "yes" and daemon.version and daemon.version < FOLLOWS_WEIGHTS:
        shown = ".".join(map(str, daemon.version))
        why = "this release keeps a slot's weight of its match: who returns cores is charged for all of them to the end"
        yield Finding(OK, "HTCondor", why, value=shown)


def judge_updates(daemon: DaemonFacts, site: SiteConfig) -> Iterator[Finding]:
    """Judge whether an execute node is heard of as seldom as its release allows, or more often."""
    most = update_intervals(site)[bool(daemon.version) and daemon.version < PUSHES]
    interval = daemon.knobs.get("update_interval", str(USUAL_INTERVAL)).strip()
    if interval.isdigit() and int(interval) > most:
        why = "so old may be what the pool sees of its pilots"
        if site.htcondor.partial_return == "yes":
            why += "; others wait as long for returned cores"
        line = f"UPDATE_INTERVAL = {most}   ([htcondor] slot_update_interval = {format_duration(most)})"
        yield Finding(MISSING, "UPDATE_INTERVAL", why, line, interval)


OLDEST = (23, 0)  # what the drop-ins do was measured on 23.9.6 and 25.14.1

_ORDER_LIST = re.compile(r"\s*([A-Za-z0-9._#@:+-]+@[0-9]+=[0-9]+(\s+|$))*")


def expected_knobs(site: SiteConfig, role: str) -> tuple[Knob, ...]:
    """Return the knobs that the site's drop-in for `role` sets."""
    included = (drop_in_path(role), hooks_path(site)) if role == "execute" else (drop_in_path(role),)
    return tuple(knob for file in render(site, role) if file.path in included for knob in knobs(file.text))


def judge_daemon(daemon: DaemonFacts, site: SiteConfig, wanted: Sequence[Knob]) -> Iterator[Finding]:
    """Judge one daemon, which must have the knobs `wanted`; what is dangerous is not also called missing."""
    if daemon.fault:
        yield Finding(MISSING, f"{daemon.role} daemon", f"it did not answer: {daemon.fault}")
        return
    if daemon.version and daemon.version < OLDEST:
        shown, oldest = (".".join(map(str, numbers)) for numbers in (daemon.version, OLDEST))
        yield Finding(MISSING, "HTCondor", f"older than {oldest}: never tried there", value=shown)
    dangers = judged(daemon.machine, _RULES[daemon.role], daemon, site)
    yield from dangers
    named = {finding.what for finding in dangers}
    if daemon.role == "execute" and not any(name.startswith("drainwise_") for name in daemon.knobs):
        why = (
            "nothing of drainwise is in its configuration: DRAINWISE_ENABLED is not True there (a node with the"
            " packages), or HTCondor does not read the directory with the drop-in"
        )
        place = f"LOCAL_CONFIG_DIR = {daemon.knobs.get('local_config_dir', '')}"
        yield Finding(MISSING, "drop-in", why, f"{ENABLE}   # on {daemon.machine}", place)
        return
    for knob in wanted:
        if knob.name not in named:
            value = daemon.knobs.get(knob.name.casefold())
            severity = OK if knob.in_force(value) else MISSING
            yield Finding(severity, knob.name, knob.why, knob.line, value or "")


def _seconds(daemon: DaemonFacts, name: str) -> int | None:
    """Return a knob's value in seconds; None where it is an expression of its own."""
    return seconds(daemon.knobs.get(name.casefold(), ""))


def _exit_hook(daemon: DaemonFacts, _: SiteConfig) -> Iterator[Finding]:
    for name, value in daemon.knobs.items():
        if name.endswith("_hook_job_exit") and value.strip():
            why = "jobs with file transfer start again after their end (25.14.1)"
            yield Finding(DANGEROUS, name.upper(), why, f"{name.upper()} =", value)


def _open_sandboxes(daemon: DaemonFacts, _: SiteConfig) -> Iterator[Finding]:
    value = daemon.knobs.get("job_execdir_permissions", "user").strip()
    if value.casefold() in {"group", "world"}:
        why = "other users of the node can read the jobs' directories; publishing the reports does not need it"
        name = "JOB_EXECDIR_PERMISSIONS"
        yield Finding(DANGEROUS, name, why, f"{name} = user", value)


def _who_may_order(daemon: DaemonFacts, _: SiteConfig) -> Iterator[Finding]:
    for name, value in daemon.knobs.items():
        prefix, found, level = name.partition("settable_attrs_")
        if not found or (prefix and not prefix.endswith(".")):
            continue
        names = words(value)
        if level == "administrator":
            wide = [word for word in names if word.startswith("*")]
            why = "with ENABLE_RUNTIME_CONFIG an administrator's token sets any knob of the node from afar"
        else:
            ours = ("pilot_reclaim", "pilot_reclaim_room")
            wide = [word for word in names if any(fnmatchcase(one, word.casefold()) for one in ours)]
            why = f"everyone with the level {level.upper()} can end any pilot or keep jobs from starting"
        if wide:
            rest = [word for word in names if word not in wide]
            rest += ["PILOT_RECLAIM", "PILOT_RECLAIM_ROOM"] * (level == "administrator")
            line = f"{name.upper()} = {' '.join(dict.fromkeys(rest))}".rstrip()
            yield Finding(DANGEROUS, name.upper(), why, line, value)


def _who_is_administrator(daemon: DaemonFacts, _: SiteConfig) -> Iterator[Finding]:
    names = ("ALLOW_ADMINISTRATOR", "ALLOW_ADMINISTRATOR_STARTD", "STARTD.ALLOW_ADMINISTRATOR")
    lists = {name: daemon.knobs.get(name.casefold(), "").strip() for name in names}
    usual = ["root@$(UID_DOMAIN)", "condor@$(UID_DOMAIN)"]
    if not any(lists.values()):
        why = "nobody may give orders to this node; name the agent's identity, too"
        yield Finding(MISSING, names[0], why, f"{names[0]} = {', '.join(usual)}")
    for name, value in lists.items():
        present = words(value)
        named = [word for word in present if not means_anyone(word)]
        if len(named) < len(present):
            why = "any user can end any pilot, and stop the node"
            yield Finding(DANGEROUS, name, why, f"{name} = {', '.join(named or usual)}", value)


def _busy_cron(daemon: DaemonFacts, site: SiteConfig) -> Iterator[Finding]:
    name = f"STARTD_CRON_{site.htcondor.hook_keyword}_MODE"
    mode = daemon.knobs.get(name.casefold(), "").strip()
    period = daemon.knobs.get(f"startd_cron_{site.htcondor.hook_keyword}_period".casefold(), "").strip()
    if mode.casefold() == "waitforexit" and period.rstrip("smhSMH") in {"", "0"}:
        why = "a cron that fails at once is started again hundreds of times a second"
        yield Finding(DANGEROUS, name, why, f"{name} = Periodic", mode)


def _late_orders(daemon: DaemonFacts, site: SiteConfig) -> Iterator[Finding]:
    name, interval, grace = "STARTER_UPDATE_INTERVAL", _seconds(daemon, "STARTER_UPDATE_INTERVAL"), site.reclaim.grace
    if interval is not None and interval >= grace:
        why = f"a pilot may receive an order only after its deadline ([reclaim] grace {format_duration(grace)})"
        yield Finding(DANGEROUS, name, why, f"{name} = {site.htcondor.update_interval}", str(interval))


def _early_signal(daemon: DaemonFacts, site: SiteConfig) -> Iterator[Finding]:
    name, before, grace = "MachineMaxVacateTime", _seconds(daemon, "MachineMaxVacateTime"), site.reclaim.grace
    if before is not None and before >= grace:
        why = (
            f"SIGTERM comes that long before the deadline, so at once: nothing drains within [reclaim] grace"
            f" {format_duration(grace)}"
        )
        line = f"{name} = {site.htcondor.max_vacate_time or min(600, grace // 2)}"
        yield Finding(DANGEROUS, name, why, line, format_duration(before))


def _users_attributes(daemon: DaemonFacts, _: SiteConfig) -> Iterator[Finding]:
    for name in ("STARTD_JOB_ATTRS", "STARTD_JOB_EXPRS"):
        present = words(daemon.knobs.get(name.casefold(), ""))
        copied = [word for word in present if word.casefold().startswith("pilot")]
        if copied:
            rest = " ".join(word for word in present if word not in copied)
            why = f"copies {', '.join(copied)} from the user's job over what the node publishes"
            yield Finding(DANGEROUS, name, why, f"{name} = {rest}".rstrip(), " ".join(present))


def _broken_orders(daemon: DaemonFacts, _: SiteConfig) -> Iterator[Finding]:
    value = daemon.knobs.get("pilot_reclaim", "")
    if _ORDER_LIST.fullmatch(value) is None:
        why = "not a list of <GlobalJobId>@<JobStart>=<deadline>: no slot of the node can read its order"
        line = f'condor_config_val -name {daemon.machine} -startd -rset "PILOT_RECLAIM ="'
        yield Finding(DANGEROUS, "PILOT_RECLAIM", why, line, value[:80])


def _wasteful_negotiator(daemon: DaemonFacts, site: SiteConfig) -> Iterator[Finding]:
    requirements = daemon.knobs.get("preemption_requirements", "False").strip()
    on = requirements.casefold() != "false"
    by_waste = site.htcondor.negotiator_policy == "least-waste" or "pilot" in requirements.casefold()
    rank = daemon.knobs.get("negotiator_pre_job_rank", "")
    policy = dataclasses.replace(site.htcondor, negotiator_policy="least-waste")
    if on and by_waste and ("remoteuserprio" not in rank.casefold() or "pilot" in rank.casefold()):
        lines = expected_knobs(dataclasses.replace(site, htcondor=policy), "central")
        name = "NEGOTIATOR_PRE_JOB_RANK"
        line = "\n".join(knob.line for knob in lines if knob.name in {"DRAINWISE_USER", name})
        why = "it is evaluated before PREEMPTION_RANK: -Cpus and -Memory there take the most wasteful slot first"
        if "pilot" in rank.casefold():
            why = "it is evaluated before PREEMPTION_RANK: what one user's pilots claim moves kills to other users"
        yield Finding(DANGEROUS, name, why, line, rank)
    if by_waste and not daemon.knobs.get("group_names", "").strip():
        why = "the negotiator's policy moves cores between groups by their quotas; without groups it does nothing"
        line = "GROUP_NAMES = group_a, group_b   (and GROUP_QUOTA_group_a = ... for each)"
        yield Finding(MISSING, "GROUP_NAMES", why, line)


_RULES: dict[str, tuple[Rule, ...]] = {
    "execute": (
        _exit_hook,
        _open_sandboxes,
        _who_may_order,
        _who_is_administrator,
        _busy_cron,
        _late_orders,
        _early_signal,
        _users_attributes,
        _broken_orders,
        judge_writers,
        judge_orders,
        judge_partial_return,
        judge_updates,
    ),
    "access": (),
    "central": (_wasteful_negotiator, judge_defrag),
}
