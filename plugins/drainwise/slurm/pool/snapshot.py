"""Turns Slurm's answers into the facts that the reclaim agent decides on. Pure: answers and a time in, a snapshot out.

Every job that runs counts as a pilot, as every claimed slot does on HTCondor; one without a report is silent. A job of
several nodes is one pilot with a piece on each. Those that cannot get an order are named with the reason. Cores are
Slurm's CPUs.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from drainwise.common.printable import one_line
from drainwise.facts.client_rules import ACCOUNT, USER, ClientRules
from drainwise.facts.errors import PoolUnreachable
from drainwise.facts.scope_rules import ScopeRules
from drainwise.facts.signs import NO_SIGN, is_missed
from drainwise.pilotad.attributes import PROCESSES
from drainwise.pilotad.report import CONTRADICTORY
from drainwise.pool.amounts import Amounts
from drainwise.pool.facts import Account, Piece, Pilot, Snapshot
from drainwise.pool.free_cores import Hole, usable_cores, waiting_jobs
from drainwise.pool.identity import IdentityRules, identity_of
from drainwise.pool.job_kinds import Place
from drainwise.pool.notices import counted
from drainwise.pool.scope import in_scope
from drainwise.slurm.jobs.admin_comment import lacks_directories, published_of, whole_report
from drainwise.slurm.jobs.job import SlurmJob, client_of, is_shortened, lease_end, run_name, traits_of
from drainwise.slurm.jobs.node_sign import signs_of
from drainwise.slurm.jobs.values import COMPLETING, CONFIGURING, PENDING, RUNNING, waits_for_room
from drainwise.slurm.pool.demand import SlurmDemand, WaitingTasks, by_whole_nodes, in_queue, kinds_in
from drainwise.slurm.pool.entitlement import by_preemption, entitled
from drainwise.slurm.pool.node_classes import NodeClasses, lists_of
from drainwise.slurm.pool.node_line import SlurmNode
from drainwise.slurm.pool.places import (
    closures_of,
    holdings,
    nodes_of_user,
    pieces_of,
    places_of,
)
from drainwise.slurm.pool.shares import Shares
from drainwise.slurm.pool.transport import Answers

HETEROGENEOUS = "a part of a heterogeneous job: an order would reach all of it ([scope NAME] multi_node lets it)"
SEVERAL_NODES = "a job of several nodes that has reported nothing: it may be no pilot, and an order would end all of it"
UNKNOWN_PIECES = "a job of several nodes, and it is not known what it has on each of them"
DRAINING_NODE = "the node takes no new jobs: the cores would help nobody"
NO_DIRECTORIES = "started without drainwise's directories, before it was installed or after a prolog that failed"

_LONGEST_REASON = 120
_MISSING_CORES = 64  # that sinfo may count beyond squeue: jobs end between the two


@dataclass
class _Use:
    in_use: int = 0
    wanted: int = 0
    pieces: int = 0


@dataclass(frozen=True)
class SiteRules:
    """What the site file says of jobs.

    grace: max_grace in s. A lease that was shortened to end within it counts as an order, whoever gave it: its cores
    come back as if it were ours. exposed: priorities that only runs have which Slurm may preempt at will. clients:
    which pilots are of which kind of client. scope: which jobs may be ordered; those of several nodes that have
    reported nothing only where it says so. identity: who sent a pilot, by the name and the comment of its job: its
    submitter wrote them, or a CE. preemption: whether Slurm's rule of preemption counts in place of shares.
    """

    grace: int = 86_400
    exposed: Collection[int] = ()
    clients: ClientRules | None = None
    scope: ScopeRules = field(default_factory=ScopeRules)
    identity: IdentityRules = field(default_factory=IdentityRules)
    preemption: bool = False


def snapshot_of(answers: Answers, site: SiteRules, now: int) -> Snapshot:
    """Return the snapshot that the answers make at `now` (UNIX s). Raises PoolUnreachable when they cannot be whole."""
    nodes, rules, shares = answers.nodes, answers.rules, answers.shares
    seen = _Seen(answers, site, now)
    pilots, places, would_run = seen.pilots(), seen.places(), seen.would_run
    pilots_on = {node for pilot in in_scope(pilots, site.scope) if not pilot.cannot for node in pilot.nodes}
    demand = SlurmDemand(seen.classes, rules, pilots_on, now, shares.lineage)
    users = seen.users()
    waiting = _waiting(would_run, seen.jobs, shares, demand)
    waiting = list(by_whole_nodes(waiting, lambda want, jobs: nodes_of_user(want, jobs, places, users)))
    out, runs = list[str](), frozenset[str]()
    if site.preemption:
        waiting, runs, out = entitled(waiting, pilots, rules, answers.qos, now)
    uses = _uses(seen.jobs, would_run, waiting, shares)
    kinds, left_out = kinds_in(waiting)
    wants = {id(one.want): one.want for one in waiting if one.tasks}.values()
    fitting = {  # what they have free serves a job that waits, if only as a part of what it needs
        place.name
        for place in places
        if any(place.node_class in want.classes and place.free.covers(want.needs) for want in wants)
    }
    accounts = _accounts(nodes, fitting, shares, uses, {shares.sharing_account(job.account) for job in would_run})
    if site.preemption:
        accounts, pilots = by_preemption(accounts, pilots, runs)
    holes = [Hole(node.idle, divisible=True) for node in nodes if node.idle and node.name in fitting]
    return Snapshot(
        taken=now,
        pilots=pilots,
        accounts=accounts,
        free_cores=float(usable_cores(holes, waiting_jobs(accounts))),
        user_priorities=shares.user_priorities(),
        notices=(
            *(f"job {job.label} is left out: {job.odd} can be no job's" for job in seen.odd),
            *_unclear(seen.jobs),
            *demand.notices(),
            *left_out,
            *out,
        ),
        kinds=kinds,
        places=places,
        closures=closures_of(seen.classes.whole, (node.name for node in nodes), now),
        versions=counted(version for _, version in seen.signs.values()),
    )


class _Seen:
    """The jobs that count, in which classes their nodes are, and what they have there."""

    def __init__(self, answers: Answers, site: SiteRules, now: int) -> None:
        self._answers, self._site, self._now = answers, site, now
        self.odd = [job for job in answers.jobs if job.odd]
        self.jobs = [job for job in answers.jobs if not job.odd]
        _require_whole(self.jobs, answers.nodes, len(self.odd))
        self.would_run = [job for job in self.jobs if COMPLETING not in job.states and _waits_for_room(job)]
        self.classes = NodeClasses(answers.nodes, answers.rules.reservations, lists_of(self.would_run), now)
        self.signs, self._awaited = signs_of(self.jobs, ((node.name, node.extra) for node in answers.nodes))
        self._draining = {node.name for node in answers.nodes if node.draining}
        self._on_one_node = [job for job in self.jobs if _holds_cores(job) and job.single]
        self._holds = holdings(self._on_one_node, answers.nodes, answers.rules)
        self._pieces = pieces_of(answers.allocations, self.classes.class_of, answers.rules)
        self._on_nodes, self._joined = _joined([job for job in self.jobs if job.node], self._pieces, site.scope)

    def pilots(self) -> tuple[Pilot, ...]:
        """Return the runs."""
        return tuple(pilot for pilot in map(self._run_of, self._on_nodes) if pilot is not None)

    def _run_of(self, job: SlurmJob) -> Pilot | None:
        """Return the run of a job; None for one that does not run, or that is only about to."""
        now, site = self._now, self._site
        completing = COMPLETING in job.states and bool(job.node)
        start = now if completing and job.start is None else job.start  # one that Slurm requeues has no start any more
        if start is None or not (job.runs or completing) or job.cores < 1:
            return None
        published, end, parts = published_of(job), lease_end(job), self._joined.get(job.number, ())
        cannot = _why_not(job, self._draining, self._joined, site.scope)
        if not cannot and not self._is_heard([one.node for one in parts] or [job.node], start):
            cannot = "" if _may_end_whole(job, site.scope) else NO_SIGN
        may_have_order = end is not None and cannot in {"", NO_DIRECTORIES, NO_SIGN} and not completing
        has_order = may_have_order and is_shortened(job) and (end or 0) <= now + site.grace
        files = published.report if published is not None and published.report.source == PROCESSES else None
        identity = site.identity
        tells = identity.comment is not None or identity.job_name is not None
        return Pilot(
            run=run_name(job.label, start),
            name=job.label,
            node=job.node,
            account=self._answers.shares.sharing_account(job.account),
            user=job.user,
            cores=job.cores,
            started=min(start, now) if completing else start,
            lease_end=now if completing else end,
            report=None if published is None else whole_report(published, {one.node: one.holds.cores for one in parts}),
            seen=None if published is None else published.seen,
            contradictory=published is not None and published.standing == CONTRADICTORY,
            deadline=end if has_order else None,
            leaving=completing or job.priority in site.exposed,
            cannot=cannot,
            place=job.node if job.node in self.classes.class_of and job.number in self._holds else "",
            holds=self._holds.get(job.number),
            identity=identity_of({}, (identity.comment, job.comment), (identity.job_name, job.name)) if tells else None,
            pieces=parts,
            client=client_of(job, site.clients).name,
            traits=traits_of(job) if site.scope or site.preemption else (),
            saved=None if files is None else files.last_checkpoint,
            next_save=None if files is None else files.next_checkpoint,
            billed=None if job.billed == job.cores else job.billed,
        )

    def _is_heard(self, nodes: Sequence[str], start: int) -> bool:
        """Decide whether one of a run's nodes gives signs of life; the first is waited for from its start (UNIX s)."""
        last = max((self.signs[node][0] for node in nodes if node in self.signs), default=0)
        return not self._awaited.issuperset(nodes) or not is_missed(max(last, start), self._now)

    def users(self) -> dict[str, set[str]]:
        """Return whose jobs of one node are on each."""
        users: dict[str, set[str]] = defaultdict(set)
        for job in self._on_one_node:
            users[job.node].add(job.user)
        return users

    def places(self) -> tuple[Place, ...]:
        """Return the nodes that have a class as places."""
        held: dict[str, list[Amounts]] = defaultdict(list)
        for job in self._on_one_node:
            held[job.node].append(self._holds[job.number])
        for piece in (one for some in self._pieces.values() for one in some):
            held[piece.node].append(piece.holds)
        is_known = (job.single or job.number in self._pieces for job in self.jobs if _holds_cores(job))
        is_all_held = not self.odd and all(is_known)
        return places_of(self._answers.nodes, self.classes.class_of, held, self._answers.rules, is_all_held)


