"""`drainwise launch` as a user of a test site runs it, in the site, beside a batch system's real daemons."""

from __future__ import annotations

import itertools
import json
import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, cast

from real_daemons import Site

BUCKETS = (64, 128, 256, 512, 1024)  # MB, each the memory of one bucket's jobs
CHAINS = 13
JOBS = len(BUCKETS) * (3 * CHAINS + 1)
USER = "alice"

_PLUGINS = Path(__file__).parents[1] / "plugins"
_BY_HAND = Path(__file__).parent / "launch_by_hand.py"
_PLACE = "/srv/plugins"
_LAUNCH_SECONDS = 100.0
_LOOK_SECONDS = 0.3  # a look costs half a dozen processes

Table = dict[str, object]


def chains(seed: int = 8) -> tuple[list[Table], dict[str, float]]:
    """200 jobs in 5 buckets, in no order: per bucket 13 chains of three, and one job after them all.

    With the pressure (s) of each chain's first job: all of them may start at once, so they start in its order.
    """
    dice = random.Random(seed)  # noqa: S311 - a test's order
    jobs: list[Table] = []
    pressures = {}
    for memory in BUCKETS:
        lengths = [100 * place for place in range(1, CHAINS + 1)]
        dice.shuffle(lengths)
        for chain, length in enumerate(lengths):
            before: list[str] = []
            for step in ("a", "b", "c"):
                name = f"m{memory}-{chain}{step}"
                jobs.append(job(name, ["true"], memory, before, float(length)))
                before = [name]
            pressures[f"m{memory}-{chain}a"] = 3.0 * length + 1
        ends = [f"m{memory}-{chain}c" for chain in range(CHAINS)]
        jobs.append(job(f"m{memory}-end", ["true"], memory, ends, 1.0))
    dice.shuffle(jobs)
    return jobs, pressures


def job(
    name: str,
    command: list[str],
    memory: int = 64,
    after: Iterable[str] = (),
    expected: float = 1.0,
    **resources: object,
) -> Table:
    """One job of a launch file."""
    needs = {"mem": memory, **resources}
    return {"name": name, "command": command, "resources": needs, "after": list(after), "expected": expected}


@dataclass(frozen=True)
class Accounted:
    """What a batch system's accounting has of a job: its number, when it began (UNIX s)."""

    number: float
    began: float


class BatchSystem(Protocol):
    """A batch system as its administrator sees it, beside the launcher. Names are those of the launch file."""

    @property
    def site(self) -> Site:
        """Where it runs."""

    @property
    def backend(self) -> str:
        """What the launcher calls it."""

    @property
    def table(self) -> Mapping[str, object]:
        """Its table in a launch file."""

    @property
    def slack(self) -> float:
        """Seconds by which a job may begin before one that was more urgent: the batch system's own rounds."""

    def queued(self, waiting: bool) -> dict[str, str]:
        """Name → number of the jobs that wait, or run."""

    def end(self, number: str) -> None:
        """End a job as its owner does by hand."""

    def accounted(self) -> list[tuple[str, Accounted]]:
        """Name and record of every run of a job that has ended."""


@dataclass
class Launched:
    """A launch that is under way, and the most of its jobs that were seen waiting, by bucket."""

    result: Future[tuple[int, str, str]]
    waiting: Counter[str] = field(default_factory=Counter)

    def end(self, look: Callable[[], Iterable[str]] | None = None) -> tuple[int, dict[str, Table], str]:
        """Wait for its end, looking at the names of those that wait; exit code, the jobs by `--json`, what it said."""
        while not wait([self.result], _LOOK_SECONDS if look else None).done:
            self._count(look() if look else ())
        code, out, said = self.result.result()
        found = cast("list[Table]", json.loads(out)["jobs"]) if out else []
        return code, {str(one["name"]): one for one in found}, said

    def _count(self, seen: Iterable[str]) -> None:
        for bucket, count in Counter(name.partition("-")[0] for name in seen).items():
            self.waiting[bucket] = max(self.waiting[bucket], count)


