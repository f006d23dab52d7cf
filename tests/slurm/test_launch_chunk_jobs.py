"""Chunk jobs in Slurm: what sbatch is told, and which of them scancel may remove."""

from __future__ import annotations

from pathlib import Path

import pytest

from drainwise.facts.errors import ActionRefused, PoolUnreachable
from drainwise.slurm.launch.chunk_jobs import chunk_jobs, sbatch_options
from drainwise.systems.chunk_jobs import ChunkJob

JOB = ChunkJob(2, 0.25, ("/usr/bin/python3", "-c", "print('a b')"), "chunk-1", 90, ("--qos=other",))
LEADER = {
    "SLURMD_NODENAME": "node3",
    "SLURM_JOB_PARTITION": "grid",
    "SLURM_JOB_ACCOUNT": "atlas",
    "SLURM_JOB_QOS": "normal",
    "SLURM_MEM_PER_NODE": "1001",
}


def made_up(place: Path, name: str, script: str) -> None:
    """A command that writes down its words, its variables and what it reads."""
    path = place / name
    path.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {place}/{name}.words\nenv > {place}/{name}.env\n{script}\n')
    path.chmod(0o755)


def test_a_chunk_job_asks_for_the_leaders_node_and_account() -> None:
    """The leader's node, partition, account and QOS, its part of the memory; options of the user's come last."""
    options = sbatch_options(JOB, LEADER, "/home/a/7/chunk-1")
    assert {"--nodelist=node3", "--cpus-per-task=2", "--partition=grid", "--account=atlas", "--mem=250"} < set(options)
    assert "--time=2" in options, "whole minutes, none too few"
    assert options.index("--qos=normal") < options.index("--qos=other") == len(options) - 1
    of_cpu = {**LEADER, "SLURM_MEM_PER_CPU": "100"}
    assert [one for one in sbatch_options(JOB, of_cpu, "/") if one.startswith("--mem")] == ["--mem-per-cpu=100"]
    whole = {**LEADER, "SLURM_MEM_PER_NODE": "0"}
    assert [one for one in sbatch_options(JOB, whole, "/") if one.startswith("--mem")] == []


def test_it_is_submitted_by_sbatch_of_the_job(tmp_path: Path) -> None:
    """In a directory of its own, with the leader's variables but for those that are of its job."""
    made_up(tmp_path, "sbatch", f"cat > {tmp_path}/script; echo '41;cluster'")
    made_up(tmp_path, "scancel", "")
    environment = {**LEADER, "PATH": f"{tmp_path}:/usr/bin:/bin", "SLURM_CONF": "/c", "SBATCH_QOS": "x", "LANG": "C"}
    jobs = chunk_jobs(environment, str(tmp_path))
    assert jobs is not None
    assert (jobs.node, jobs.submit(JOB)) == ("node3", "41")
    assert (tmp_path / "chunk-1").is_dir()
    assert (tmp_path / "script").read_text() == "#!/bin/sh\nexec /usr/bin/python3 -c 'print('\"'\"'a b'\"'\"')'\n"
    seen = (tmp_path / "sbatch.env").read_text().splitlines()
    assert {"SLURM_CONF=/c", "LANG=C"} < set(seen)
    assert not [one for one in seen if one.startswith(("SBATCH_", "SLURM_J", "SLURMD_"))]
    jobs.remove_waiting(["41", "42"])
    assert (tmp_path / "scancel.words").read_text().split() == ["--quiet", "--state=PENDING", "41", "42"]


def test_what_goes_wrong_is_said(tmp_path: Path) -> None:
    """A refusal, an answer that is none, and a node without the command."""
    jobs = chunk_jobs({**LEADER, "PATH": str(tmp_path)}, str(tmp_path))
    assert jobs is not None
    with pytest.raises(PoolUnreachable, match="no sbatch on this node"):
        jobs.submit(JOB)
    made_up(tmp_path, "sbatch", "echo 'sbatch: error: invalid partition' >&2; exit 1")
    with pytest.raises(ActionRefused, match="invalid partition"):
        jobs.submit(JOB)
    made_up(tmp_path, "sbatch", "echo Submitted")
    with pytest.raises(ActionRefused):
        jobs.submit(JOB)


def test_no_job_of_slurms() -> None:
    """Outside of one nobody is asked."""
    assert chunk_jobs({"PATH": "/usr/bin"}, "/") is None