def _accounts(
    nodes: Sequence[SlurmNode],
    fitting: Collection[str],
    shares: Shares,
    uses: Mapping[str, _Use],
    waiting: Collection[str],
) -> tuple[Account, ...]:
    """Return the accounts by name.

    fitting: the nodes where a job that waits fits into what is idle. What lies idle elsewhere is owed to who uses less
    than his share, if only beside what pilots give back there. It is no reason to let others keep more than their share
    of the rest. waiting: the accounts with a job that would run.
    """
    needs = {name: float(use.in_use + use.wanted) for name, use in uses.items()}
    own = shares.own(
        sum(node.cores for node in nodes), {name: need or float(name in waiting) for name, need in needs.items()}
    )
    # An account that Slurm's tree of shares lacks keeps what it has, and is owed no more.
    needs = {name: need if shares.knows(name) else float(uses[name].in_use) for name, need in needs.items()}
    of_all = shares.owed(sum(node.cores for node in nodes), needs)
    useful = shares.owed(sum(node.cores if node.name in fitting else node.allocated for node in nodes), needs)
    return tuple(
        Account(
            name,
            cores_in_use=float(use.in_use),
            cores_owed=useful[name] if use.in_use > useful[name] else of_all[name],
            cores_wanted=float(use.wanted),
            priority=shares.priority_of(name),
            cores_per_job=max(1.0, use.wanted / use.pieces) if use.pieces else 1.0,
            cores_share=own[name],
        )
        for name, use in sorted(uses.items())
    )