class LaunchOnSite:
    """`drainwise launch` in a site, and a batch system to look at."""

    def __init__(self, system: BatchSystem) -> None:
        self.system, self._site = system, system.site
        self._threads = ThreadPoolExecutor(4)
        self._site.copy_in(str(_PLUGINS), _PLACE)

    def launch(self, name: str, jobs: list[Table], **settings: object) -> Launched:
        """Start it on these jobs, in a file of this name in the user's home; called again, it goes on."""
        backend = self.system.backend
        table = {**self.system.table, **settings}
        document = {"backend": backend, "backends": {backend: table}, "jobs": jobs}
        path = f"/home/{USER}/{name}.json"
        self._site.run(["sh", "-c", 'cat >"$0"', path], user=USER, stdin=json.dumps(document))
        return Launched(self._threads.submit(self._run, ["python3", "-B", "-m", "drainwise", "launch", path, "--json"]))

    def _run(self, argv: list[str]) -> tuple[int, str, str]:
        environment = {"PYTHONPATH": _PLACE}
        ran = self._site.run(argv, user=USER, check=False, timeout=_LAUNCH_SECONDS, environment=environment)
        return ran.returncode, ran.stdout, ran.stderr

    def by_hand(self, resources: Table) -> list[str]:
        """Start jobs without the launcher and turn their priorities round; the names in the order meant then."""
        script, place = f"{_PLACE}/by_hand.py", f"/home/{USER}/by-hand"
        self._site.copy_in(str(_BY_HAND), script)
        self._site.run(["mkdir", "-p", place], user=USER)
        words = [self.system.backend, json.dumps(dict(self.system.table)), json.dumps(resources), place]
        environment = {"PYTHONPATH": _PLACE}
        said = self._site.run(["python3", "-B", script, *words], user=USER, environment=environment).stdout
        return cast("list[str]", json.loads(said))

    def signal_launcher(self, name: str, signal: str) -> None:
        """Send the launcher of this file a signal, KILL or INT."""
        # `timeout`, below which it runs, has the same words.
        words = f"^python3 -B -m drainwise launch /home/{USER}/{name}[.]json"
        self._site.run(["pkill", f"-{signal}", "-f", words])

    def number(self, name: str, waiting: bool, seconds: float = 30.0) -> str:
        """The number of a job, as soon as it waits, or runs."""
        state = "wait" if waiting else "run"
        return self._site.wait_for(lambda: self.system.queued(waiting).get(name), seconds, f"{name} to {state}") or ""

    def done(self, count: int, seconds: float = 30.0) -> None:
        """Wait until so many runs are in the accounting."""
        self._site.wait_for(lambda: len(self.system.accounted()) >= count, seconds, f"{count} jobs in the accounting")

    def close(self) -> None:
        """Wait for what is under way."""
        self._threads.shutdown()


def handed_over_wrongly(records: Mapping[str, Accounted], pressures: Mapping[str, float]) -> list[str]:
    """Who of a bucket was handed over, by its number, before one of higher pressure."""
    return [
        f"{after} before {before}"
        for before, after in _pairs(pressures)
        if records[before].number > records[after].number
    ]


def begun_wrongly(records: Mapping[str, Accounted], pressures: Mapping[str, float], slack: float) -> float:
    """The share of pairs of a bucket that began the other way round than by pressure, by more than `slack` s.

    When a job begins is up to the batch system's rounds and to how busy the machine is: a half would be chance.
    """
    late = [records[before].began - records[after].began > slack for before, after in _pairs(pressures)]
    return sum(late) / len(late)


def _pairs(pressures: Mapping[str, float]) -> list[tuple[str, str]]:
    """All pairs of one bucket, the one with the higher pressure first."""
    pairs: list[tuple[str, str]] = []
    for memory in BUCKETS:
        ranked = sorted((one for one in pressures if one.startswith(f"m{memory}-")), key=lambda one: -pressures[one])
        pairs += itertools.combinations(ranked, 2)
    return pairs
