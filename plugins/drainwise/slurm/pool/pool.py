"""Slurm as a `Pool`: slurmctld answers queries, takes the orders, and enforces them alone."""

from __future__ import annotations

import contextlib
import math
import re
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from drainwise.facts.errors import PoolError, PoolUnreachable
from drainwise.facts.scope_rules import END
from drainwise.facts.units import clock, parse_clock
from drainwise.pool.abilities import PREFIX, Closing, carried_out, most_at_once
from drainwise.pool.facts import Ending, Pilot, Snapshot
from drainwise.pool.scope import job_facts
from drainwise.siteconfig.node_sections import SlurmSection
from drainwise.slurm.jobs.commands import SlurmCommands
from drainwise.slurm.jobs.job import SlurmJob, lease_end
from drainwise.slurm.jobs.order_mark import OrderMarks
from drainwise.slurm.pool.endings import SlurmEndings
from drainwise.slurm.pool.native_preemption import EXPOSED, SlurmPreemption
from drainwise.slurm.pool.orders import SlurmOrders
from drainwise.slurm.pool.places import Allocations
from drainwise.slurm.pool.qos_rules import COMMAND as QOS_COMMAND
from drainwise.slurm.pool.qos_rules import Qos, qos_in
from drainwise.slurm.pool.requeues import SlurmRequeues
from drainwise.slurm.pool.snapshot import SiteRules, snapshot_of
from drainwise.slurm.pool.transport import SlurmTransport

SNAPSHOT_SECONDS = 120.0
"""How long the list of jobs may take; a slurmctld that is gone or hangs is found out by the shorter questions."""
OVERDUE_AFTER = 120
"""Seconds after its deadline when a run counts as overdue: slurmctld looks every 30 s, and then KillWait passes."""
MOST_MARKED = 64
"""Runs for which a cycle marks nodes, if others have changed their leases; each takes three commands of 10 ms."""


