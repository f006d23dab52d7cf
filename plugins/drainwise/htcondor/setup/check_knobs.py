"""Judge the knobs of one daemon: those of its drop-in, and those that make orders or sandboxes dangerous."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from drainwise.facts.written_units import format_duration
from drainwise.htcondor.setup.check_defrag import judge_defrag
from drainwise.htcondor.setup.check_facts import DaemonFacts
from drainwise.htcondor.setup.check_orders import judge_orders, judge_writers
from drainwise.htcondor.setup.check_parts import judge_partial_return, judge_updates
from drainwise.htcondor.setup.knobs import Knob, knobs, means_anyone, words
from drainwise.htcondor.setup.render import drop_in_path, hooks_path, render
from drainwise.pool.finding import DANGEROUS, MISSING, OK, Finding, Rule, judged
from drainwise.siteconfig import SiteConfig

OLDEST = (23, 0)  # what the drop-ins do was measured on 23.9.6 and 25.14.1

_PRODUCT = re.compile(r"\d{1,9}(\s*\*\s*\d{1,9})*")
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
    for knob in wanted:
        if knob.name not in named:
            value = daemon.knobs.get(knob.name.casefold())
            severity = OK if knob.in_force(value) else MISSING
            yield Finding(severity, knob.name, knob.why, knob.line, value or "")


def _seconds(daemon: DaemonFacts, name: str) -> int | None:
    """Return a knob's value in seconds; None where it is an expression of its own."""
    value = daemon.knobs.get(name.casefold(), "").strip()
    if _PRODUCT.fullmatch(value) is None:
        return None
    product = 1
    for factor in value.split("*"):
        product *= int(factor)
    return product


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


def _other_drains(daemon: DaemonFacts, site: SiteConfig) -> Iterator[Finding]:
    yield from judge_defrag(daemon, site, expected_knobs(site, "central"))


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
    "central": (_wasteful_negotiator, _other_drains),
}
