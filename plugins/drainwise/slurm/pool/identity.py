"""Who sent the pilots of Slurm, by the site's rules for a job's name and comment. Its submitter wrote them, or a CE."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from drainwise.pool.facts import Pilot, Snapshot
from drainwise.pool.identity import IdentityRules, PilotIdentity, identity_of
from drainwise.slurm.jobs.job import SlurmJob


def with_identities(snapshot: Snapshot, jobs: Iterable[SlurmJob], rules: IdentityRules) -> Snapshot:
    """Return the snapshot with who sent each pilot, as far as a rule tells. jobs: those that it is made of."""
    if rules.comment is None and rules.job_name is None:
        return snapshot
    written = {job.label: job for job in jobs if job.name or job.comment}
    found = {pilot.name: identity_in(job, rules) for pilot in snapshot.pilots if (job := written.get(pilot.name))}

    def identified(pilot: Pilot) -> Pilot:
        identity = found.get(pilot.name)
        return pilot if identity is None else replace(pilot, identity=identity)

    return replace(snapshot, pilots=tuple(map(identified, snapshot.pilots)))


def identity_in(job: SlurmJob, rules: IdentityRules) -> PilotIdentity | None:
    """Return who sent a job; None where no rule tells."""
    return identity_of({}, (rules.comment, job.comment), (rules.job_name, job.name))
