"""Partial return on a node: what the cron says of returned cores, what the update hook tells the pilot.

A claim that is used again keeps inside the startd what was published of the run before, and a value that is merely not
printed any more stays. So what the cron says names its run and ages, and nothing returned is printed as such.

The hook tells what the site asks, and which cores the pilot may use again. The slot's refreshed ad has expressions
where a figure depends on others, so what is really free is worked out here, out of the lists that the startd made:
START looks at the same ones. A list of the times of all statements tells whether the startd had this pilot's last one
when it made them; before, nothing is acknowledged.

Who goes on using what it stated as returned is measured: in two looks in a row at the processes of its job, the CPU
time since the look before. Then nothing that its owner returns is lent on this node any more. Nobody is ended.
"""

from __future__ import annotations

from drainwise.htcondor.node import LENDS_NO_MORE, RETURN_ASKED, RETURNED_BY
from drainwise.htcondor.node.cron_state import kept_lines, replace_file
from drainwise.node.ad_text import literals, raw_values, string, whole
from drainwise.node.hook import say
from drainwise.pilotad.attributes import REPORTED_BY
from drainwise.pilotad.observation import is_number
from drainwise.pilotad.partial_return import PartialReturn, ReturnedPart, acknowledgement, returned_part

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from drainwise.htcondor.node.job_directories import JobSandbox
    from drainwise.node.payloads.observer import SeenJob
    from drainwise.pilotad.partial_return import Acknowledgement
    from drainwise.pilotad.report import PilotReport

_SLOTS = ("slot1", "slot2")
_CLAIMED, _LENT, _SINCE = "ChildCpus", "ChildPilotLentCpus", "ChildPilotReturnedSince"
_LISTS = tuple(f"{slot}_{name}" for slot in _SLOTS for name in (_CLAIMED, _LENT, _SINCE))
_OWN = ("GlobalJobId", "JobStart", "Cpus", "TotalCpus", "PilotReturnedCpus", "PilotReturnedSince")
_SECOND = "slot2_ChildCpus"
_LENT_CPUS = (
    'PilotLentCpus = ifThenElse((MY.PilotReturnedBy =?= strcat(MY.GlobalJobId, "@", MY.JobStart) &&'
    " MY.PilotReturnedAt + {} > time() && isInteger(MY.PilotReturnedCpus)) =?= true,"
    " max({{0, min({{MY.PilotReturnedCpus, MY.Cpus - 1}})}}), 0)"
)
_LENT_MEMORY = (
    "PilotLentMemory = ifThenElse(MY.PilotLentCpus > 0 && isInteger(MY.PilotReturnedMemory),"
    " max({0, min({MY.PilotReturnedMemory, MY.Memory * MY.PilotLentCpus / MY.Cpus})}), 0)"
)
_LOOKS = 2  # in a row at which a job must have worked on more than it kept


class OwnersRecord:
    """The owners whose pilots went on using what they had returned, since when (UNIX s); `file` keeps them for good.

    age: for how long (s) the node believes what was read of returned cores.
    """

    def __init__(self, file: str, age: int = 0) -> None:
        self._file, self.age = file, age
        rows = [line.split(" ") for line in kept_lines(file) or ()]
        self._before = {int(row[0]): int(row[1]) for row in rows if len(row) == 2 and all(map(is_number, row))}
        self._since = dict(self._before)

    def since(self, job: JobSandbox, seen: SeenJob | None, now: int) -> int | None:
        """Return since when nothing of the owner of this job is lent, None where it is; seen: of its processes."""
        if job.uid not in self._since and seen is not None and seen.over >= _LOOKS:
            self._since[job.uid] = now
            say(f"{job.slot}: the pilot used cores that it had returned: nothing of uid {job.uid} is lent any more")
        return self._since.get(job.uid)

    def remember(self) -> None:
        """Keep what is new for the next round, as a whole or not at all; raises OSError."""
        if self._since != self._before:
            replace_file(self._file, "".join(f"{uid} {since}\n" for uid, since in self._since.items()))


