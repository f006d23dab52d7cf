"""Chunk jobs in HTCondor: their submit description, the schedd that gets it, and which of them may be removed."""

from __future__ import annotations

from pathlib import Path

import pytest

from drainwise.facts.errors import ActionRefused, PoolUnreachable, UsageError
from drainwise.htcondor.launch.chunk_jobs import chunk_jobs, description
from drainwise.systems.chunk_jobs import ChunkJob

JOB = ChunkJob(2, 0.25, ("/usr/bin/python3", "-c", "print('a \"b\"', $1)"), "chunk-1", 90, ("+IsPilot = True",))
JOB_AD = """\
AcctGroup = "group_atlas"
GlobalJobId = "ce.site.org#12.0#1795250800"
RequestCpus = 8
RequestMemory = 16000
"""


def leader(place: Path, job: str = JOB_AD) -> dict[str, str]:
    """The variables of a leader's job."""
    (place / ".job.ad").write_text(job)
    (place / ".machine.ad").write_text('Cpus = 8\nMachine = "wn7.site.org"\n')
    return {
        "_CONDOR_JOB_AD": f"{place}/.job.ad",
        "_CONDOR_MACHINE_AD": f"{place}/.machine.ad",
        "_CONDOR_SCRATCH_DIR": str(place),
        "TMPDIR": str(place),
        "CONDOR_CONFIG": "/c",
        "_CONDOR_SLOT": "slot1_1",
        "_CONDOR_SEC_TOKEN_DIRECTORY": f"{place}/tokens",
        "PATH": f"{place}/bin:/usr/bin:/bin",
    }


def made_up(place: Path, name: str, script: str) -> None:
    """A tool that writes down its words, its variables and what it reads."""
    path = place / "bin" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {place}/{name}.words\nenv > {place}/{name}.env\n{script}\n')
    path.chmod(0o755)


def test_a_chunk_job_starts_on_the_leaders_machine_alone() -> None:
    """The leader's group, its part of the memory; lines of the user's come last; macros and quotes stay words."""
    ad: dict[str, str | int | float | bool] = {"GlobalJobId": "ce#1.0#9", "RequestMemory": 16000}
    ad["AcctGroup"] = "group_atlas"
    lines = description(JOB, ad, "wn7.site.org").splitlines()
    assert {
        'requirements = Machine == "wn7.site.org"',
        "request_cpus = 2",
        "request_memory = 4000",
        "accounting_group = group_atlas",
        'My.DrainwiseLeader = "ce#1.0#9"',
    } < set(lines)
    assert """arguments = "'-c' 'print(''a ""b""'', $(DOLLAR)1)'\"""" in lines
    assert lines[-2:] == ["+IsPilot = True", "queue"]


def test_it_goes_to_the_schedd_of_the_leader(tmp_path: Path) -> None:
    """Only those of this leader that are idle are removed; none of them left is no fault."""
    made_up(tmp_path, "condor_submit", f"cat > {tmp_path}/description; echo '31.0 - 31.0'")
    made_up(tmp_path, "condor_rm", 'echo "Couldn\'t find/remove all jobs matching constraint" >&2; exit 1')
    jobs = chunk_jobs(leader(tmp_path))
    assert jobs is not None
    assert (jobs.node, jobs.submit(JOB)) == ("wn7.site.org", "31.0")
    assert (tmp_path / "condor_submit.words").read_text().split() == ["-name", "ce.site.org", "-terse", "-"]
    seen = (tmp_path / "condor_submit.env").read_text()
    assert "CONDOR_CONFIG=/c" in seen
    assert [one for one in seen.splitlines() if "_CONDOR_" in one] == [f"_CONDOR_SEC_TOKEN_DIRECTORY={tmp_path}/tokens"]
    assert "TMPDIR" not in seen, "the leader's own directory goes with it"
    jobs.remove_waiting(["31.0", "32.0"])
    words = (tmp_path / "condor_rm.words").read_text()
    assert 'JobStatus == 1 && DrainwiseLeader == "ce.site.org#12.0#1795250800"' in words
    assert "(ClusterId == 31 || ClusterId == 32)" in words


def test_what_goes_wrong_is_said(tmp_path: Path) -> None:
    """A refusal, a node without the tools, and ads that say too little."""
    jobs = chunk_jobs({**leader(tmp_path), "PATH": str(tmp_path)})
    assert jobs is not None
    with pytest.raises(PoolUnreachable, match="no condor_submit on this node"):
        jobs.submit(JOB)
    for tool in ("condor_submit", "condor_rm"):
        made_up(tmp_path, tool, "echo 'AUTHENTICATE:1003' >&2; exit 1")
    jobs = chunk_jobs(leader(tmp_path))
    assert jobs is not None
    with pytest.raises(ActionRefused, match="AUTHENTICATE"):
        jobs.submit(JOB)
    with pytest.raises(ActionRefused, match="AUTHENTICATE"):
        jobs.remove_waiting(["31.0"])
    with pytest.raises(UsageError, match="GlobalJobId"):
        chunk_jobs(leader(tmp_path, "RequestCpus = 8\n"))
    (tmp_path / ".job.ad").unlink()
    environment = {"_CONDOR_JOB_AD": f"{tmp_path}/.job.ad", "_CONDOR_MACHINE_AD": f"{tmp_path}/.machine.ad"}
    with pytest.raises(UsageError, match="No such file"):
        chunk_jobs(environment)


def test_no_job_of_htcondors() -> None:
    """Outside of one nobody is asked."""
    assert chunk_jobs({"PATH": "/usr/bin"}) is None
