"""Verdicts that a task must not go on without its user: each of JEDI's reasons with its name and its figures.

Pure. A rule that lacks what it looks at says nothing; it never guesses. Source: JEDI, special task status: exhausted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from drainwise_tasks.estimate import quantities
from drainwise_tasks.estimate.parameters import Parameters
from drainwise_tasks.estimate.records.record import Finished
from drainwise_tasks.estimate.scouts import Figure, figure_called, in_hs06
from drainwise_tasks.estimate.settings import Settings
from drainwise_tasks.estimate.spread import percentile

BROKERAGE, QUEUED, EXTERNAL = "brokerage_failing", "too_many_queued", "external_failures"
RETRIED, LEAK, SHORT, CPU_TIME = "retried_and_failing", "memory_leak", "many_short_jobs", "cpu_time_off"
RAM, EFFICIENCY, ABUSE, OFF = "ram_count_off", "low_cpu_efficiency", "cpu_abuse", "estimate_off"
LONG_JOB = 24 * 3600.0
"""Seconds above which jobs that take more CPU time than was said are worth a user's attention."""
_TENTHS = 10


@dataclass(frozen=True)
class Evidence:
    """The evidence for a verdict.

    jobs: the good ones among the first. ended, failed: all jobs of the task so far. external: of the failed ones.
    work, failed_work: HS06 s of all jobs and of the failed ones.
    """

    jobs: Sequence[Finished]
    figures: Sequence[Figure]
    ended: int
    failed: int
    external: int
    work: float = 0.0
    failed_work: float = 0.0


@dataclass(frozen=True)
class TaskVerdict:
    """One rule that speaks. `figures` in words; remove: parameters that are to be dropped instead of stopping it.

    excuse: why the task may go on all the same.
    """

    rule: str
    figures: str
    remove: tuple[str, ...] = ()
    excuse: str = ""


Rule = Callable[[Evidence, Parameters, Settings], "TaskVerdict | None"]


def verdicts(evidence: Evidence, task: Parameters, settings: Settings) -> tuple[TaskVerdict, ...]:
    """Return all rules that apply, in a fixed order; none: the task may go on."""
    few = (
        settings.new_jobs_cutoff is not None and task.new_jobs is not None and task.new_jobs <= settings.new_jobs_cutoff
    )
    rules = RULES_OF_THE_TASK if few else RULES
    found = [rule(evidence, task, settings) for rule in rules]
    return tuple(verdict for verdict in found if verdict is not None)


def is_exhausted(found: Sequence[TaskVerdict]) -> bool:
    """Decide whether the task must stop: a rule applies without an excuse, which removing parameters cannot answer."""
    return any(not verdict.remove and not verdict.excuse for verdict in found)


def _brokerage(evidence: Evidence, task: Parameters, settings: Settings) -> TaskVerdict | None:  # noqa: ARG001
    most = settings.max_broker_failures
    if most is None or task.broker_failures <= most:
        return None
    return TaskVerdict(BROKERAGE, f"no site found {task.broker_failures:g} times in a row, more than {most:g}")


def _queued(evidence: Evidence, task: Parameters, settings: Settings) -> TaskVerdict | None:  # noqa: ARG001
    cap = settings.cap_running_user_jobs
    if cap is None or task.queued_jobs <= 2 * cap:
        return None
    return TaskVerdict(
        QUEUED, f"its user has {task.queued_jobs:g} queued jobs, more than 2·CAP_RUNNING_USER_JOBS {cap:g}"
    )


def _external(evidence: Evidence, task: Parameters, settings: Settings) -> TaskVerdict | None:
    most, times = settings.max_external_failures, max(task.external_failures, evidence.external)
    if most is None or times <= most:
        return None
    return TaskVerdict(EXTERNAL, f"{times:g} failures from outside, such as data access, more than {most:g}")


