"""Installing on a cluster with a history: the site's own hooks, flags and limits work on, and ours beside them.

By the documented commands, run on the cluster's own machines: rendered from its live configuration, included last,
looked at by the check, rendered again, taken out again.
"""

from __future__ import annotations

import os
import re
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

from slurm_cluster import SlurmCluster

pytestmark = [pytest.mark.play, pytest.mark.in_turn("history", "slurm history")]
ROOT = Path(__file__).parents[2]
LIBRARY = "/usr/share/drainwise"
LOG = "/srv/site.log"
ADMIN = "/srv/admin"
DEADLINE = 60.0
ENDED = {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT"}
_PAGE = (ROOT / "docs" / "slurm.md").read_text().partition("## Install on a cluster with a history")[2]
STEPS = re.findall(r"```sh\n(.*?)```", _PAGE.partition("\n## ")[0], re.DOTALL)
INSTALL, TAKE_OUT = STEPS[:4], STEPS[4:]
RENDER = INSTALL[0]
OFFLINE = re.findall(r"`(drainwise config slurm [^`]*--live live.txt[^`]*)`", _PAGE)[0]
KEYS = ("Prolog", "Epilog", "TaskProlog", "PrologFlags", "PrologEpilogTimeout", "JobContainerType")
ODD = "BASH_FUNC_site%%"
"""How bash exports a function: no name of a variable for sh."""

SITE_FILE = "[slurm]\nprolog_time_limit = 4s\n"
HOOK = """\
#!/bin/sh
# {name} of the site.
/bin/echo {name} $SLURM_JOB_ID $SLURMD_NODENAME >>{log}
test ! -e /etc/site/{name}.fails
"""
TASK_PROLOG = """\
#!/bin/bash
# The site's task prolog: sets and takes away variables, speaks to the user, ends a job that it does not like.
test "$(type -t site)" = function && echo export SITE_FUNCTION=seen
echo export SITE_SCRATCH=/scratch/$SLURM_JOB_ID
echo unset SITE_SECRET
echo print welcome
echo export SITE_UMASK=$(umask) SITE_PLACE=$PWD
exit ${SITE_EXIT:-0}
"""
CONFIG = """\
# A cluster that has been there for years.
ProctrackType=proctrack/pgid
PrologFlags=X11
PrologEpilogTimeout=70
TaskProlog=/etc/site/task-prolog
Epilog=/etc/site/epilog.d/*.sh
"""
ONE_PROLOG = "Prolog=/etc/site/prolog\n"
SEVERAL = "Prolog=/etc/site/prolog\nProlog=/etc/site/second-prolog\n"
CONTAINER = "JobContainerType=job_container/tmpfs\n"
SHOW = """\
echo site $SITE_SCRATCH:$SITE_SECRET:$SITE_FUNCTION
echo ours $(cat $JOBFEATURES/allocated_cpu 2>/dev/null) $(test -w "$JOBSTATUS" && echo report)
srun sh -c 'echo step $SITE_SCRATCH:$SITE_SECRET ${JOBFEATURES:+ours}'
"""


class Site:
    """A cluster with hooks, flags and limits of its own."""

    def __init__(self, cluster: SlurmCluster, release: str) -> None:
        self.cluster, self.release = cluster, release
        for name in ("prolog", "second-prolog"):
            cluster.write(f"/etc/site/{name}", HOOK.format(name=name, log=LOG), 0o755)
        cluster.write("/etc/site/epilog.d/clean.sh", HOOK.format(name="epilog", log=LOG), 0o755)
        os.chmod(cluster.path("/etc/site/epilog.d"), 0o750)
        cluster.write("/etc/site/task-prolog", TASK_PROLOG, 0o755)
        cluster.write("/etc/slurm/job_container.conf", "AutoBasePath=true\nBasePath=/srv/containers\n")
        cluster.write("/etc/drainwise/site.ini", SITE_FILE)
        cluster.configure(CONFIG)
        self.conf = Path(cluster.path("/etc/slurm/slurm.conf"))
        self.conf.write_text(self.conf.read_text() + (ONE_PROLOG if release == "bookworm" else SEVERAL))
        self.written = self.conf.read_text()
        cluster.restart()

    def live(self) -> dict[str, list[str]]:
        """The live values of the keys that matter here."""
        lines = self.cluster.run(["scontrol", "show", "config"]).stdout.splitlines()
        pairs = [(line.partition("=")[0].strip().partition("[")[0], line.partition("=")[2].strip()) for line in lines]
        return {key: [value for name, value in pairs if name == key] for key in KEYS}

    def log(self) -> list[str]:
        """What the site's prologs and epilogs have written."""
        path = Path(self.cluster.path(LOG))
        return path.read_text().splitlines() if path.exists() else []

    def run(self, *options: str, state: str = "COMPLETED") -> tuple[int, list[str]]:
        """Run a job of alice's until its epilog has run; its number and what it printed."""
        odd = ["env", f"{ODD}=() {{  :\n}}", "SITE_SECRET=x"]
        number = int(
            self.cluster.run(
                [*odd, "sbatch", "--parsable", "--output=/home/alice/out.%j", "--nodelist=node1", *options],
                user="alice",
                stdin=f"#!/bin/sh\n{SHOW}",
            ).stdout
        )
        self.cluster.wait_for(lambda: self.cluster.job(number).state in ENDED, DEADLINE, f"the end of job {number}")
        self.cluster.wait_for(lambda: f"epilog {number} node1" in self.log(), DEADLINE, f"the epilog of job {number}")
        assert self.cluster.job(number).state == state
        return number, Path(self.cluster.path(f"/home/alice/out.{number}")).read_text().splitlines()

    def everything_of_the_site_works(self, ours: bool) -> None:
        """A job meets all that the site has, once each, and our features exactly where they are installed."""
        number, printed = self.run()
        assert "welcome" in printed
        assert f"site /scratch/{number}::seen" in printed
        assert f"step /scratch/{number}:{' ours' if ours else ''}".rstrip() in [line.rstrip() for line in printed]
        assert ("ours 1 report" in printed) is ours, printed
        hooks = ["prolog", "epilog"] if self.release == "bookworm" else ["prolog", "second-prolog", "epilog"]
        found = [line for line in self.log() if line.split()[1] == str(number)]
        assert sorted(found) == sorted(f"{hook} {number} node1" for hook in hooks)
        steps = self.cluster.run(["sacct", "-n", "-P", "-j", str(number), "-o", "JobID"]).stdout.split()
        assert f"{number}.extern" in steps, "PrologFlags=Contain is gone"
        assert [words for words in self.live()["PrologFlags"][0].split(",") if words == "X11"]

    # ---- what an administrator types ----

    def typed(self, text: str, code: int | None = 0) -> str:
        """Run lines of a shell as root where slurmctld is, but for those of systemd; all that they printed.

        No wheel is here: the package that was put there installs itself.
        """
        text = re.sub(r"^PYTHONPATH=\S+ python3 -m drainwise ", "drainwise ", text, flags=re.MULTILINE)
        script = "".join(f"{line}\n" for line in text.splitlines() if not line.startswith("systemctl"))
        ran = self.cluster.run(["sh", "-e", "-c", f"cd {ADMIN}\n{script}"], check=False)
        assert ran.returncode == code or code is None, ran.stdout + ran.stderr
        return ran.stdout + ran.stderr

    def put_package(self) -> None:
        """The package as pip brings it, with its program, and jinja2 for the rendering."""
        self.cluster.copy_in(str(ROOT / "plugins" / "drainwise"), f"{LIBRARY}/drainwise")
        self.cluster.copy_in(str(ROOT / "slurm"), f"{LIBRARY}/drainwise/slurm_templates")
        self.cluster.copy_in(str(ROOT / "systemd"), f"{LIBRARY}/drainwise/systemd_templates")
        for name in ("jinja2", "markupsafe"):
            self.cluster.copy_in(f"{sysconfig.get_path('purelib')}/{name}", f"/usr/share/pool/{name}")
        program = f'#!/bin/sh\nPYTHONPATH={LIBRARY}:/usr/share/pool exec python3 -B -m drainwise "$@"\n'
        self.cluster.write("/usr/bin/drainwise", program, 0o755)
        self.cluster.run(["mkdir", ADMIN])

    def install(self) -> None:
        """The documented steps: nodes first, then slurm.conf, then the daemons."""
        self.put_package()
        for step in INSTALL:
            self.typed(step)
        self.cluster.restart()

    def take_out(self) -> None:
        """The documented steps."""
        for step in TAKE_OUT:
            self.typed(step)

    def include(self) -> None:
        """slurm.conf as it is after the documented steps."""
        self.conf.write_text(f"{self.written}Include drainwise.conf\n")

    def tree(self, place: str) -> dict[str, str]:
        """The files below a directory by their names."""
        top = Path(self.cluster.path(place))
        return {str(path.relative_to(top)): path.read_text() for path in top.rglob("*") if path.is_file()}

    def drained(self) -> str:
        """Slurm's reason why node1 takes no jobs, "" when it does."""
        state, _, reason = self.cluster.run(["sinfo", "-h", "-N", "-n", "node1", "-o", "%T %E"]).stdout.partition(" ")
        return reason.strip() if state.startswith("drain") else ""


@pytest.fixture(scope="module")
def site(slurm_release: str) -> Iterator[Site]:
    """Installed once; before, all of the site's own works, and so it does when everything has been taken out again."""
    with SlurmCluster(nodes=2, cpus=4, release=slurm_release) as cluster:
        made = Site(cluster, slurm_release)
        before = made.live()
        made.everything_of_the_site_works(ours=False)
        made.install()
        yield made
        installed = made.tree(f"{ADMIN}/node-tree")
        made.take_out()
        assert made.conf.read_text() == made.written
        assert made.live() == before
        assert not [name for name in installed if os.path.exists(cluster.path(f"/{name}"))]
        made.everything_of_the_site_works(ours=False)


def test_all_of_the_sites_own_works_on_and_ours_too(site: Site) -> None:
    """Prologs, epilog, task prolog with its three words, X11, the extern step; none runs twice."""
    site.everything_of_the_site_works(ours=True)
    assert int(site.live()["PrologEpilogTimeout"][0].split()[0]) >= 70
    assert os.stat(site.cluster.path("/etc/site/epilog.d")).st_mode & 0o777 == 0o750


def test_private_directories_of_jobs_can_be_on(site: Site) -> None:
    """job_container/tmpfs: daemons and commands end with a fatal error where PrologFlags=Contain has been replaced.

    No job runs meanwhile: on a kernel of 6.18 Slurm's own mounts fail now and then, by the processor that they meet.
    """
    written = site.conf.read_text()
    site.conf.write_text(f"{CONTAINER}{written}")
    site.cluster.restart()
    try:
        assert site.live()["JobContainerType"] == ["job_container/tmpfs"]
    finally:
        site.conf.write_text(written)
        site.cluster.restart()


def test_a_task_prolog_of_the_sites_still_ends_a_job(site: Site) -> None:
    """Its exit code is what Slurm sees."""
    _, printed = site.run("--export=ALL,SITE_EXIT=3", state="FAILED")
    assert any("TaskProlog failed status=3" in line for line in printed)
    assert not any(line.startswith("site") for line in printed)
    assert site.drained() == ""


def test_a_prolog_of_the_sites_that_fails_still_drains_its_node(site: Site) -> None:
    """And the job waits, held, as it did."""
    site.cluster.write("/etc/site/prolog.fails", "")
    number = site.cluster.submit(SHOW, "alice", ("--nodelist=node1", "--output=/dev/null"))
    try:
        site.cluster.wait_for(site.drained, DEADLINE, "the drained node")
        assert "rolog" in site.drained()
        site.cluster.wait_for(lambda: site.cluster.job(number).state == "PENDING", DEADLINE, "the job to wait")
    finally:
        os.unlink(site.cluster.path("/etc/site/prolog.fails"))
        site.cluster.cancel_all()
        site.cluster.run(["scontrol", "update", "NodeName=node1", "State=RESUME"])
        site.cluster.wait_for(lambda: not site.drained(), DEADLINE, "the node to come back")


def test_the_check_finds_nothing_of_the_site_lost(site: Site) -> None:
    """And sees it when a hook, a flag or the time limit of the site's is replaced, as older lines did."""
    said = site.typed("drainwise check slurm --all", code=None)  # there are no reports, perhaps
    bad = [line for line in said.splitlines() if line.startswith(("dangerous", "missing"))]
    assert not [line for line in bad if line.split()[1] in KEYS], said
    rendered = Path(site.cluster.path("/etc/slurm/drainwise.conf"))
    merged = rendered.read_text()
    older = "TaskProlog=/usr/libexec/drainwise/slurm-task-prolog\nPrologFlags=Alloc,Contain\nPrologEpilogTimeout=60\n"
    try:
        rendered.write_text(older)
        site.cluster.reconfigure()
        said = site.typed("drainwise check slurm", code=1)
        dangerous = {line.split()[1] for line in said.splitlines() if line.startswith("dangerous")}
        assert {"PrologFlags", "PrologEpilogTimeout"} <= dangerous, said
        assert "without X11" in said
    finally:
        rendered.write_text(merged)
        site.cluster.reconfigure()


def test_rendering_again_gives_the_same(site: Site) -> None:
    """Ours is what is live now; what the site had is read from slurm.conf, or from what was rendered before."""
    first = site.tree(ADMIN)
    site.typed(RENDER)
    assert site.tree(ADMIN) == first
    site.typed(f"mkdir second; cd second\n{RENDER}")
    assert {name[len("second/") :]: text for name, text in site.tree(ADMIN).items() if name[:7] == "second/"} == first
    site.typed(f"scontrol show config >live.txt\n{OFFLINE.replace('node-tree', 'third')}\nrm -r second live.txt")
    assert site.tree(f"{ADMIN}/third") == site.tree(f"{ADMIN}/node-tree")
    site.typed("rm -r third")


def test_what_a_person_has_edited_is_never_written_over(site: Site) -> None:
    """The new one lies beside it, hidden from Slurm's own patterns, and the command says so."""
    edited = Path(site.cluster.path(f"{ADMIN}/controller-tree/etc/slurm/drainwise.conf"))
    rendered = edited.read_text()
    edited.write_text(f"{rendered}SrunProlog=/etc/site/srun-prolog\n")
    said = site.typed(RENDER.splitlines()[1], code=1)
    assert "controller-tree/etc/slurm/drainwise.conf was edited by hand" in said
    assert edited.read_text() == f"{rendered}SrunProlog=/etc/site/srun-prolog\n"
    beside = edited.parent / ".drainwise.conf.rendered"
    assert beside.read_text() == rendered
    beside.rename(edited)
    site.typed(RENDER)


def test_a_wrapper_of_the_sites_that_calls_ours_is_accepted(site: Site) -> None:
    """As the check used to ask for: it runs ours, is not run by it, and is left where it is."""
    ours = "/usr/libexec/drainwise/slurm-task-prolog"
    site.cluster.write("/etc/site/wrapper", f"#!/bin/bash\n{ours}\nexec /etc/site/task-prolog\n", 0o755)
    site.conf.write_text(f"{site.written}Include drainwise.conf\nTaskProlog=/etc/site/wrapper\n")
    site.cluster.reconfigure()
    try:
        site.everything_of_the_site_works(ours=True)  # though ours would hand over to the site's
        said = site.typed("drainwise check slurm --all", code=None)
        assert "the site's own calls ours" in said
        assert not [
            line for line in said.splitlines() if line.startswith(("dangerous TaskProlog", "missing   TaskProlog on"))
        ]
        site.typed(RENDER.splitlines()[0].replace("node-tree", "wrapped"))
        lines = site.tree(f"{ADMIN}/wrapped")["etc/slurm/drainwise.conf"].splitlines()
        assert not [line for line in lines if line.startswith("TaskProlog=")]
    finally:
        site.include()
        site.cluster.reconfigure()
