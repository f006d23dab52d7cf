"""Hooks that hand over to the site's own: real ones, run as slurmd runs them, beside the site's own alone."""

from __future__ import annotations

import ast
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from drainwise.slurm.setup.merge import hooks_of
from drainwise.slurm.setup.own_settings import OwnSettings
from drainwise.slurm.setup.render import render
from made_up_node import Ran, public_directory, run_as, write
from made_up_slurm_node import MadeUpJob, SlurmNode

pytestmark = pytest.mark.daemons  # it runs real hooks as a job's user

ALICE = 54321
JOB = MadeUpJob(17, ALICE)
ODD = {"BASH_FUNC_site%%": "() {  echo function\n}", "X.Y": "dotted", "pid": "5", "SHLVL": "3"}
"""Variables that a shell would drop, or take for its own; IFS each shell makes anew."""


@dataclass
class Site:
    """A node on which our hooks hand over to programs of the site's."""

    node: SlurmNode
    place: str

    def has(self, key: str, script: str) -> str:
        """Give the site a program of its own for a key of slurm.conf; where ours lies that hands over to it."""
        path = f"{self.place}/{key} of the site"
        write(path, script, 0)
        os.chmod(path, 0o755)
        own = OwnSettings(values={key.lower(): (path,)})
        hook = hooks_of(self.node.site, own)[key]
        [text] = [file.text for file in render(self.node.site, "node", own) if file.path == hook.path]
        ours = f"{self.place}/{key} of ours"
        write(ours, text, 0)
        os.chmod(ours, 0o755)
        self.theirs, self.ours = path, ours
        return ours

    def run(self, program: str, uid: int = ALICE, before: tuple[str, ...] = (), **variables: str) -> Ran:
        """Run a program with a job's environment."""
        environment = {**JOB.environment(), "PATH": "/usr/bin:/bin", **variables}
        return run_as(uid, [*before, program], environment)


@pytest.fixture
def site(node: SlurmNode) -> Iterator[Site]:
    """A node with a job's tree, and a place for the site's programs."""
    node.prolog(JOB)
    with public_directory() as place:
        yield Site(node, place)


def test_what_it_prints_comes_behind_ours(site: Site) -> None:
    """All three words of Slurm's, whole; its standard error is its own."""
    script = "#!/bin/sh\necho export SITE='a  b'\necho unset SECRET\nprintf 'print hello'\necho said >&2\n"
    ran = site.run(site.has("TaskProlog", script))
    lines = ran.stdout.decode().splitlines()
    assert lines[-3:] == ["export SITE=a  b", "unset SECRET", "print hello"]
    assert f"export JOBFEATURES={site.node.tree(JOB)}/.jobfeatures" in lines[:-3]
    assert (ran.returncode, ran.stderr) == (0, b"said\n")


def test_its_environment_is_slurms(site: Site) -> None:
    """Byte for byte, with names that no shell takes, but for one variable of ours."""
    script = "#!/usr/bin/python3 -IS\nimport os\nprint(sorted(os.environb.items()))\nprint(os.getcwd(), os.umask(0))\n"
    ours = site.has("TaskProlog", script)
    alone = site.run(site.theirs, ALICE, (), **ODD).stdout.decode().splitlines()
    chained = site.run(ours, ALICE, (), **ODD).stdout.decode().splitlines()[-2:]
    before, after = (dict(ast.literal_eval(lines[0])) for lines in (alone, chained))
    added = {name: value for name, value in after.items() if before.get(name) != value}
    assert {name for name in added if name not in {b"PWD", b"OLDPWD", b"_", b"SHLVL"}} == {b"DRAINWISE_HOOK_PID"}
    assert before.items() - after.items() <= {(b"SHLVL", b"3"), (b"_", before.get(b"_", b""))}
    assert alone[1] == chained[1]


@pytest.mark.parametrize("key", ["Prolog", "Epilog", "TaskProlog"])
@pytest.mark.parametrize("code", [0, 1, 3, 255])
def test_its_exit_code_is_what_slurm_sees(site: Site, key: str, code: int) -> None:
    """A prolog of the site's that fails still drains its node, a task prolog ends the job."""
    uid = ALICE if key == "TaskProlog" else 0
    assert site.run(site.has(key, f"#!/bin/sh\nexit {code}\n"), uid).returncode == code