def _retried(evidence: Evidence, task: Parameters, settings: Settings) -> TaskVerdict | None:
    least = settings.task_max_attempt
    if least is None or task.attempts < least:
        return None
    why = _failing(evidence, settings) or _computing_little(evidence, settings)
    return TaskVerdict(RETRIED, f"tried {task.attempts:g} times, at least {least:g}, and {why}") if why else None


def _failing(evidence: Evidence, settings: Settings) -> str:
    """Say how many of its jobs fail, or how much of their work is lost; "" when that is no more than it may be."""
    # The first jobs alone are no rate.
    if 2 * evidence.ended < settings.scouts:
        return ""
    most = 100 * settings.max_failure_rate
    share = 100 * evidence.failed / max(1, evidence.ended)
    if share > most:
        return f"{evidence.failed} of {evidence.ended} jobs failed, {share:.0f} %, more than {most:g} %"
    score = 100 * evidence.failed_work / evidence.work if evidence.work > 0 else 0.0
    if score <= most:
        return ""
    words = f"{score:.0f} % of the HS06 s of {evidence.ended} jobs went into the {evidence.failed} that failed"
    return f"{words}, more than {most:g} %"


def _computing_little(evidence: Evidence, settings: Settings) -> str:
    figure, least = figure_called("cpuEfficiency", evidence.figures), settings.min_cpu_efficiency
    if figure is None or least is None or figure.value >= least:
        return ""
    return f"CPU efficiency {figure.value:.0f} % in the middle of {figure.jobs} finished jobs, less than {least:g} %"


def _leak(evidence: Evidence, task: Parameters, settings: Settings) -> TaskVerdict | None:  # noqa: ARG001
    most = settings.scout_mem_leak_per_core
    leaks = _known([quantities.leak_per_core(job) for job in evidence.jobs])
    if most is None or not leaks or sum(leaks) / len(leaks) <= most:
        return None
    mean = sum(leaks) / len(leaks)
    return TaskVerdict(
        LEAK, f"memory grows by {mean:.3g} kB/s per core over {len(leaks)} jobs, more than {most:g} kB/s"
    )


def _short(evidence: Evidence, task: Parameters, settings: Settings) -> TaskVerdict | None:
    limit, cut = 60 * settings.scout_short_exectime, settings.scout_thr_short
    short = [job for job in evidence.jobs if job.seconds <= limit and not job.scratch]
    counted = len(evidence.jobs)
    many = bool(short) and len(short) >= counted * settings.scout_num_short / _TENTHS
    if not many or cut is None or task.new_jobs is None or task.new_jobs <= cut:
        return None
    copied = sum(job.seconds <= limit and job.scratch for job in evidence.jobs)
    beside = f", {copied} more that were forced to copy to scratch" if copied else ""
    figures = (
        f"{len(short)} of {counted} jobs ran for at most {settings.scout_short_exectime:g} min{beside}, "
        f"and {task.new_jobs:g} new ones are expected, more than {cut:g}"
    )
    stated = (("nFilesPerJob", task.n_files_per_job), ("nGBPerJob", task.n_gb_per_job))
    remove = tuple(name for name, value in stated if value is not None)
    if settings.scout_change_sr and remove:
        return TaskVerdict(SHORT, figures, remove)
    if task.input_ratio > 1 and task.input_ratio * max(job.seconds for job in short) > limit:
        return None  # new jobs have more input than scouts and run longer
    return TaskVerdict(SHORT, figures)


def _cpu_time_off(evidence: Evidence, task: Parameters, settings: Settings) -> TaskVerdict | None:
    figure, factor = figure_called("cpuTime", evidence.figures), settings.scout_wrong_cputime_threshold
    if figure is None or not figure.jobs or not figure.before or not factor or not evidence.jobs:
        return None
    value, before = in_hs06(figure.value, figure.unit), in_hs06(figure.before, figure.unit)
    longest = max(job.seconds for job in evidence.jobs)
    if value > factor * before and longest > LONG_JOB:
        return TaskVerdict(
            CPU_TIME,
            f"cpuTime {value:.4g} HS06 s per event from {figure.jobs} jobs is more than {factor:g} times the preset "
            f"{before:.4g}, and a job ran for {longest / 3600:.1f} h",
        )
    far = settings.outsized_factor
    if far and max(value, before) > far * max(min(value, before), 1e-12) and not task.cpu_time_unit.endswith("Fixed"):
        return TaskVerdict(
            OFF, f"cpuTime {value:.4g} HS06 s per event from {figure.jobs} jobs, preset {before:.4g}: {far:g} times off"
        )
    return None


