"""Which kind of client a job of Slurm is, by the rows of the site file."""

from __future__ import annotations

import re

from drainwise.facts.client_rules import ACCOUNT, USER, ClientRules, of_glidein
from drainwise.facts.clients import PAPER, ClientProfile
from drainwise.slurm.jobs.job import SlurmJob

_NAMES = re.compile(r"[^&,|()\[\]*\s:]+")


def traits_of(job: SlurmJob) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return what the conditions of the site file ask of a job beside its user and account, by their keys."""
    licences = tuple(one.partition(":")[0].partition("@")[0] for one in job.licences.split(",") if one)
    texts = (("name", (job.name,)), ("comment", (job.comment,)), ("partition", job.partitions), ("qos", (job.qos,)))
    return (*texts, ("feature", tuple(_NAMES.findall(job.features))), ("licence", licences))


def client_of(job: SlurmJob, rules: ClientRules | None, is_glidein: bool = False) -> ClientProfile:
    """Return the profile of a job; that of all pilots where the site has no rows. is_glidein: as its node has seen."""
    found = PAPER
    if rules:
        found = rules.profile_of({USER: (job.user,), ACCOUNT: (job.account,), **dict(traits_of(job))})
    return of_glidein(found, rules) if is_glidein else found