def _why_not(job: SlurmJob, draining: Collection[str], pieces: Mapping[int, Sequence[Piece]], scope: ScopeRules) -> str:
    """Say why a job cannot get an order, "" when it can."""
    if job.het is not None:
        return HETEROGENEOUS
    if not job.single and published_of(job) is None and not _may_end_whole(job, scope):
        return SEVERAL_NODES
    if not job.single and job.number not in pieces:
        return UNKNOWN_PIECES
    if all(node in draining for node in ([job.node] if job.single else [one.node for one in pieces[job.number]])):
        return DRAINING_NODE
    return NO_DIRECTORIES if lacks_directories(job.admin_comment, job.number, job.start) else ""


def _joined(
    jobs: Sequence[SlurmJob], pieces: Mapping[int, tuple[Piece, ...]], scope: ScopeRules
) -> tuple[Sequence[SlurmJob], Mapping[int, tuple[Piece, ...]]]:
    """Return the jobs, each heterogeneous one that may be ordered as one under its first component, and the pieces.

    Slurm changes and ends all components by that one's number. All must run, and the site must allow it for each.
    """
    components: dict[int, list[SlurmJob]] = defaultdict(list)
    for job in jobs:
        if job.het is not None:
            components[job.het].append(job)
    if not components or not scope.scopes:
        return jobs, pieces
    found, joined = [job for job in jobs if job.het is None], dict(pieces)
    for first, parts in components.items():
        parts.sort(key=lambda one: one.number)
        if parts[0].number != first or not all(
            one.runs and one.number in pieces and _may_end_whole(one, scope) for one in parts
        ):
            found += parts
            continue
        cores, nodes = (sum(getattr(one, name) for one in parts) for name in ("cores", "node_count"))
        told = [one.billed for one in parts if one.billed is not None]
        billed = sum(told) if len(told) == len(parts) else None  # a part is not the whole
        found.append(replace(parts[0], het=None, cores=cores, node_count=nodes, billed=billed))
        joined[first] = tuple(piece for one in parts for piece in pieces[one.number])
    return found, joined


