"""Judging whether Slurm's own preemption can be steered, each release in its way; and what is left behind of that."""

from __future__ import annotations

from collections.abc import Iterator

from drainwise.finding import DANGEROUS, MISSING, OK, Finding
from drainwise.siteconfig import SiteConfig
from drainwise.slurm.check_facts import ClusterFacts, shown_labels
from drainwise.slurm.merge import MIN_EXEMPT_SINCE
from drainwise.slurm.native_road import EXPOSED, PROTECTED, exempt_from


def native_road(facts: ClusterFacts, site: SiteConfig, _: int) -> Iterator[Finding]:
    """What stands in the way of the native road where the site wants it; what is left of it where it does not."""
    cluster, wanted = facts.cluster, site.slurm.native_preemption == "yes"
    marked = [job for job in facts.jobs if job.priority in {EXPOSED, PROTECTED}]
    if not wanted:
        if marked:
            why = "priorities of the native road, which is off: waiting jobs among them keep their place by it"
            line = "scontrol release " + ",".join(job.label for job in marked)
            yield Finding(DANGEROUS, cluster, "job priorities", why, line, shown_labels(marked))
        return
    preempt = facts.text("PreemptType")
    why = "[slurm] native_preemption = yes steers this plugin"
    mode = site.slurm.vacate.upper()
    line = f"PreemptType=preempt/qos\nPreemptMode={mode}"
    yield Finding(OK if preempt == "preempt/qos" else MISSING, cluster, "PreemptType", why, line, preempt)
    yield from _release(facts, site)
    if facts.release >= MIN_EXEMPT_SINCE:
        yield from _exemption(facts)
    elif not any("within" in qos.modes for qos in facts.qos):
        why = "before 23.02 only jobs of one QOS look at each other's priority"
        line = f"sacctmgr modify qos PILOTS set PreemptMode={mode},WITHIN"
        yield Finding(MISSING, cluster, "QOS", why, line, ", ".join(qos.name for qos in facts.qos))
    if not any(qos.preempts or "within" in qos.modes for qos in facts.qos):
        why = "no QOS may preempt another: nobody is ever preempted"
        yield Finding(MISSING, cluster, "QOS Preempt", why, "sacctmgr modify qos OWED set Preempt=PILOTS")


def _release(facts: ClusterFacts, site: SiteConfig) -> Iterator[Finding]:
    """Whether `drainwise config slurm` renders for this release, if the site says for which one."""
    told = site.slurm.release
    if told is not None and (told >= MIN_EXEMPT_SINCE) != (facts.release >= MIN_EXEMPT_SINCE):
        why = f"[slurm] release = {told} in the site file is another one: the rendered lines do not fit"
        yield Finding(
            DANGEROUS, facts.cluster, "release", why, f"release = {facts.release}", facts.text("SLURM_VERSION")
        )


def _exemption(facts: ClusterFacts) -> Iterator[Finding]:
    value, line = facts.text("PreemptParameters"), f"PreemptParameters=min_exempt_priority={EXPOSED + 1}"
    exempt = exempt_from(value)
    if exempt is None:
        why = "without it Slurm preempts runs that were not chosen"
        yield Finding(DANGEROUS, facts.cluster, "PreemptParameters", why, line, value)
    elif exempt <= EXPOSED:
        yield Finding(MISSING, facts.cluster, "PreemptParameters", "the chosen runs are exempt, too", line, value)
    elif exempt > EXPOSED + 1:
        why = "a run whose own priority is below it is preempted without being chosen"
        yield Finding(DANGEROUS, facts.cluster, "PreemptParameters", why, line, value)
    else:
        yield Finding(OK, facts.cluster, "PreemptParameters", "only chosen runs can be preempted", line, value)
