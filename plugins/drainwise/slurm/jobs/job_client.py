"""Which kind of client a job of Slurm is, by the rows of the site file."""

from __future__ import annotations

from drainwise.facts.client_rules import ACCOUNT, USER, ClientRules, of_glidein
from drainwise.facts.clients import PAPER, ClientProfile
from drainwise.slurm.jobs.job import SlurmJob


def client_of(job: SlurmJob, rules: ClientRules | None, is_glidein: bool = False) -> ClientProfile:
    """Return the profile of a job; that of all pilots where the site has no rows. is_glidein: as its node has seen."""
    found = PAPER
    if rules:
        texts = {"name": (job.name,), "comment": (job.comment,), "partition": job.partitions}
        found = rules.profile_of({USER: (job.user,), ACCOUNT: (job.account,), **texts})
    return of_glidein(found, rules) if is_glidein else found
