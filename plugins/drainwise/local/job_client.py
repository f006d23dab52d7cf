"""Which kind of client a job of the local batch system is, by the rows of its node.conf or of the site file."""

from __future__ import annotations

from drainwise.facts.client_rules import ACCOUNT, USER, ClientRules
from drainwise.facts.clients import PAPER, ClientProfile
from drainwise.local.job import JobRequest


def client_of(job: JobRequest, rules: ClientRules | None) -> ClientProfile:
    """Return the profile of a job; that of all pilots where nothing is said of clients."""
    return rules.profile_of({USER: (job.user,), ACCOUNT: (job.account,)}) if rules else PAPER
