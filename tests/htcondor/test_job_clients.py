"""Which kind of client a job is: by its own ad on the node, by its slot's ad in the agent; and what the hooks write."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from drainwise.facts.client_rules import ClientRules
from drainwise.htcondor.node.sandbox import client_in
from drainwise.htcondor.pool.slots import client_of, slot_of
from made_up_node import Job, Node, Programs, ad_text, write

USER = 54321
RULES = ClientRules(
    {
        "panda": "user=atlas* or job.x509UserProxyVOName=atlas",
        "alice": "account=group_grid.alice*",
        "dirac": "user=pilot@pool.test job.IsDirac=true job.Cores=8",
        "none": "user=local",
    }
)
JOBS: list[tuple[str, dict[str, object], dict[str, object]]] = [
    ("panda", {"Owner": "atlas7", "User": "atlas7@pool.test"}, {"RemoteOwner": "atlas7@pool.test"}),
    ("panda", {"Owner": "p", "x509UserProxyVOName": "atlas"}, {"RemoteOwner": "p@d", "PilotClient": "panda"}),
    (
        "alice",
        {"Owner": "p", "AcctGroup": "group_grid.alice", "AccountingGroup": "group_grid.alice.p"},
        {"RemoteOwner": "p@d", "AccountingGroup": "group_grid.alice.p@d"},
    ),
    (
        "dirac",
        {"Owner": "pilot", "User": "pilot@pool.test", "IsDirac": "=true", "Cores": 8},
        {"RemoteOwner": "pilot@pool.test", "RemoteUser": "pilot@pool.test", "PilotClient": "dirac"},
    ),
    ("none", {"Owner": "local"}, {"RemoteOwner": "local@pool.test"}),
    (
        "paper",
        {"Owner": "bob", "x509UserProxyVOName": "cms"},
        {"RemoteOwner": "bob@d", "x509UserProxyVOName": "atlas", "PilotClient": "paper"},
    ),
    ("paper", {"Owner": "bob", "x509UserProxyVOName": "=strcat(1)"}, {"RemoteOwner": "bob@d"}),
]


def text_of(job: dict[str, object]) -> bytes:
    """The ad in its long form; what begins with `=` stands as it is."""
    plain = ad_text({name: value for name, value in job.items() if not str(value).startswith("=")})
    return (plain + "".join(f"{name} = {str(v)[1:]}\n" for name, v in job.items() if str(v).startswith("="))).encode()


@pytest.mark.parametrize(("name", "job", "slot"), JOBS)
def test_node_and_agent_take_a_job_for_the_same_client(
    name: str, job: dict[str, object], slot: dict[str, object]
) -> None:
    found = client_in(text_of(job), RULES)
    assert found is not None
    assert found.name == name
    claimed = slot_of({"Name": "slot1_1@n", "Machine": "n", "State": "Claimed", "Cpus": 8, **slot})
    assert claimed is not None
    assert client_of(claimed, "group_grid", RULES).name == name
    assert client_of(claimed, "group_grid", None).name == client_of(claimed, "x", ClientRules()).name == "paper"


def test_an_ad_without_an_owner_tells_nothing() -> None:
    assert client_in(b'x509UserProxyVOName = "atlas"\n', RULES) is None
    assert client_in(b"", RULES) is None


# ---- the real hooks ----

ROWS = "client_alice = user=alice\nclient_panda = job.Kind=panda*\nclient_glideinwms = job.Kind=gwms\n"
FILES = (".site.ad", ".machinefeatures/shutdowntime", ".jobfeatures/shutdowntime_job")


@pytest.fixture
def with_clients(programs: Programs) -> Iterator[Programs]:
    """The node's settings have rows, and a shutdown of the machine is planned."""
    file, shutdown = Path(programs.settings), f"{os.path.dirname(programs.settings)}/shutdowntime"
    before = file.read_text()
    file.write_text(before + ROWS)
    write(shutdown, f"{int(time.time()) + 9000}\n", 0)
    try:
        yield programs
    finally:
        file.write_text(before)
        os.unlink(shutdown)