def stated_part(report: PilotReport | None, job: JobSandbox, now: int, heartbeat_limit: int) -> ReturnedPart | None:
    """Return what a report is believed to have returned at `now` (UNIX s); None where it states nothing.

    heartbeat_limit: s a heartbeat may be old. How much it is, the startd bounds by what it knows of the slot itself.
    """
    if report is None or report.returned_cores is None:
        return None
    return returned_part(report, job.cores, None, now, heartbeat_limit, job.started)


def returned_by(part: ReturnedPart | None, job: JobSandbox, since: int | None, age: int) -> str:
    """Return the lines on what a run has returned: its name where that counts. since: see `OwnersRecord.since`.

    Expressions say what of it is lent: at least one core stays with the pilot, and no more memory goes than belongs to
    the cores. They are published here and not by the node's configuration, over which somebody with level WRITE can
    set attributes. A claim that is used again keeps the values of the run before: so they ask for their run, and they
    are worth nothing `age` seconds after they were read.
    """
    counts = since is None and part is not None and part.cores > 0
    run = f'"{job.job}@{job.started}"' if counts else "undefined"
    lends_no_more = "undefined" if since is None else since
    return f"{RETURNED_BY} = {run}\n{LENDS_NO_MORE} = {lends_no_more}\n{_LENT_CPUS.format(age)}\n{_LENT_MEMORY}"


def real_cores(ad: bytes, total: int | None) -> int | None:
    """Return the node's cores where its startd has `total`: half of them where it has the second slot over the first.

    ad: of one of its slots, as the startd wrote it. None where they are not known.
    """
    return total // 2 if total is not None and raw_values(ad, (_SECOND,)) else total


def wish_and_answer(ad: bytes) -> tuple[PartialReturn | None, Acknowledgement | None]:
    """Return what the site asks of the run in a slot, and its acknowledgement of the pilot's last statement.

    None for nothing; there is no acknowledgement while the startd does not show that statement in its lists.
    ad: the slot's, as the startd wrote it.
    """
    slot = literals(ad, (*_OWN, REPORTED_BY, RETURN_ASKED))
    run = f"{string(slot, 'GlobalJobId')}@{whole(slot, 'JobStart')}"
    asked = asked_of(run, string(slot, RETURN_ASKED) or "")
    lists = {name: [*_numbers(raw)] for name, raw in raw_values(ad, _LISTS).items()}
    sums = {name: sum(sum(lists.get(f"{one}_{name}", ())) for one in _SLOTS) for name in (_CLAIMED, _LENT)}
    known = {moment for one in _SLOTS for moment in lists.get(f"{one}_{_SINCE}", ())}
    since, cores, total = whole(slot, "PilotReturnedSince"), whole(slot, "Cpus"), whole(slot, "TotalCpus")
    real = real_cores(ad, total)
    is_its_own = _SECOND in lists and since in known and string(slot, REPORTED_BY) == run
    if not since or not cores or not real or not is_its_own or sums[_CLAIMED] < cores:
        return asked, None
    borrowed = max(0, sums[_CLAIMED] - real)
    stated = ReturnedPart(min(whole(slot, "PilotReturnedCpus") or 0, cores - 1), 0, since)
    # What others hold of its cores stays returned when nobody asks for it any more: else its owner would pay for it.
    held = min(stated.cores, borrowed)
    wish = PartialReturn(held) if held > (0 if asked is None else asked.cores) else asked
    return wish, acknowledgement(stated, cores, max(0, borrowed - sums[_LENT]) + held)


def asked_of(run: str, value: str) -> PartialReturn | None:
    """Return what stands for a run in the text of PILOT_RETURN, the last of several entries; None for nothing."""
    for word in reversed(value.split()):
        name, _, figures = word.rpartition("=")
        numbers = [int(one) for one in figures.split(":") if is_number(one)]
        if name == run and len(numbers) == 3:
            cores, by, chunk = numbers
            return PartialReturn(cores, by or None, max(1, chunk))
    return None


def _numbers(raw: str) -> Iterator[int]:
    """Yield the whole numbers of a list as ClassAds write it; what is none (a job that states nothing) counts as 0."""
    for word in raw.strip("{} \t").split(","):
        yield int(word) if is_number(word.strip()) else 0
