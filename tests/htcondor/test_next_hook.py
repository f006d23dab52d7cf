"""The site's own hook after ours: it sees and decides what it did before, and has our variables besides."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

import pytest

from made_up_node import PYTHON, Job, Node, Programs, Ran, run_as

pytestmark = pytest.mark.daemons  # it runs real hooks as a job's user

ONE_LAYOUT = pytest.mark.parametrize("node", ["since 25.4"], indirect=True)
USER = 54321
# What our hook is as rendered, with the site's hook as it is called.
OURS = """\
#!{python} -IS
import sys

sys.path.append({library!r})
from drainwise.htcondor.node.{module} import main
{before}
main({settings!r}, [{site!r}, *sys.argv[1:]])
"""
Hooked = Callable[..., Ran]


@pytest.fixture
def hooked(node: Node, programs: Programs) -> Hooked:
    """Run one of our hooks with a shell script as the site's own one behind it."""
    base = os.path.dirname(programs.directory)

    def run(job: Job, script: str, module: str = "prepare_hook", before: str = "", words: tuple[str, ...] = ()) -> Ran:
        site, ours = f"{node.base}/site-hook", f"{node.base}/our-hook"
        values = {"python": PYTHON, "library": f"{base}/library", "settings": programs.settings, "site": site}
        for path, text in ((site, script), (ours, OURS.format(module=module, before=before, **values))):
            if text:
                with open(path, "w", encoding="ascii") as stream:
                    stream.write(text)
                os.chmod(path, 0o755)
        return run_as(job.uid, [ours, *words], job.environment(), job.stdin.encode(), job.scratch)

    return run


@pytest.fixture
def job(node: Node) -> Job:
    """A job that is about to start, with an environment of its own."""
    return node.start("slot1_1", USER, int(time.time()), Environment="A=1")


def test_it_has_the_jobs_ad_with_our_variables(job: Job, hooked: Hooked) -> None:
    """Whole and once; everything else of the ad stands as it came, and what it prints follows what ours prints."""
    ran = hooked(job, "#!/bin/sh\ncat\n")
    assert (ran.returncode, ran.stderr) == (0, b"")
    ours, _, rest = ran.stdout.partition(b"\n")
    variables = ours.decode().partition(' = "')[2]
    assert variables.startswith("A=1 ")
    assert f"JOBFEATURES={job.scratch}/.jobfeatures" in variables
    expected = [line for line in job.stdin.splitlines() if not line.startswith("Environment")]
    assert sorted(rest.decode().splitlines()) == sorted([*expected, ours.decode()])


@ONE_LAYOUT
@pytest.mark.parametrize(("end", "code"), [("exit 3", 3), ("exit 0", 0), ("kill -9 $$", -signal.SIGKILL)])
def test_how_it_ends_is_how_the_hook_ends(job: Job, hooked: Hooked, end: str, code: int) -> None:
    """A site's hook may hold a job or put it back."""
    assert hooked(job, f"#!/bin/sh\ncat >/dev/null; {end}\n").returncode == code


@ONE_LAYOUT
@pytest.mark.parametrize("module", ["prepare_hook", "update_hook"])
def test_process_directory_arguments_environment_and_signals_are_as_before(
    job: Job, hooked: Hooked, module: str
) -> None:
    """No variable of ours is in its own environment, and a signal that Python ignores is not ignored there."""
    script = (
        "#!/bin/sh\ngrep -c ^GlobalJobId >&2; pwd >&2; echo $# $1 $2 >&2; echo $_CONDOR_SLOT-$JOBFEATURES >&2\n"
        "grep SigIgn /proc/self/status >&2; ls /proc/$$/fd >&2\n"
    )
    ran = hooked(job, script, module, words=("one", "two words"))
    assert ran.returncode == 0
    number, directory, words, variables, ignored, *descriptors = ran.stderr.decode().splitlines()
    assert (number, directory, words, variables) == ("1", job.scratch, "2 one two words", "slot1_1-")
    assert int(ignored.split()[1], 16) & (1 << (signal.SIGPIPE - 1)) == 0
    assert sorted(one for one in descriptors if int(one) < 10) == ["0", "1", "2"], "a shell's own are above"


@ONE_LAYOUT
def test_it_runs_whatever_becomes_of_our_part(job: Job, hooked: Hooked) -> None:
    """Ours fails, or is not done in its time: one line, and the site's hook has the ad as it came."""
    start = "import drainwise.htcondor.node.prepare_hook as hook\nimport drainwise.node.hook as limits, time\n"
    broken = start + "def broken(path):\n    raise RuntimeError('no')\nhook.prepare = broken"
    slow = start + "limits.TIME_LIMIT = 0.2\nhook.prepare = lambda path: time.sleep(60)"
    for before, said in ((broken, b"RuntimeError: no"), (slow, b"not done after")):
        ran = hooked(job, "#!/bin/sh\ncat\n", before=before)
        assert (ran.returncode, ran.stdout) == (0, job.stdin.encode())
        assert said in ran.stderr


@ONE_LAYOUT
def test_it_has_as_much_time_as_it_wants(job: Job, hooked: Hooked) -> None:
    """The time limit of our part does not end it."""
    before = "import drainwise.node.hook as limits\nlimits.TIME_LIMIT = 1.0"
    ran = hooked(job, "#!/bin/sh\nsleep 2; echo late >&2\n", before=before)
    assert (ran.returncode, ran.stderr) == (0, b"late\n")


@ONE_LAYOUT
def test_one_that_is_missing_puts_the_job_back(job: Job, hooked: Hooked) -> None:
    """As HTCondor does for a hook that is not there: neither held nor started without what the site wants."""
    ran = hooked(job, "")
    assert ran.returncode == -signal.SIGKILL
    assert b"the site's own hook cannot be run" in ran.stderr