def _may_end_whole(job: SlurmJob, scope: ScopeRules) -> bool:
    """Decide whether the site lets a job of several nodes that reports nothing be ordered."""
    facts = {USER: (job.user,), ACCOUNT: (job.account,), **dict(traits_of(job))}
    found = scope.scope_of(facts)
    return found is not None and found.multi_node and not scope.why_out(facts)


def _require_whole(jobs: Sequence[SlurmJob], nodes: Sequence[SlurmNode], odd: int) -> None:
    if not nodes:
        raise PoolUnreachable("incomplete answer: sinfo knows no nodes")
    allocated, seen = sum(node.allocated for node in nodes), sum(job.cores for job in jobs if _holds_cores(job))
    if not odd and allocated - seen > max(_MISSING_CORES, allocated / 2):
        raise PoolUnreachable(
            f"incomplete answer: squeue shows jobs on {seen} cores where sinfo has {allocated} in use; PrivateData=jobs"
            " hides them from all but root, SlurmUser and operators"
        )


def _holds_cores(job: SlurmJob) -> bool:
    """Decide whether its cores are taken: it runs, is about to, or is being ended (also when it will wait again)."""
    return bool(job.node) and bool(job.states & {RUNNING, COMPLETING, CONFIGURING, "STOPPED"})


def _waits_for_room(job: SlurmJob) -> bool | None:
    """Decide whether a job waits for cores, and not for something else (a limit, a hold, …); None: not known."""
    is_held = job.priority == 0  # the reason is written later
    if PENDING not in job.states or is_held:
        return False
    return waits_for_room(job.reason, job.planned, len(job.partitions) > 1)


def _unclear(jobs: Iterable[SlurmJob]) -> Iterator[str]:
    """Yield a sentence for each reason to wait that is not known."""
    found: dict[str, list[str]] = defaultdict(list)
    for job in jobs:
        if _waits_for_room(job) is None:
            found[job.reason].append(job.label)
    for reason, labels in found.items():
        shown = one_line(reason, _LONGEST_REASON)
        yield f"{len(labels)} waiting jobs, such as {labels[0]}, count as no demand: their reason is not known: {shown}"


def _waiting(
    would_run: Iterable[SlurmJob], jobs: Iterable[SlurmJob], shares: Shares, demand: SlurmDemand
) -> list[WaitingTasks]:
    """Return the demand of waiting jobs. Tasks beyond what their array may have running at a time are none."""
    running = Counter(job.array for job in jobs if RUNNING in job.states)
    found = []
    for job in would_run:
        want = demand.of(job)
        if want is not None:
            tasks = job.tasks if job.at_once is None else min(job.tasks, max(0, job.at_once - running[job.array]))
            found.append(WaitingTasks(job, shares.sharing_account(job.account), tasks, want, demand.tier(job)))
    return [_allowed(one, demand) for one in in_queue(found)]


def _allowed(one: WaitingTasks, demand: SlurmDemand) -> WaitingTasks:
    tasks = demand.allowed_tasks(one.job, one.want, one.tasks)
    return one if tasks == one.tasks else replace(one, tasks=tasks)


def _uses(
    jobs: Iterable[SlurmJob], would_run: Iterable[SlurmJob], waiting: Iterable[WaitingTasks], shares: Shares
) -> dict[str, _Use]:
    """Use and demand by account: of those that use or want anything. What can run nowhere is no demand."""
    uses: dict[str, _Use] = defaultdict(_Use)
    for job in jobs:
        if _holds_cores(job):
            uses[shares.sharing_account(job.account)].in_use += job.cores
    for account in {job.account for job in would_run}:
        uses[shares.sharing_account(account)]  # there, whatever it wants
    for one in waiting:
        use = uses[one.account]
        if one.want.classes:
            use.wanted += max(one.job.cores, one.want.cores * one.want.nodes) * one.tasks
            use.pieces += one.want.nodes * one.tasks
    return dict(uses)
