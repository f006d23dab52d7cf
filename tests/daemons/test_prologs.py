"""The ready prologs and epilogs: Grid Engine's on a real cell, the others' with commands that print recorded answers.

The answers of LSF, PBS and Flux follow their manuals (tests/support/batch_answers.py).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from batch_answers import BHOSTS, BJOBS, FLUX, LSF, PBS_PRO, TORQUE, R
from drainwise.features.read import open_features
from made_up_node import PYTHON, public_directory, write
from sge_cluster import SgeCluster

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "plugins" / "drainwise"
ALICE = 54321
HERE = os.uname().nodename.partition(".")[0]
IN_JOB = """\
for name in MACHINEFEATURES JOBFEATURES JOBSTATUS SINGULARITYENV_JOBFEATURES; do
    eval "echo $name=\\$$name"
done
cat $JOBFEATURES/allocated_cpu $JOBFEATURES/wall_limit_secs $JOBFEATURES/max_rss_bytes $JOBFEATURES/job_id
cat $MACHINEFEATURES/jobslots $MACHINEFEATURES/hs06
echo done > $JOBSTATUS/used_CPU && cat $JOBSTATUS/used_CPU
"""


def furnish(root: str) -> None:
    """Install package and scripts below the root of a cell, and the site's own keys."""
    shutil.copytree(PACKAGE, f"{root}/usr/share/drainwise/drainwise", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "prologs", f"{root}/usr/libexec/drainwise")
    os.makedirs(f"{root}/etc/drainwise")
    write(f"{root}/etc/drainwise/features.json", '{"hs06": 240.5}', 0)


@pytest.fixture(scope="module")
def furnished(sge: SgeCluster) -> Iterator[SgeCluster]:
    """A real cell whose queue has our prolog, epilog and starter, as docs/features.md says."""
    furnish(sge.root)
    for kind, script in (("prolog", "prolog"), ("epilog", "epilog"), ("starter_method", "starter")):
        sge.run(["qconf", "-mattr", "queue", kind, f"/usr/libexec/drainwise/sge/{script}", "main"])
    yield sge
    for kind in ("prolog", "epilog", "starter_method"):
        sge.run(["qconf", "-mattr", "queue", kind, "NONE", "main"])


def test_a_job_of_a_real_grid_engine_has_its_features(furnished: SgeCluster) -> None:
    """Its limits, from `qstat -j`, the queue and its own configuration; and nothing of it is left."""
    number = furnished.submit(IN_JOB, "alice", ["-l", "h_rt=600,h_rss=1G", "-j", "y", "-N", "asks"])
    furnished.wait_for(lambda: any(one["number"] == str(number) for one in furnished.accounting()), 60, "its end")
    printed = Path(f"{furnished.root}/home/alice/asks.o{number}").read_text().splitlines()
    tree = f"/tmp/{number}.1.main"
    assert printed[:4] == [
        f"MACHINEFEATURES={tree}/.machinefeatures",
        f"JOBFEATURES={tree}/.jobfeatures",
        f"JOBSTATUS={tree}/.jobstatus",
        f"SINGULARITYENV_JOBFEATURES={tree}/.jobfeatures",
    ]
    assert printed[4:] == ["1", "600", str(1 << 30), str(number), "16", "240.5", "done"]
    furnished.wait_for(lambda: not os.path.exists(f"{furnished.root}{tree}"), 30, "the end of its directory")


def test_a_broken_installation_stops_no_job_of_grid_engine(furnished: SgeCluster) -> None:
    """The package is gone for a moment."""
    library = f"{furnished.root}/usr/share/drainwise"
    os.rename(library, f"{library}.aside")
    try:
        number = furnished.submit("echo ran", "alice", ["-j", "y", "-N", "broken"])
        furnished.wait_for(lambda: any(one["number"] == str(number) for one in furnished.accounting()), 60, "its end")
    finally:
        os.rename(f"{library}.aside", library)
    [job] = [one for one in furnished.accounting() if one["number"] == str(number)]
    assert (job["failed"], job["exit_status"]) == ("0", "0")
    assert Path(f"{furnished.root}/home/alice/broken.o{number}").read_text() == "ran\n"