def shown(job: Job) -> list[int | None]:
    """The time in each of the three files; None for none."""
    paths = [Path(job.scratch, name) for name in FILES]
    return [int(path.read_text().split()[-1]) if path.exists() else None for path in paths]


def ordered(job: Job, deadline: int) -> dict[str, object]:
    """What the slot's ad says under an order."""
    now = int(time.time())
    left = {"MyCurrentTime": now, "RetirementTimeRemaining": max(0, deadline - now)}
    return {"PilotReclaimOrders": f"{job.job_id}@{job.started}={deadline}", "Activity": "Retiring", **left}


@pytest.mark.daemons
@pytest.mark.parametrize("kind", ["alice", "panda2", "gwms", "other"])
def test_the_hooks_write_what_a_client_may_see(node: Node, with_clients: Programs, kind: str) -> None:
    """From before its start to the end of its order, the machine's planned shutdown included."""
    hidden = kind == "alice"
    job = node.start("slot1_1", USER, int(time.time()) - 100, Owner="alice" if hidden else "p", Kind=kind)
    planned, deadline = int(time.time()) + 9000, int(time.time()) + 600
    assert with_clients.prepare(job).returncode == 0
    soon: Any = pytest.approx(planned, abs=60)
    shown_at: Any = pytest.approx(planned + (1800 if kind == "gwms" else 0), abs=60)
    later = [None, None] if hidden else [shown_at, shown_at]
    assert shown(job)[1:] == later
    node.refresh(job)
    with_clients.update(job)
    assert shown(job) == [soon, *later]
    node.refresh(job, **ordered(job, deadline))
    with_clients.update(job)
    hides: dict[str, list[int | None]] = {"alice": [None, None], "gwms": [deadline + 1800] * 2}
    seen = hides.get(kind, [deadline, deadline])
    assert shown(job) == [deadline, *seen]
    node.refresh(job)
    with_clients.update(job)
    assert shown(job)[1:] == later


@pytest.mark.daemons
@pytest.mark.parametrize(("rows", "kind", "later"), [("", "x", 1800), (ROWS, "x", 1800), (ROWS, "panda2", 0)])
def test_an_inner_htcondor_makes_a_pilot_a_glidein_where_no_row_fits(
    node: Node, programs: Programs, rows: str, kind: str, later: int
) -> None:
    """Without a word in the site file its payloads run until the deadline: it ends them 1800 s before what it reads."""
    file = Path(programs.settings)
    before = file.read_text()
    file.write_text(before + rows)
    try:
        job = node.start("slot1_1", USER, int(time.time()) - 100, Owner="p", Kind=kind)
        for name in ("execute", "log"):
            place = Path(job.scratch, "glide", name)
            place.mkdir(parents=True)
            os.chown(place, USER, USER)
        deadline = int(time.time()) + 600
        programs.prepare(job)
        node.refresh(job, **ordered(job, deadline))
        programs.update(job)
        assert shown(job) == [deadline, deadline + later, deadline + later]
    finally:
        file.write_text(before)


@pytest.mark.daemons
def test_without_its_settings_a_node_shows_no_client_what_one_must_not_see(node: Node, with_clients: Programs) -> None:
    """They may be of another version: `.site.ad` alone tells of the order then."""
    Path(with_clients.settings).write_text("tomorrow = 1\n")
    job, deadline = node.start("slot1_1", USER, int(time.time()) - 100), int(time.time()) + 600
    with_clients.prepare(job)
    node.refresh(job, **ordered(job, deadline))
    with_clients.update(job)
    assert shown(job) == [deadline, None, None]


@pytest.mark.daemons
def test_nothing_is_written_for_a_job_that_nobody_knows(node: Node, with_clients: Programs) -> None:
    """Its ad may be missing for a moment, or its user took it away: it might be one that must not see a file."""
    job = node.start("slot1_1", USER, int(time.time()) - 100)
    with_clients.prepare(job, stdin=job.stdin.replace("Owner", "Owned"))
    os.unlink(f"{job.scratch}/.job.ad")
    node.refresh(job, **ordered(job, int(time.time()) + 600))
    ran = with_clients.update(job)
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert shown(job) == [None, None, None]
