"""A state with anything in it: no reader fails but by an error that names the place, and what is sound goes on."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from drainwise.facts.errors import PoolError
from drainwise.local.database import STATE
from drainwise.local.job import AccountQuota, JobRequest, LocalNode
from drainwise.local.pool import snapshot_of
from drainwise.local.store import DaemonStore
from drainwise.pilotad.report import PilotReport
from drainwise.processes.process import Process
from more_examples import more_examples

NOW = 1795249000
REQUEST = JobRequest("alice", "alice", 8, ("sleep", "60"), 3600)
COLUMNS = {
    "jobs": (
        *("account", "user", "cores", "wall_limit", "priority", "command", "environment", "submitted", "state", "node"),
        *(
            "run",
            "started",
            "keeper_pid",
            "keeper_birth",
            "deadline",
            "removed",
            "term_sent",
            "kill_sent",
            "not_before",
        ),
        *("ended", "code", "signal", "note", "cpu_seconds"),
    ),
    "accounts": ("name", "quota"),
    "nodes": ("name", "place", "cores"),
    "reports": ("run", "report"),
}
JUNK = (
    st.integers(-(1 << 63), (1 << 63) - 1)
    | st.floats(allow_nan=False)
    | st.text(max_size=8)
    | st.binary(max_size=8)
    | st.sampled_from(
        [0, -1, 1 << 62, "{", "[]", "[7]", "{}", '{"a": 7}', "null", "1e999", "[" * 5000, b"\xff", "\ud7ff"]
    )
    | st.sampled_from(['{"heartbeat": 1}', '{"heartbeat": 1e999, "source": "x"}', '{"heartbeat": true, "source": "x"}'])
)


def made(directory: str) -> DaemonStore:
    """One job that runs and reports, one that waits, one that has ended."""
    store = DaemonStore(directory, create=True)
    store.set_account(AccountQuota("alice", 16))
    store.set_nodes([LocalNode("node1", 32)])
    for number, job_id in enumerate(store.submit(REQUEST, NOW, 3)[:2]):
        job = store.begin_start(job_id, "node1", NOW)
        assert job is not None
        store.started(job, Process(4242, 99), NOW)
        store.set_reports({job.run: PilotReport(NOW, used_cpu=3.0)})
        if number:
            store.ended(job, NOW, 0, None, "")
    return store


def damage(store: DaemonStore, table: str, column: str, value: object, where: str = "1") -> None:
    with sqlite3.connect(Path(store.directory) / STATE) as other:
        other.execute(f"UPDATE OR IGNORE {table} SET {column} = ? WHERE {where}", (value,))
    other.close()


@pytest.fixture
def sound(volatile: Path) -> Path:
    """A state that is closed: each example damages a copy of it."""
    made(str(volatile / "sound")).close()
    return volatile / "sound"


@settings(more_examples(2.5), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_whatever_stands_in_whatever_column_no_reader_fails_without_saying_where(
    sound: Path, data: st.DataObject
) -> None:
    table = data.draw(st.sampled_from(sorted(COLUMNS)))
    column = data.draw(st.sampled_from(COLUMNS[table]))
    with tempfile.TemporaryDirectory(dir=sound.parent) as directory:
        shutil.copy(sound / STATE, directory)
        with DaemonStore(directory) as store:
            runs = [job.run for job in store.jobs(ended=True)]
            damage(store, table, column, data.draw(JUNK))
            for read in (
                lambda: snapshot_of(store.state(NOW), NOW),
                store.live,
                lambda: store.jobs(ended=True),
                lambda: store.ended_runs(runs),
                lambda: store.begin_start(3, "node1", NOW),
                lambda: store.order(runs[0], NOW + 60, NOW, "test"),
                lambda: store.withdraw_order(runs[0], NOW, "test"),
            ):
                try:
                    read()
                except PoolError as fault:
                    assert str(fault)


@pytest.mark.parametrize(
    "text", ["", "{", "7", "null", '{"heartbeat": "soon", "source": "x"}', '{"heartbeat": 7}', 7, b"\xff"]
)
def test_a_report_that_is_none_costs_itself_alone(tmp_path: Path, text: object) -> None:
    with made(str(tmp_path)) as store:
        damage(store, "reports", "report", text)
        state = store.state(NOW)
        assert (state.reports, len(state.live), len(state.waiting)) == ({}, 1, 1)


@pytest.mark.parametrize("column", ["command", "environment"])
@pytest.mark.parametrize("text", ["", "{", "7", "[7]", '{"a": 7}', "null", "[" * 100_000, 7, b"\xff\xfe"])
def test_a_job_whose_command_cannot_be_read_holds_its_cores_and_cannot_be_started(
    tmp_path: Path, column: str, text: object
) -> None:
    with made(str(tmp_path)) as store:
        damage(store, "jobs", column, text)
        assert [(job.job_id, job.cores) for job in store.live()] == [(1, 8)]
        begun = store.begin_start(3, "node1", NOW)
        assert begun is not None and begun.request.command == ()


@pytest.mark.parametrize(
    ("column", "value"), [("cores", "many"), ("started", "soon"), ("keeper_pid", "x"), ("run", b"1")]
)
def test_a_value_that_cannot_be_is_named_with_its_place(tmp_path: Path, column: str, value: object) -> None:
    with made(str(tmp_path)) as store:
        damage(store, "jobs", column, value, "job_id = 1")
        with pytest.raises(PoolError, match=f"damaged: job 1 in jobs: {column} = .* mend or delete that row"):
            store.live()