class Scripts:
    """The scripts, with other places in them, and commands that print recorded answers."""

    def __init__(self, base: str) -> None:
        if os.geteuid() != 0 or not os.path.exists(PYTHON):
            pytest.skip(f"needs root, as whom they run, and {PYTHON}")
        self.base = base
        shutil.copytree(PACKAGE, f"{base}/share/drainwise", ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copytree(ROOT / "prologs", f"{base}/libexec")
        os.mkdir(f"{base}/bin")
        os.mkdir(f"{base}/etc")
        write(f"{base}/etc/prolog.sh", f"PROLOG_PATH={base}/bin:/usr/bin:/bin\nPROLOG_ENVIRONMENT=SITE=1\n", 0)
        write(f"{base}/etc/features.json", '{"hs06": 240.5}', 0)
        places = {
            "/usr/libexec/drainwise": f"{base}/libexec",
            "/usr/share/drainwise": f"{base}/share",
            "/run/drainwise": f"{base}/run",
            "/etc/drainwise": f"{base}/etc",
        }
        for file in Path(f"{base}/libexec").rglob("*"):
            if file.is_file():
                text = file.read_text()
                for old, new in places.items():
                    text = text.replace(old, new)
                file.write_text(text)

    def command(self, name: str, answers: dict[str, str]) -> None:
        """Make a command that prints one of these, by a word among its arguments."""
        cases = "".join(f"*' {word} '*) cat <<'END'\n{text}\nEND\n;;\n" for word, text in answers.items())
        path = f"{self.base}/bin/{name}"
        write(path, f'#!/bin/sh\ncase " $* " in\n{cases}*) exit 1 ;;\nesac\n', 0)
        os.chmod(path, 0o755)

    def run(self, script: str, *words: str, **environment: str) -> str:
        """Run one, as root; what it prints. It never fails."""
        path = {"PATH": f"{self.base}/bin:/usr/bin:/bin"}
        ran = subprocess.run(
            [f"{self.base}/libexec/{script}", *words],
            env={**path, **environment},
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    def tree(self, name: str) -> str:
        """The tree of a job."""
        return f"{self.base}/run/{name}"


@pytest.fixture(scope="module")
def scripts() -> Iterator[Scripts]:
    with public_directory() as base:
        yield Scripts(base)


def check(scripts: Scripts, tree: str, cores: int, wall: int, cpu: int | None = None) -> None:
    """The keys of a job that the batch system and the site have told."""
    job, machine = (open_features(f"{scripts.tree(tree)}/{name}") for name in (".jobfeatures", ".machinefeatures"))
    assert (job.integer("allocated_cpu"), job.integer("wall_limit_secs")) == (cores, wall)
    assert job.integer("cpu_limit_secs") == (cores * wall if cpu is None else cpu)
    assert machine.decimal("hs06") == 240.5
    assert machine.integer("phys_cores")


def test_lsf(scripts: Scripts) -> None:
    """Pre-exec, job starter and post-exec; the user's own variables do not reach what root runs."""
    scripts.command("bjobs", {"4711": BJOBS % ("60.0/n1", "4 G")})
    scripts.command("bhosts", {"max": BHOSTS})
    given = {**LSF, "LSB_MCPU_HOSTS": f"{HERE} 8 other 4", "LSFUSER": "nobody"}
    hostile = {"PYTHONPATH": "/nowhere", "DRAINWISE_FEATURE_TOTAL_CPU": "1", "PROLOG_PATH": "/nowhere"}
    scripts.run("lsf/pre-exec", **{**given, **hostile})
    check(scripts, "lsf.4711.0", 8, 3600)
    assert open_features(f"{scripts.tree('lsf.4711.0')}/.machinefeatures").integer("jobslots") == 24
    status = os.stat(f"{scripts.tree('lsf.4711.0')}/.jobstatus")
    assert status.st_uid != 0
    said = scripts.run("lsf/job-starter", "cat $JOBFEATURES/job_id; echo $APPTAINERENV_JOBSTATUS", **given)
    assert said.splitlines() == ["4711", f"{scripts.tree('lsf.4711.0')}/.jobstatus"]
    scripts.run("lsf/post-exec", **given)
    assert not os.path.exists(scripts.tree("lsf.4711.0"))


@pytest.mark.parametrize(
    ("job", "tree", "text", "cores"),
    [("4711.head", "4711.head", PBS_PRO, 8), ("4711[2].head", "4711_2_.head", TORQUE, 5)],
)
def test_pbs(scripts: Scripts, job: str, tree: str, text: str, cores: int) -> None:
    """Prologue, login shell and epilogue."""
    recorded = text.replace("n1/", f"{HERE}/").replace("alice", "nobody")
    scripts.command("qstat", {job: recorded})
    scripts.run("pbs/prologue", job, "nobody", "nogroup")
    check(scripts, f"pbs.{tree}", cores, 86400, 172800 if text is PBS_PRO else None)
    shell = f". {scripts.base}/libexec/drainwise-job.sh; cat $JOBFEATURES/job_id"
    ran = subprocess.run(["sh", "-euc", shell], env={"PBS_JOBID": job}, capture_output=True, text=True, check=True)
    assert ran.stdout == f"{job}\n"
    scripts.run("pbs/epilogue", job)
    assert not os.path.exists(scripts.tree(f"pbs.{tree}"))


def test_flux(scripts: Scripts) -> None:
    """Prolog and epilog; the id is the decimal one."""
    scripts.command("flux", {"id": "186579", "info": R, "getattr": "1"})
    given = {"FLUX_JOB_ID": "f2Bx", "FLUX_JOB_USERID": "65534", "FLUX_URI": "local:///x"}
    scripts.run("flux/prolog", **{**FLUX, **given})
    check(scripts, "flux.186579", 8, 3600)
    assert os.stat(f"{scripts.tree('flux.186579')}/.jobstatus").st_uid == 65534
    scripts.run("flux/epilog", **{**FLUX, **given})
    assert not os.path.exists(scripts.tree("flux.186579"))


@pytest.mark.parametrize("job", ["", "..", "../../etc", "a b", "$(touch x)", ".hidden"])
def test_a_name_that_leads_elsewhere_makes_nothing(scripts: Scripts, job: str) -> None:
    before = sorted(os.listdir(scripts.base))
    scripts.run("features-begin", "lsf", job)
    scripts.run("features-end", "lsf", job)
    assert sorted(os.listdir(scripts.base)) == before
    assert not os.path.exists(scripts.tree("lsf."))


def test_a_batch_system_that_does_not_answer_costs_its_facts(scripts: Scripts) -> None:
    """The job starts all the same, with what is known without it."""
    scripts.command("bjobs", {})
    scripts.command("bhosts", {})
    begin = time.time()
    scripts.run("lsf/pre-exec", LSB_JOBID="7", LSB_DJOB_NUMPROC="2")
    job = open_features(f"{scripts.tree('lsf.7.0')}/.jobfeatures")
    assert (job.integer("allocated_cpu"), job.integer("wall_limit_secs")) == (2, None)
    assert begin - 1 <= (job.integer("jobstart_secs") or 0) <= time.time()
