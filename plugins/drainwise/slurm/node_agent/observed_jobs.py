"""What the agent sees of the payloads of this host's jobs, by what runs below Slurm's own process of each step.

A step's process is root's, and says in its command line which job it is of: no user has one. The step "extern" is
where foreign logins land, and is passed over.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence

from drainwise.node.payloads.claims import contradicts
from drainwise.node.payloads.observer import LONGEST_PAUSE, SeenJob, look_at, next_look
from drainwise.node.payloads.payload_profiles import PayloadProfile, site_rows
from drainwise.node.payloads.payload_trees import job_processes, orphans_by_group
from drainwise.node.payloads.process_table import ProcessTable, read_processes
from drainwise.node.settings import NodeSettings
from drainwise.pilotad.attributes import GLIDEIN_AD
from drainwise.pilotad.observation import Observation
from drainwise.pilotad.report import PilotReport
from drainwise.slurm.node_agent.jobs import Key, NodeJob

PERIOD = 60
"""Least seconds between two looks, however often the agent's rounds are."""
_STEP, _PASSED_OVER = b"slurmstepd", frozenset({"extern", "4294967292"})


class ObservedJobs:
    """The jobs as they were seen last.

    told: what is to be told of those in which a payload was seen. refuted: those whose reports contradict what is seen.
    """

    def __init__(self) -> None:
        self.told: dict[Key, Observation] = {}
        self.refuted: set[Key] = set()
        self._seen: dict[tuple[Key, tuple[int, int]], SeenJob] = {}
        self._next = 0

    def look(
        self, jobs: Mapping[Key, NodeJob], reports: Mapping[Key, PilotReport], settings: NodeSettings, now: int
    ) -> None:
        """See the payloads of these jobs at `now` (UNIX s); one of several nodes is seen in part, and passed over.

        reports: what the pilots say themselves.
        """
        self.told, self.refuted = {}, set()
        if not settings.is_observing:
            return
        if now >= self._next or now < self._next - LONGEST_PAUSE:
            begun, oldest = time.process_time(), now - settings.heartbeat_limit
            own = {key: one for key, one in reports.items() if one.heartbeat >= oldest and one.source != GLIDEIN_AD}
            claims = {key: one.used_cpu for key, one in own.items() if one.used_cpu is not None}
            self._seen = self._look(jobs, now, site_rows(settings.text("payload_patterns")), claims)
            self._next = max(now + PERIOD, next_look(now, time.process_time() - begun))
        for key, job in jobs.items():
            seen = self._seen.get((key, job.identity))
            if seen is not None and seen.has_worked and seen.told is not None:
                self.told[key] = seen.told
            if seen is not None and contradicts(seen.wrong, now, settings.contradictory_after):
                self.refuted.add(key)

    def _look(
        self,
        jobs: Mapping[Key, NodeJob],
        now: int,
        profiles: Sequence[PayloadProfile],
        claims: Mapping[Key, float],
    ) -> dict[tuple[Key, tuple[int, int]], SeenJob]:
        wanted = {key: job for key, job in jobs.items() if job.facts is not None and job.facts.single and job.cores}
        table = read_processes() if wanted else None
        if table is None:
            return {}
        steps, own = step_processes(table)
        orphans = {path: [pid for pid in pids if pid not in own] for path, pids in orphans_by_group(table).items()}
        found = {}
        for key, job in wanted.items():
            processes = job_processes(table, steps.get(job.lease.job, ()), orphans)
            begun = job.facts.start if job.facts is not None else None
            if processes is None or begun is None or not job.cores:
                continue
            before = self._seen.get((key, job.identity))
            claimed = claims.get(key)
            found[key, job.identity] = look_at(processes, table, profiles, before, job.cores, begun, now, claimed)
        return found


def step_processes(table: ProcessTable, proc: str = "/proc", owner: int = 0) -> tuple[dict[str, list[int]], set[int]]:
    """Return Slurm's own processes by the job whose steps they run, and all that there are.

    owner: whose they are.
    """
    steps: dict[str, list[int]] = {}
    own = set()
    for pid in table.named(_STEP):
        try:
            if os.stat(f"{proc}/{pid}").st_uid != owner:
                continue
        except OSError:
            continue  # it has just ended
        own.add(pid)
        job, _, step = table.command_line(pid).partition("[")[2].partition("]")[0].partition(".")
        if job.isdigit() and step not in _PASSED_OVER:
            steps.setdefault(job, []).append(pid)
    return steps, own
