"""Which kind of client a job of Slurm is, and what its node's agent writes for it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

from drainwise.facts.client_rules import ClientRules
from drainwise.features import planned_shutdown
from drainwise.slurm.jobs.job import SlurmJob, client_of
from drainwise.slurm.jobs.scontrol_jobs import job_in
from made_up_node import public_directory

from .agent_host import AgentHost
from .recorded_cluster import recorded

RULES = ClientRules({"panda": "user=atlas* or account=atlas", "alice": "name=JAliEn*", "dirac": "comment=dirac*"})


@pytest.mark.parametrize(
    ("job", "client"),
    [
        (SlurmJob(1, user="atlas1"), "panda"),
        (SlurmJob(1, user="p", account="atlas"), "panda"),
        (SlurmJob(1, user="p", name="JAliEn.17"), "alice"),
        (SlurmJob(1, user="atlas1", name="JAliEn.17"), "alice"),
        (SlurmJob(1, user="p", comment="dirac pilot"), "dirac"),
        (SlurmJob(1, user="p"), "paper"),
    ],
)
def test_a_job_is_of_the_client_that_its_row_names(job: SlurmJob, client: str) -> None:
    assert client_of(job, RULES).name == client
    assert client_of(job, None).name == client_of(job, ClientRules()).name == "paper"


@pytest.mark.parametrize("release", ["22.05", "24.11"])
def test_slurmctld_says_what_rows_ask_for(release: str) -> None:
    """User, account, partition and name of a recorded job; a name that spells another fact hides itself alone."""
    text = recorded(release, "scontrol.txt").decode("utf-8", "replace")
    line = next(one for one in text.splitlines() if one.startswith("JobId=10 "))
    found = job_in(line, 10)
    assert found is not None
    assert (found.user, found.partitions) == (line.partition("UserId=")[2].partition("(")[0], ("main",))
    assert found.name == line.partition("JobName=")[2].partition(" ")[0]
    assert found.account == line.partition(" Account=")[2].partition(" ")[0]
    commented = job_in(line.replace(" StdErr=", " Comment=dirac  StdErr="), 10)
    assert commented is not None
    assert commented.comment == "dirac"
    forged = job_in(line.replace("JobName=", "JobName=a JobName="), 10)
    assert forged is not None
    assert forged.name == ""


@pytest.fixture
def host() -> Iterator[AgentHost]:
    """A host whose settings have rows by what each job asks."""
    with public_directory() as base:
        yield AgentHost(
            base, client_alice="name=JAliEn*", client_glideinwms="partition=gwms", client_none="account=local"
        )


KINDS: list[tuple[dict[str, Any], str]] = [
    ({"JobName": "JAliEn.1"}, "alice"),
    ({"Account": "local"}, "none"),
    ({"Partition": "gwms"}, "glideinwms"),
    ({}, "paper"),
]


@pytest.mark.daemons
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: the agent becomes each job's user")
def test_the_agent_writes_what_a_client_may_see(host: AgentHost) -> None:
    """Before an order the machine's planned shutdown, from the prolog on; and under an order."""
    planned, end = host.now + 9000, host.now + 601
    planned_shutdown.plan(host.settings.shutdown_file, planned, host.now, 0)
    keys = {"shutdowntime", "shutdowntime_job"}
    for number, (facts, _) in enumerate(KINDS, 17):
        host.start(number, limit=18_000, **facts)
        assert not keys & host.features(number).keys(), "the prolog does not know which client it is"
    host.round()
    for number, (_, client) in enumerate(KINDS, 17):
        told = {host.features(number).get(key) for key in keys}
        later = 1800 if client == "glideinwms" else 0
        assert told == ({None} if client in {"alice", "none"} else {str(planned + later)})
        assert bool(host.site_ad(number)) == (client != "none")
        host.slurm.set(number, EndTime=end, TimeLimit="00:12:00")
    host.round()
    for number, (_, client) in enumerate(KINDS, 17):
        told = {host.features(number).get(key) for key in keys}
        wanted = {"glideinwms": {str(end + 1800)}, "paper": {str(end)}}.get(client, {None})
        assert told == wanted
        assert host.site_ad(number) == (
            "" if client == "none" else f"VACATE_DESIRED = True\nPAYLOAD_DEADLINE = {end}\n"
        )