def _ram_off(evidence: Evidence, task: Parameters, settings: Settings) -> TaskVerdict | None:
    figure, most = figure_called("ramCount", evidence.figures), 1000 * settings.ram_thr_exausted
    if figure is None or not figure.jobs or task.ram_count is None or not task.ram_count < most < figure.value:
        return None
    return TaskVerdict(
        RAM,
        f"ramCount {figure.value:g} MB per core from {figure.jobs} jobs is above {most:g} MB, "
        f"the preset {task.ram_count:g} MB is below",
    )


def _efficiency(evidence: Evidence, task: Parameters, settings: Settings) -> TaskVerdict | None:
    found = _known([quantities.cpu_efficiency(job) for job in evidence.jobs])
    if not found:
        return None
    middle = percentile(found, 50)
    excuse = _busy_with_io(evidence, settings)
    if task.min_cpu_efficiency is not None:
        if middle >= task.min_cpu_efficiency:
            return None
        return TaskVerdict(
            EFFICIENCY,
            f"CPU efficiency {middle:.0f} % in the middle of {len(found)} jobs, less than minCpuEfficiency "
            f"{task.min_cpu_efficiency:g} %",
            excuse=excuse,
        )
    low, cut = settings.scout_low_cpu_efficiency, settings.scout_thr_cpu_inefficient
    bad = sum(value < low for value in found)
    many = bad > 0 and bad >= len(found) * settings.scout_num_cpu_inefficient / _TENTHS
    if not many or cut is None or task.new_jobs is None or task.new_jobs <= cut:
        return None
    return TaskVerdict(
        EFFICIENCY,
        f"{bad} of {len(found)} jobs below {low:g} % CPU efficiency, and {task.new_jobs:g} new ones are expected, "
        f"more than {cut:g}",
        excuse=excuse,
    )


def _busy_with_io(evidence: Evidence, settings: Settings) -> str:
    """Say that jobs wait for their data; "" when they do not, or nobody knows what would be much."""
    figure, most = figure_called("ioIntensity", evidence.figures), settings.scout_max_io_intensity_for_exhausted
    if figure is None or most is None or figure.value <= most:
        return ""
    return f"its ioIntensity is {figure.value:.4g} kBPerS, more than {most:g}"


def _abuse(evidence: Evidence, task: Parameters, settings: Settings) -> TaskVerdict | None:  # noqa: ARG001
    found = [job for job in evidence.jobs if job.cpu_seconds is not None and job.seconds > 0]
    worst = max(found, key=lambda job: (job.cpu_seconds or 0) / (job.seconds * job.cores), default=None)
    if worst is None or worst.cpu_seconds is None:
        return None
    had = worst.seconds * worst.cores
    if worst.cpu_seconds <= settings.abuse_factor * had:
        return None
    return TaskVerdict(
        ABUSE,
        f"a job used {worst.cpu_seconds:.0f} CPU s in {worst.seconds:.0f} s on {worst.cores} "
        f"{'core' if worst.cores == 1 else 'cores'}: more than {settings.abuse_factor:g} times its {had:.0f} core-s",
    )


def _known(values: Sequence[float | None]) -> list[float]:
    return sorted(value for value in values if value is not None)


RULES_OF_THE_TASK: tuple[Rule, ...] = (_brokerage, _queued, _external, _retried)
"""The rules on what became of the task so far, whatever its scouts say."""
RULES: tuple[Rule, ...] = (*RULES_OF_THE_TASK, _leak, _short, _cpu_time_off, _ram_off, _efficiency, _abuse)
"""All rules, in the order of the document."""