def test_its_death_is_what_slurm_sees(site: Site) -> None:
    """By the same signal: it is the same process."""
    assert site.run(site.has("Prolog", "#!/bin/sh\nkill -TERM $$\n"), 0).returncode == -15


@pytest.mark.parametrize("how", ["gone", "not to be run"])
def test_one_that_cannot_be_run_fails_as_before(site: Site, how: str) -> None:
    """Slurm would have said so of the site's own."""
    ours = site.has("TaskProlog", "#!/bin/sh\n")
    os.unlink(site.theirs) if how == "gone" else os.chmod(site.theirs, 0o644)
    assert site.run(ours).returncode in {126, 127}


@pytest.mark.parametrize("key", ["Prolog", "TaskProlog"])
@pytest.mark.parametrize("broken", ["no python", "no package"])
def test_what_is_broken_of_ours_costs_the_site_nothing(site: Site, key: str, broken: str) -> None:
    """Its own runs all the same."""
    ours = Path(site.has(key, "#!/bin/sh\necho print site\nexit 3\n"))
    slurm = site.node.site.slurm
    old, new = (slurm.python, "/nonexistent") if broken == "no python" else (slurm.library_dir, "/nonexistent")
    ours.write_text(ours.read_text().replace(old, new))
    ran = site.run(str(ours), 0 if key == "Prolog" else ALICE)
    assert (ran.returncode, ran.stdout) == (3, b"print site\n")


def test_where_no_process_can_be_made_the_sites_runs(site: Site) -> None:
    """A user at its limit: bash tries for 15 s, then the site's own takes over without ours."""
    ran = site.run(
        site.has("TaskProlog", "#!/bin/sh\necho print site\nexit 3\n"), ALICE, ("/usr/bin/prlimit", "--nproc=0")
    )
    assert (ran.returncode, ran.stdout) == (3, b"print site\n")


CALLS = {
    "by its name": '"{ours}"\n',
    "in its place": 'exec "{ours}"\n',
    "from a shell of a shell": 'sh -c \'sh -c "\\"{ours}\\""; true\'\n',
    "for its output": 'eval echo "$("{ours}" | tail -1)"\n',
}


@pytest.mark.parametrize("how", CALLS)
def test_one_that_calls_ours_is_not_called_for_ever(site: Site, how: str) -> None:
    """Where the rendering could not look into it: ours does its own work there, and no more."""
    ours = site.has("TaskProlog", "#!/bin/bash\n")
    write(site.theirs, "#!/bin/bash\necho print once\n" + CALLS[how].format(ours=ours), 0)
    os.chmod(site.theirs, 0o755)
    ran = site.run(ours)
    assert ran.returncode == 0
    assert ran.stdout.count(b"print once\n") == 1
    assert b"JOBSTATUS" in ran.stdout.split(b"print once\n")[1]


@pytest.mark.parametrize("value", ["1", "x", "0", "99999999", "-1", "$(id)"])
def test_nobody_switches_the_sites_off(site: Site, value: str) -> None:
    """HOSTILE 46: a job that brings our variable along, made up or from a task before it."""
    ran = site.run(site.has("TaskProlog", "#!/bin/sh\necho print site\nexit 3\n"), DRAINWISE_HOOK_PID=value)
    assert (ran.returncode, b"print site" in ran.stdout) == (3, True)


def test_the_pid_of_slurms_own_processes_switches_nothing_off(site: Site) -> None:
    """A job can know slurmd's, which stands above its task prolog as this process of root's does here."""
    ours = site.has("TaskProlog", "#!/bin/sh\necho print site\nexit 3\n")
    ran = site.run(ours, DRAINWISE_HOOK_PID=str(os.getpid()))
    assert (ran.returncode, b"print site" in ran.stdout) == (3, True)


def test_one_that_hangs_is_ended_with_it(site: Site) -> None:
    """Slurm ends the process that it has started, and nothing is left of it."""
    ours = site.has("Prolog", "#!/bin/sh\necho begun\nexec sleep 1000\n")
    process = subprocess.Popen([ours], env=JOB.environment(), stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"begun\n"
    process.kill()
    assert (process.stdout.read(), process.wait()) == (b"", -9)
    process.stdout.close()


def test_ours_alone_needs_no_bash(site: Site) -> None:
    """A site without hooks of its own keeps sh."""
    for file in render(replace(site.node.site), "node"):
        assert not file.text.startswith("#!/bin/bash")
