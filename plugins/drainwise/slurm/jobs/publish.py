"""Publishes a pilot's report as its job's AdminComment: which jobs need a new one, and the batch that sets them all.

What stands there is seen in the same round, so nothing is written that is there already, nothing is remembered that
could be wrong after a restart, and what could not be written is tried again by itself. A comment that is somebody
else's stays.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from drainwise import __version__
from drainwise.facts.errors import ActionRefused, PoolUnreachable
from drainwise.pilotad.observation import Observation, observed_report
from drainwise.pilotad.report import CONTRADICTORY, INCOMPLETE, STALE, PilotReport, bounded, standing
from drainwise.slurm.jobs.admin_comment import (
    LONGEST,
    LONGEST_OF_ALL,
    OTHERS,
    NodeReport,
    Published,
    comment_text,
    is_ours,
    published_of,
)
from drainwise.slurm.jobs.commands import SlurmCommands, is_no_answer
from drainwise.slurm.jobs.job import SlurmJob

FOREIGN = "its AdminComment is somebody else's and left alone; the pilot counts as silent"

# All that our comments are made of: scontrol splits its input at blanks and knows quotes, and nothing else.
_COMMENT = re.compile(r"\{[a-zA-Z0-9_\".,:+{}-]+\}")
_HEARTBEAT = re.compile(r'(?<="heartbeat":)(\d{1,12})')
_LABEL = re.compile(r"\d{1,10}(_\d{1,10})?")
# A job that has ended between the query and this order is nothing to report.
_ENDED = re.compile(r"(Invalid job id specified|Job has already finished|Job/step already completing or completed)")


def is_publishable(facts: SlurmJob) -> bool:
    """Decide whether a run can have a comment of any node of its: of several nodes only the first one speaks for it."""
    return facts.single and facts.runs and facts.start is not None


def wanted_comment(
    facts: SlurmJob,
    node: str,
    cores: int,
    report: PilotReport | None,
    now: int,
    heartbeat_limit: int,
    seen: Observation | None = None,
    refuted: bool = False,
    is_first: bool = True,
    own_cores: int | None = None,
    saves: tuple[int, int] = (0, 0),
) -> str | None:
    """Return the comment that this report makes; None when it cannot be published. Pure.

    seen: what the node saw of its payloads; without a report, and for one that is old or lacks a figure, that counts.
    refuted: whether the report contradicts what the node sees. cores: of the run, or of it on a node that is not the
    first one. is_first: whether the node is the run's only or first one. Another node's report stands behind the first
    one's, and waits for that. own_cores: of the run on this node; the first one's report is about these where others
    report, too. saves: when a job that does not report last wrote a checkpoint, UNIX s, and s between two; 0: unknown.
    """
    stands = None if facts.single else published_of(facts)
    if stands is not None and stands.others and is_first and own_cores:
        cores = own_cores
    if seen is not None and report is not None:
        is_weak = standing(report, now, heartbeat_limit, facts.start, cores) in {STALE, INCOMPLETE}
        seen = seen if is_weak else None
    if seen is not None:
        report = observed_report(seen, *saves)
    if report is None:
        return None
    how = CONTRADICTORY if refuted else standing(report, now, heartbeat_limit, facts.start, cores)
    # The run's age and lease bound what readers compute: here they would make every round a change.
    known = bounded(report, cores, 0, None, now)
    if not is_first:
        return None if stands is None else _with_part(stands, facts, NodeReport(node, known, how), heartbeat_limit)
    others = stands.others if stands is not None else ()
    return _text(Published(facts.number, facts.start or 0, node, known, how, seen, others, __version__))


def _text(published: Published) -> str | None:
    try:
        return comment_text(published)
    except ValueError:
        return None


def _with_part(stands: Published, facts: SlurmJob, part: NodeReport, heartbeat_limit: int) -> str | None:
    """Return what stands there, the first node's report, with the one of another node.

    As it stands where this node's says nothing new and is not old.
    """
    others, first = {one.node: one for one in stands.others}, (stands.job, stands.start, stands.node)
    old = others.get(part.node)

    def with_it(report: PilotReport) -> str | None:
        every = {**others, part.node: NodeReport(part.node, report, part.standing)}
        behind = tuple(one for _, one in sorted(every.items()))
        return _text(Published(*first, stands.report, stands.standing, stands.seen, behind, stands.version))

    if old is not None and part.report.heartbeat - old.report.heartbeat < heartbeat_limit / 2:
        values = [getattr(part.report, name) for name in PilotReport.__match_args__[1:]]
        same = with_it(PilotReport(old.report.heartbeat, *values))
        if same == facts.admin_comment:
            return same
    return with_it(part.report)


def is_news(comment: str, stands: Sequence[str], heartbeat_limit: int) -> bool:
    """Decide whether a comment is to be set: it says something new, or the one that stands there gets old.

    A pilot that writes the same again and again lives, but each time would be a write for slurmctld.
    """
    before, seen, behind = _HEARTBEAT.split(comment, 1)
    parts = [_HEARTBEAT.split(one, 1) for one in stands if _HEARTBEAT.search(one)]
    return comment not in stands and not any(
        (one[0], one[2]) == (before, behind) and int(seen) - int(one[1]) < heartbeat_limit / 2 for one in parts
    )


def is_foreign(facts: SlurmJob) -> bool:
    """Decide whether somebody else's comment stands there, or may."""
    return not all(is_ours(comment) for comment in facts.comments)


def batch(comments: Iterable[tuple[str, str]]) -> str:
    """Return the lines for scontrol's standard input; (label, comment) each.

    Raises ValueError unless every byte is one of ours: no blank, no line end, no backslash, quotes in pairs.
    """
    lines = []
    for label, comment in comments:
        if (
            _LABEL.fullmatch(label) is None
            or _COMMENT.fullmatch(comment) is None
            or comment.count('"') % 2
            or not is_ours(comment)
            or len(comment) > (LONGEST_OF_ALL if OTHERS in comment else LONGEST)
        ):
            raise ValueError(f"not a comment of ours for job {label[:20]!a}")
        lines.append(f"update JobId={label} AdminComment={comment}\n")
    return "".join(lines)


def publish(commands: SlurmCommands, comments: dict[str, str]) -> None:
    """Set all comments (label → comment) in one run. Raises PoolUnreachable or ActionRefused."""
    answer = commands.start("scontrol", "--oneliner", stdin=batch(comments.items())).answer()
    if answer.code == 0:
        return
    if is_no_answer(answer):
        raise PoolUnreachable(answer.said)
    # scontrol goes on after a line that failed.
    if not _ENDED.search(answer.said):
        raise ActionRefused(answer.said or f"scontrol ended with {answer.code}")
