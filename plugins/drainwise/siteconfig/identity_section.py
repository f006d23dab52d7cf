"""The section of the site file that says who pilots are: what is shown of them, and the rules by which it is read."""

# ruff: noqa: RUF009 - key() and optional() are dataclasses.field() with a typed default

from __future__ import annotations

from dataclasses import dataclass

from drainwise.identity.rules import IdentityRules, Rule
from drainwise.siteconfig.kinds import choice, rule
from drainwise.siteconfig.table import key, optional


@dataclass(frozen=True)
class IdentitySection:
    """Who sent a pilot, by its virtual organisation, credential, CE and factory: shown, and never decided upon."""

    subject: str = key(
        choice("yes", "no"),
        "yes",
        "no: subjects of credentials, which may name persons, are not asked for, shown or written down",
    )
    issuer: Rule | None = optional(
        rule(), "https://{vo}-auth.cern.ch/{}", "on HTCondor: what the issuer of a token says of a pilot"
    )
    comment: Rule | None = optional(
        rule(), "vo={vo} job={ce_job} {} | vo={vo}", "on Slurm: what a job's comment says of it"
    )
    job_name: Rule | None = optional(rule(), "{factory}_{entry}", "on Slurm: what a job's name says of it")

    def rules(self) -> IdentityRules:
        """Return the section as whoever reads a pool needs it."""
        return IdentityRules(self.subject == "yes", self.issuer, self.comment, self.job_name)
