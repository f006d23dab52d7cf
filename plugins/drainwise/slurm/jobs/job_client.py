"""Which kind of client a job of Slurm is, by the rows of the site file."""

from __future__ import annotations

from drainwise.facts.client_rules import ACCOUNT, USER, ClientRules
from drainwise.facts.clients import PAPER, ClientProfile
from drainwise.slurm.jobs.job import SlurmJob


def client_of(job: SlurmJob, rules: ClientRules | None) -> ClientProfile:
    """Return the profile of a job; that of all pilots where the site has no rows."""
    if not rules:
        return PAPER
    texts = {"name": (job.name,), "comment": (job.comment,), "partition": job.partitions}
    return rules.profile_of({USER: (job.user,), ACCOUNT: (job.account,), **texts})
