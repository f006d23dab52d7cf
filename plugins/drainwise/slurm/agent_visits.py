"""Being the user of each job once a round: the site's word is brought to the job, its pilot's report is fetched.

Here is decided what each child is to do and how much patience a user has left; what it does is in agent_errand.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from drainwise.pilotad.site_ad import SiteAd
from drainwise.slurm.agent_errand import Errand, Found, answer_in, run_errands
from drainwise.slurm.agent_jobs import Key, NodeJob
from drainwise.slurm.agent_publish import is_foreign, is_publishable
from drainwise.slurm.agent_user import Identity, Outcome, Send, Users

USER_SECONDS = 2.0
"""How long a round waits for all users' files together."""
JOBS_TOGETHER = 32
"""Jobs of a user for which one child is made: what holds a child up costs these, not all of the user's."""
WORK_DIR_PERIOD = 300
"""Seconds until the WorkDir of a job that says nothing is looked at again: it may lie on a busy file server."""
SLOW_PERIOD = 600
"""Seconds in which no WorkDir of a user is looked at after one did not answer."""

_NOTHING = Found(None, "", "")


class Visits:
    """The children of all rounds, and which users' file servers are slow.

    note: called with a job and what is wrong with what is its user's. fault: called with `user UID` and what was wrong
    with the child, "" when nothing is any more. close: descriptors that a child must not keep open.
    """

    def __init__(
        self, note: Callable[[NodeJob, str], None], fault: Callable[[str, str], None], close: tuple[int, ...] = ()
    ) -> None:
        self._note, self._fault = note, fault
        self._users = Users(close)
        self._slow_until: dict[int, int] = {}

    def visit(
        self, jobs: Mapping[Key, NodeJob], words: Mapping[Key, SiteAd | None], now: int, read: bool
    ) -> dict[Key, Found]:
        """Bring `words` to their jobs (None: no `.site.ad`) and, if `read`, fetch the reports; `now` in UNIX s.

        A job without a word is passed over, and so is one whose user's children do not end.
        """
        by_user: dict[Identity, list[Errand]] = {}
        by_name: dict[str, NodeJob] = {}
        seen: Counter[int] = Counter()
        places = Counter((job.lease.uid, job.lease.work_dir) for job in jobs.values())
        for number, (key, job) in enumerate(jobs.items()):
            lease, facts = job.lease, job.facts
            stuck = self._users.lost(lease.uid)
            if facts is None or key not in words or stuck > 1:
                continue
            wanted = read and is_publishable(facts) and not is_foreign(facts)
            look = wanted and not stuck and now >= max(job.look_again, self._slow_until.get(lease.uid, 0))
            errand = Errand(
                key=str(number),
                tree=job.tree,
                uid=lease.uid,
                word=words[key],
                cores=lease.cores or facts.cores if wanted else None,
                work_dir=lease.work_dir if look and lease.work_dir.startswith(b"/") else b"",
                shared=places[lease.uid, lease.work_dir] > 1,
                started=facts.start or lease.started,
            )
            by_name[errand.key] = job
            part = seen[lease.uid] // JOBS_TOGETHER
            seen[lease.uid] += 1
            by_user.setdefault(Identity(lease.uid, lease.gid, part), []).append(errand)
        outcomes = self._users.run({who: _errands(errands) for who, errands in by_user.items()}, USER_SECONDS)
        found = dict(answer_in(line) for outcome in outcomes.values() for line in outcome.lines)
        self._judge_users(outcomes, now)
        for who, errands in by_user.items():
            for errand in errands:
                answer = found.get(errand.key, _NOTHING)
                self._take_in(by_name[errand.key], errand, answer, not outcomes[who].fault, now)
        return {by_name[name].key: answer for name, answer in found.items()}

    def _judge_users(self, outcomes: Mapping[Identity, Outcome], now: int) -> None:
        faults: dict[int, str] = {}
        for who, outcome in outcomes.items():
            if outcome.fault:
                faults[who.uid] = outcome.fault
                self._slow_until[who.uid] = now + SLOW_PERIOD
        for uid in {who.uid for who in outcomes}:
            if uid in faults or now >= self._slow_until.get(uid, 0):
                self._fault(f"user {uid}", faults.get(uid, ""))

    def _take_in(self, job: NodeJob, errand: Errand, answer: Found, is_whole: bool, now: int) -> None:
        """What an answer says about its job; is_whole: whether the child did all of its work."""
        if answer.report is not None or (errand.work_dir and is_whole):
            job.refused = ""  # all was looked at
        if errand.work_dir and answer.report is None:
            job.look_again = now + WORK_DIR_PERIOD
        job.refused = answer.refused or job.refused
        job.reports = job.reports or answer.report is not None
        self._note(job, job.refused)
        self._note(job, answer.fault)


def _errands(errands: list[Errand]) -> Callable[[Send], None]:
    return lambda send: run_errands(errands, send)