class SlurmPool:
    """The cluster that slurm.conf names, with the rights of whoever runs this: orders need root or SlurmUser.

    settings: the site's, see the section [slurm] of its file; site: what else it says. transport: who asks for the
    snapshots, if not whom the settings say. clock: the UNIX time.
    """

    def __init__(
        self,
        settings: SlurmSection = SlurmSection(),  # noqa: B008 - immutable
        site: SiteRules = SiteRules(),  # noqa: B008 - immutable
        transport: SlurmTransport | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        commands = self._commands = SlurmCommands(settings.bin_dir, settings.command_timeout)
        self._qos: Mapping[str, Qos] = {}
        self._transport = transport or SlurmTransport(commands, SNAPSHOT_SECONDS, settings.transport)
        self._orders, self._native = SlurmOrders(commands), SlurmPreemption(commands)
        self._requeues = SlurmRequeues(self._orders, site.scope)
        self._marks, self._closings = OrderMarks(commands), SlurmClosings(commands)
        self._numbers: dict[str, int] = {}
        self._endings, self._allocations = SlurmEndings(commands), Allocations(commands)
        self._accounts: frozenset[str] = frozenset()
        self._sharing_account: Callable[[str], str] = str
        self._jobs: Sequence[SlurmJob] = ()
        self._is_native = settings.native_preemption == "yes"
        self._site, self._clock = replace(site, exposed=(EXPOSED,)) if self._is_native else site, clock

    def snapshot(self, now: int) -> Snapshot:
        """See `Pool`."""
        answers = self._transport.answers()
        self._require_known_accounts(answers.shares.accounts)
        self._sharing_account = answers.shares.sharing_account
        self._jobs = answers.jobs
        self._marks.learn(answers.jobs)
        self._numbers = {job.label: job.number for job in answers.jobs}
        if self._site.preemption or self._site.scope.may_requeue:
            with contextlib.suppress(PoolUnreachable):  # as before, while the accounting does not answer
                self._qos = {one.name: one for one in qos_in(self._commands.ask(*QOS_COMMAND))}
        answers = replace(answers, allocations=self._allocations.of(answers.jobs), qos=self._qos)
        found = snapshot_of(answers, self._site, now)
        pilots = self._requeues.with_leads(found.pilots, answers.jobs, answers.rules.partitions, self._qos)
        found = replace(found, pilots=pilots)
        self._orders.as_one = frozenset(pilot.run for pilot in found.pilots if pilot.pieces and not pilot.cannot)
        return found

    def _require_known_accounts(self, accounts: frozenset[str]) -> None:
        """Raise PoolUnreachable, once, where accounts of the snapshot before are gone: the answer may have been cut."""
        gone, self._accounts = self._accounts - accounts, accounts
        if gone:
            raise PoolUnreachable(
                f"doubtful answer: sshare lacks {len(gone)} accounts that it had, such as {min(gone)}"
            )

    def give_order(self, pilot: Pilot, deadline: int, reason: str) -> None:
        """See `Pool`; the order is read back before this returns.

        A deadline that is over ends the run at once: requeued or cancelled as the site says, or left
        to Slurm's own preemption. A run that has an order is never requeued: its time limit has become as short as
        its lease was made, and the next run would inherit it.
        """
        if deadline > self._clock():
            self._mark(pilot, self._orders.shorten(pilot.run, deadline, reason))
        elif self._is_native and pilot.deadline is None:
            self._native.expose(pilot.run)
        else:
            is_kept = pilot.deadline is None and self._site.scope.at_deadline_of(job_facts(pilot)) != END
            self._orders.end_now(pilot.run, reason, requeue=is_kept)

    def withdraw_order(self, pilot: Pilot, reason: str) -> None:
        """See `Pool`; the node's agent notifies the pilot. A run that was left to Slurm's preemption stays so."""
        self._mark(pilot, self._orders.withdraw(pilot.run, reason))

    def endings(self, runs: Collection[str], now: int) -> dict[str, Ending]:  # noqa: ARG002 - what ended has ended
        """See `Pool`; the records are the accounting's, and without it what slurmctld still knows (MinJobAge)."""
        return self._endings.endings(runs)

    def cores_of_ended(self, account: str, nodes: Sequence[str], since: int, now: int) -> float:  # noqa: ARG002 - what ended has ended
        """See `TellsEnded`; the records are those of `endings`."""
        runs = self._endings.ended_on(nodes, since)
        return float(most_at_once(run for whose, run in runs if self._sharing_account(whose) == account))

    def steps_since(self, now: int) -> dict[str, int]:
        """See `TellsSteps`: what srun started, not the batch script itself."""
        found: dict[str, int] = {}
        for line in self._commands.ask("squeue", "--steps", "--all", "--noheader", "--format=%i %M").splitlines():
            name, _, passed = line.partition(" ")
            job, _, step = name.rpartition(".")
            if step.isdigit() and (seconds := parse_clock(passed.strip())) is not None:
                found[job] = min(found.get(job, now), now - math.ceil(seconds))
        return found

    def follow_up(self, snapshot: Snapshot) -> list[str]:
        """See `Pool`.

        Runs are requeued at their deadline where the site wants that. Those that are overdue (slurmctld should have
        ended them; OverTimeLimit keeps it from that) are ended, and jobs that Slurm preempted get back their own
        priority. Jobs that were requeued get back the time limit that an order to an earlier run has taken. Nodes are
        marked for leases that somebody else has changed. Raises PoolError when the preempted jobs cannot be found.
        """
        # First what may raise: who was ended is reported in any case.
        settled = self._native.settle() if self._is_native else []
        done = [f"{label} has its own priority again" for label in settled]
        done += self._orders.give_limits_back(self._jobs)
        done += self._requeues.carry_out(snapshot.pilots, self._clock())
        for pilot in snapshot.pilots:
            if pilot.deadline is not None and pilot.deadline + OVERDUE_AFTER < self._clock():
                try:
                    self._orders.end_now(pilot.run, "it is overdue", requeue=False)
                    done.append(f"{pilot.name} was overdue and is ended")
                except PoolError as fault:
                    done.append(f"{pilot.name} is overdue and is not ended: {fault}")
        return done + self._mark_changed(snapshot)

    def close_nodes(self, closings: Sequence[Closing], snapshot: Snapshot, now: int) -> list[str]:  # noqa: ARG002 - slurmctld knows its reservations
        """See `ClosesNodes`: by a reservation for each request."""
        return self._closings.close_nodes(closings)

    def _mark(self, pilot: Pilot, state: SlurmJob) -> str:
        """Have its nodes look at a run whose lease has changed; why they cannot, "" when they will."""
        end = lease_end(state) or 0
        faults = [self._marks.write(node, state.number, end) for node in pilot.nodes]
        return "; ".join(fault for fault in faults if fault)

    def _mark_changed(self, snapshot: Snapshot) -> list[str]:
        """Mark the nodes of runs whose lease has changed since, by whomever; what could not be done, in words."""
        mine = (pilot for pilot in snapshot.pilots if not pilot.cannot and not pilot.leaving)
        changed = [pilot for pilot in mine if self._is_changed(pilot)]
        faults = []
        for pilot in changed[:MOST_MARKED]:
            try:
                fault = self._mark(pilot, self._orders.must_run(pilot.run))
            except PoolError:
                continue  # it has ended since
            if fault:
                faults.append(f"{pilot.name} receives the change of its lease later: {fault}")
        return faults

    def _is_changed(self, pilot: Pilot) -> bool:
        """Decide whether a node of a run has a mark for it that is not of its lease as it is, or lacks one."""
        number = self._numbers.get(pilot.name, 0)
        for node in pilot.nodes:
            if pilot.pieces and not self._marks.has_carrier(node):
                continue  # the node's agent asks for such a run in each of its rounds
            entry = self._marks.entry(node, number)
            if pilot.deadline is not None if entry is None else entry != str(pilot.lease_end or 0):
                return True
        return False


# Close nodes by a reservation: slurmctld starts no job that its time limit would let run into it, nor any later.
#
# It is made at once, however far ahead its time lies, for a year, and is of nobody's but root's jobs. IGNORE_JOBS: who
# runs there now does not keep it from being made; MAINT: it may lie over other reservations. One that somebody deletes
# is made again, as long as the request is there.

_OURS = re.compile(rf"^ReservationName=({PREFIX}\S+)", re.MULTILINE)
_PLAIN = re.compile(r"[^A-Za-z0-9._-]")


class SlurmClosings:
    """The reservations of drainwise in one cluster; to make them needs root, SlurmUser or AdminLevel Operator."""

    def __init__(self, commands: SlurmCommands) -> None:
        self._commands = commands
        self._is_settled = False
        """Nothing of ours was there when we last looked, and nothing was made since."""

    def close_nodes(self, closings: Sequence[Closing]) -> list[str]:
        """See `ClosesNodes`. What fails is raised once nothing else is left to be done."""
        if self._is_settled and not closings:
            return []
        answer = self._commands.ask("scontrol", "--oneliner", "show", "reservation")
        present = set(_OURS.findall(answer))
        done: list[tuple[str, PoolError | bool]] = []
        wanted = {f"{PREFIX}{_PLAIN.sub('-', one.name)}": one for one in closings}
        for name in sorted(present - wanted.keys()):
            done.append((f"reservation {name} is deleted", self._ordered("delete", f"ReservationName={name}")))
        for name in sorted(wanted.keys() - present):
            one = wanted[name]
            nodes = ",".join(sorted(one.nodes))
            made = self._ordered(
                *("create", "reservation", f"ReservationName={name}", f"StartTime=uts{one.by}", "Duration=infinite"),
                *(f"Nodes={nodes}", "Users=root", "Flags=maint,ignore_jobs"),
            )
            words = f"reservation {name} is made: its nodes start nothing that could run beyond {clock(one.by)}"
            done.append((words, made))
        self._is_settled = not wanted and all(answer is True for _, answer in done)
        return carried_out(done)

    def _ordered(self, *arguments: str) -> PoolError | bool:
        try:
            self._commands.order("scontrol", *arguments)
        except PoolError as fault:
            return fault
        return True
