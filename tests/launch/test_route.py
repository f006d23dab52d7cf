"""Which backend a job goes to; one that cannot be configured is replaced by this machine, with one warning."""

from __future__ import annotations

from pathlib import Path

import pytest

from drainwise.facts.errors import PoolUnreachable, UsageError
from drainwise_launch.backend import Backend
from drainwise_launch.choice.resources import Resources
from drainwise_launch.choice.work import Work
from drainwise_launch.run.route import Routes
from drainwise_launch.this_machine.backend import LocalBackend

from .made_up import MadeUpSystem

POOL = {"cpu": 4, "mem": 1000, "tmp": 100, "gpu": 1}


def absent() -> Backend:
    raise PoolUnreachable("there is no sbatch here")


def job(resources: Resources, backend: str) -> Work:
    return Work("a", ("true",), (), resources, backend=backend)


def test_a_backend_that_cannot_be_configured_is_replaced_with_one_warning(tmp_path: Path) -> None:
    """What this machine has is reserved as asked for; what it has not makes the job run alone."""
    said: list[str] = []
    routes = Routes({"local": lambda: LocalBackend(POOL, str(tmp_path)), "slurm": absent}, said.append)
    fitting = routes.place(job(Resources(2, 500, 0, (("gpu", 1),)), "slurm"))
    assert (fitting.backend, fitting.reserved) == ("local", fitting.resources)
    everything = Resources(4, 1000, 100, (("gpu", 1),))
    for resources in (Resources(5), Resources(others=(("partition", "x"),)), Resources(others=(("licence", 1),))):
        alone = routes.place(job(resources, "slurm"))
        assert (alone.backend, alone.reserved, alone.resources) == ("local", everything, resources)
    assert said == ["slurm cannot be used here: there is no sbatch here; its jobs run on this machine"]
    assert list(routes.backends) == ["local"]


def test_where_all_is_to_run_here_each_job_is_mapped_and_nothing_else_is_opened(tmp_path: Path) -> None:
    """Whatever backend it names, also one that nobody knows, and this machine: what it lacks makes a job run alone."""
    routes = Routes({"local": lambda: LocalBackend(POOL, str(tmp_path)), "slurm": absent}, print, only_here=True)
    everything = Resources(4, 1000, 100, (("gpu", 1),))
    for backend in ("slurm", "pbs", "local"):
        fitting = routes.place(job(Resources(2), backend))
        assert (fitting.backend, fitting.reserved) == ("local", Resources(2))
        alone = routes.place(job(Resources(others=(("partition", "x"),)), backend))
        assert (alone.backend, alone.reserved) == ("local", everything)
    assert list(routes.backends) == ["local"]


def test_only_what_jobs_name_is_opened(tmp_path: Path) -> None:
    opened: list[str] = []

    def made_up() -> Backend:
        opened.append("made-up")
        return MadeUpSystem()

    routes = Routes({"local": absent, "made-up": made_up}, opened.append)
    for _ in range(3):
        assert routes.place(job(Resources(), "made-up")) == job(Resources(), "made-up")
    assert opened == ["made-up"]


def test_what_can_never_run_is_refused_before_anything_starts(tmp_path: Path) -> None:
    routes = Routes({"local": lambda: LocalBackend(POOL, str(tmp_path)), "made-up": MadeUpSystem}, print)
    for backend, resources, said in (
        ("local", Resources(5), "it can never run in local: cpu = 5, and there are 4"),
        ("local", Resources(others=(("fpga", 1),)), "there is no resource fpga"),
        ("made-up", Resources(65), "it can never run in made-up: it has 64 CPUs"),
        ("pbs", Resources(), "backend = 'pbs': expected one of local, made-up"),
    ):
        with pytest.raises(UsageError, match=f"job 'a': .*{said}"):
            routes.place(job(resources, backend))
