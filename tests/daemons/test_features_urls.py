"""`[features] url`: jobs find URLs in their variables, and the server answers each for its own job alone."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import classad2
import pytest

from drainwise.features.job_token import TOKEN_FILE
from drainwise.features.read import open_features
from drainwise.features.serve import FeatureServer
from drainwise.node import with_twins
from drainwise.siteconfig import FeaturesSection, SiteConfig
from made_up_node import Node, Programs, public_directory, run_as, write
from made_up_slurm_node import MadeUpJob, SlurmNode, install
from rendered_site import PLUGINS

ALICE, BOB = 54321, 54322
ONE_LAYOUT = pytest.mark.parametrize("node", ["since 25.4"], indirect=True)


@contextlib.contextmanager
def serving(root: str) -> Iterator[str]:
    """Serve `root` meanwhile; the URL."""
    with FeatureServer(root) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.url
        finally:
            server.shutdown()
            thread.join()


@contextlib.contextmanager
def site_url(settings: str, url: str) -> Iterator[None]:
    """Add the URL to a node's settings meanwhile."""
    before = Path(settings).read_text()
    Path(settings).write_text(f"{before}features_url = {url}\n")
    try:
        yield
    finally:
        Path(settings).write_text(before)


def token_in(variables: dict[str, str]) -> str:
    """The token in a job's URL."""
    return variables["JOBFEATURES"].split("~")[1].split("/")[0]


def test_a_job_of_htcondor_reads_its_features_by_its_urls(node: Node, programs: Programs) -> None:
    """In both layouts; another job of the node cannot, by its own token or by none."""
    with serving(node.execute) as url:
        with site_url(programs.settings, url):
            jobs = [node.start(slot, uid, int(time.time())) for slot, uid in (("slot1_1", ALICE), ("slot1_2", BOB))]
            found = []
            for job in jobs:
                ran = programs.prepare(job)
                assert (ran.returncode, ran.stderr) == (0, b"")
                text = classad2.parseOne(ran.stdout.decode())["Environment"]
                assert isinstance(text, str)
                found.append(dict(word.split("=", 1) for word in text.split(" ")))
        mine, other = found
        assert all(mine[twin] == mine["JOBFEATURES"] for twin in with_twins("JOBFEATURES"))
        assert mine["JOBSTATUS"] == f"{jobs[0].scratch}/.jobstatus"
        assert open_features(mine["JOBFEATURES"]).integer("allocated_cpu") == 8
        assert open_features(mine["MACHINEFEATURES"]).integer("total_cpu") == 24
        write(f"{jobs[0].scratch}/.jobfeatures/shutdowntime_job", "1895249000\n", ALICE)
        assert open_features(mine["JOBFEATURES"]).integer("shutdowntime_job") == 1895249000
        tokens = token_in(mine), token_in(other)
        assert len(set(tokens)) == 2
        for place in (
            mine["JOBFEATURES"].replace(tokens[0], tokens[1]),
            mine["JOBFEATURES"].replace(f"~{tokens[0]}/", ""),
        ):
            assert open_features(place).integer("allocated_cpu") is None
        for user, may in ((BOB, False), (node.daemon, True)):  # whom the server may run as
            assert (run_as(user, ["/bin/cat", f"{jobs[0].scratch}/{TOKEN_FILE}"]).returncode == 0) is may


@ONE_LAYOUT
def test_without_a_token_a_job_has_paths(node: Node, programs: Programs) -> None:
    """Something stands in the file's place; that is said, and the job runs."""
    job = node.start("slot1_1", ALICE, int(time.time()))
    os.mkdir(f"{job.scratch}/{TOKEN_FILE}")
    with site_url(programs.settings, "http://127.0.0.1:1"):
        ran = programs.prepare(job)
    assert ran.returncode == 0 and b"no token" in ran.stderr
    assert f"JOBFEATURES={job.scratch}/.jobfeatures".encode() in ran.stdout


def test_a_job_of_slurm_reads_its_features_by_its_urls() -> None:
    """The server of the node is root's; the token is the job's user's alone."""
    if os.geteuid() != 0:
        pytest.skip("needs root: the prolog runs as root")
    with public_directory() as base:
        os.mkdir(f"{base}/run")
        with serving(f"{base}/run") as url:
            site = SiteConfig(features=FeaturesSection(url=url))
            node: SlurmNode = install(str(PLUGINS / "drainwise"), base, f"{base}/run", site)
            jobs = [MadeUpJob(17, ALICE), MadeUpJob(18, BOB)]
            found = []
            for job in jobs:
                ran = node.prolog(job)
                assert (ran.returncode, ran.stderr) == (0, b"")
                ran = node.task_prolog(job)
                assert (ran.returncode, ran.stderr) == (0, b"")
                said = [line.removeprefix("export ") for line in ran.stdout.decode().splitlines()]
                found.append(dict(line.split("=", 1) for line in said))
            mine, other = found
            assert mine["JOBSTATUS"].startswith(node.tree(jobs[0]))
            assert all(mine[twin] == mine["JOBFEATURES"] for twin in with_twins("JOBFEATURES"))
            assert open_features(mine["JOBFEATURES"]).text("job_id") == "17"
            assert open_features(other["JOBFEATURES"]).text("job_id") == "18"
            tokens = token_in(mine), token_in(other)
            assert open_features(mine["JOBFEATURES"].replace(tokens[0], tokens[1])).text("job_id") is None
            assert run_as(ALICE, ["/bin/cat", f"{node.tree(jobs[0])}/{TOKEN_FILE}"]).returncode == 0
            assert run_as(BOB, ["/bin/cat", f"{node.tree(jobs[0])}/{TOKEN_FILE}"]).returncode != 0
            for job in jobs:
                node.epilog(job)
                assert not os.path.exists(node.tree(job))
