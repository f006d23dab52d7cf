"""Which process trees of a job are payloads, from tables of processes that are made up; attacks on that."""

from __future__ import annotations

import pytest
from pytest_mock import MockerFixture

from drainwise.node.payloads.payload_trees import (
    PROFILES,
    JobProcesses,
    PayloadTrees,
    job_processes,
    payload_trees,
    site_rows,
)
from drainwise.node.payloads.process_table import TICKS, orphans_by_group, process_of
from made_up_processes import UP, MadeUpTable, Row, stat_text

STARTER = Row(10, 1, age=2000, name="condor_starter")


def processes_of(table: MadeUpTable) -> JobProcesses:
    found = job_processes(table, (STARTER.pid,), orphans_by_group(table))
    assert found is not None
    return found


def found_in(*rows: Row) -> PayloadTrees:
    table = MadeUpTable(STARTER, *rows)
    return payload_trees(processes_of(table), table)


def payloads(*rows: Row) -> dict[int, float]:
    """The CPU seconds of each payload, by its first process."""
    return {one.pid: one.cpu / TICKS for one in found_in(*rows).payloads}


def test_a_plain_pilot_has_the_payloads_that_run_side_by_side() -> None:
    pilot = Row(20, 10, age=1000, ended=5000)
    first, second = Row(30, 20, age=900, cpu=800, ended=50), Row(31, 20, age=300, cpu=10)
    assert payloads(pilot, first, second, Row(40, 31, age=290, cpu=280)) == {30: 850, 31: 290}


def test_a_supervisor_below_another_one_is_no_process_of_the_job() -> None:
    """Slurm's slurmstepd of a step may have been started by that of the batch script."""
    table = MadeUpTable(STARTER, Row(11, 10, age=1500, cpu=9), Row(20, 11, age=1000, cpu=900))
    found = job_processes(table, (STARTER.pid, 11))
    assert found is not None and (found.roots, list(found.members)) == ((20,), [20])


def test_scripts_that_start_each_other_are_no_payloads() -> None:
    rows = Row(20, 10, age=1000), Row(21, 20, age=999), Row(22, 21, age=990, cpu=1)
    assert payloads(*rows, Row(30, 22, age=500, cpu=400), Row(31, 30, age=499, cpu=50)) == {30: 450}
    assert payloads(*rows, Row(30, 22, age=980, cpu=400)) == {30: 400}


def test_a_job_without_children_is_a_payload_by_its_own_work_alone() -> None:
    assert payloads(Row(20, 10, age=1000, cpu=900)) == {20: 900}
    assert payloads(Row(20, 10, age=1000, cpu=3, ended=900)) == {}


def test_a_child_that_is_young_or_idle_is_no_payload() -> None:
    rows = Row(20, 10, age=1000), Row(30, 20, age=800, cpu=700)
    assert payloads(*rows, Row(31, 20, age=3, cpu=3), Row(32, 20, age=900, cpu=1)) == {30: 700}


@pytest.mark.parametrize(
    ("age", "cpu", "counts"), [(20, 20, True), (19, 19, False), (1000, 20, True), (1000, 19, False)]
)
def test_a_payload_has_run_for_some_time_and_has_used_a_part_of_a_core(age: int, cpu: int, counts: bool) -> None:
    rows = Row(20, 10, age=1000), Row(30, 20, age=800, cpu=700)
    assert payloads(*rows, Row(31, 20, age=age, cpu=cpu)) == ({30: 700, 31: cpu} if counts else {30: 700})


@pytest.mark.parametrize(("age", "payload"), [(940, 22), (939, 21)])
def test_scripts_start_each_other_within_a_minute(age: int, payload: int) -> None:
    rows = Row(20, 10, age=1000), Row(21, 20, age=age), Row(22, 21, age=500, cpu=400)
    assert payloads(*rows) == {payload: 400}


def test_pandas_pilot_has_its_children_without_its_helpers() -> None:
    pilot = Row(21, 20, age=990, cpu=30, name="python3", line="python3 pilot3/pilot.py -q SITE ")
    rows = Row(20, 10, age=1000, line="sh runpilot2-wrapper.sh "), Row(30, 21, age=800, cpu=700, line="bash -c x ")
    found = found_in(
        pilot, *rows, Row(31, 21, age=800, cpu=90, name="prmon"), Row(32, 30, age=700, cpu=5, name="python")
    )
    assert (found.client, [one.pid for one in found.payloads]) == ("panda", [30])
    assert found.payloads[0].cpu == 705 * TICKS


@pytest.mark.parametrize("age", [0, 500])
def test_the_batch_systems_own_program_is_no_payload_of_a_glidein(age: int) -> None:
    """It transfers the job's files in a process that it forked, and each of its children is one for a moment."""
    line = "condor_starter -f -local-name slot1_1 "
    forked = Row(20, 10, age=age, cpu=age / 2, name="condor_starter", line=line)
    table = MadeUpTable(Row(10, 1, age=2000, name="condor_starter", line=line), forked)
    assert payload_trees(processes_of(table), table).client == "plain"
    inner = [Row(21, 20, age=age, name="condor_startd"), Row(22, 21, age=age, name="condor_starter", line=line)]
    table = MadeUpTable(Row(10, 1, age=2000, name="condor_starter", line=line), Row(20, 10, age=age), *inner)
    assert payload_trees(processes_of(table), table).client == "glideinwms", "that of an inner startd"


def test_diracs_and_alices_payloads_are_the_wrappers() -> None:
    pool = Row(20, 10, age=1000, name="python", line="python dirac-agent WorkloadManagement/JobAgent ")
    wrapper = Row(30, 20, age=900, cpu=1, name="python", line="python /tmp/job/Wrapper/Wrapper_17 x.json ")
    within = Row(31, 30, age=890, cpu=5, name="python", line="python /tmp/job/Wrapper/Wrapper_17 child ")
    assert found_in(pool, wrapper, within).client == "dirac"
    assert payloads(pool, wrapper, within) == {30: 6}
    runner = Row(20, 10, age=1000, name="java", line="java alien.site.JobRunner ")
    job = Row(30, 20, age=900, name="java", line="java -Xmx256m alien.site.JobWrapper ")
    assert (found_in(runner, job).client, payloads(runner, job)) == ("alice", {30: 0})


def later(client: str, first: PayloadTrees, *rows: Row) -> PayloadTrees:
    """What a look finds a minute after the one that found `first`."""
    table = MadeUpTable(STARTER, *rows)
    assert first.client == client
    return payload_trees(processes_of(table), table, client=first.client, marks=first.marks, looked=UP - 60 * TICKS)


def test_what_is_known_from_the_last_look_is_counted_once() -> None:
    """Who has begun right before it is looked at again: DIRAC's wrapper, PanDA's pilot."""
    agent = Row(20, 10, age=95, name="dirac-agent", line="python3 /x/dirac-agent WorkloadManagement/JobAgent ")
    wrapper = Row(30, 20, age=90, cpu=9, name="python3.13", line="python /tmp/job/Wrapper/Wrapper_17 ")
    found = later("dirac", found_in(agent, wrapper), agent, wrapper)
    assert [one.pid for one in found.payloads] == [30] and len(found.marks) == 1
    pilot = Row(20, 10, age=90, name="python3", line="python3 pilot.py -q SITE ")
    payload = Row(30, 20, age=80, cpu=70)
    assert [one.pid for one in later("panda", found_in(pilot, payload), pilot, payload).payloads] == [30]


def test_between_two_payloads_diracs_pilot_has_none() -> None:
    """Its own work is no payload, nor what has ended below it: before the first, between two, after the last."""
    agent = Row(20, 10, age=600, cpu=20, ended=300, name="dirac-agent", line="python3 /x/dirac-agent W/JobAgent ")
    wrapper = Row(30, 20, age=90, cpu=9, name="python3.13", line="python /tmp/job/Wrapper/Wrapper_17 ")
    between = later("dirac", found_in(agent, wrapper), agent)
    assert (between.client, between.payloads, between.marks) == ("dirac", (), ())
    script = Row(19, 10, age=610, line="sh wrapper.sh ")
    first = found_in(script, agent._replace(parent=19, line="python3 /x/dirac-agent WorkloadManagement/JobAgent "))
    assert (first.client, first.payloads) == ("dirac", ())
    again = wrapper._replace(pid=31, age=30, line="python /tmp/job/Wrapper/Wrapper_18 ")
    assert [one.pid for one in later("dirac", between, agent, again).payloads] == [31]


def test_a_pilot_that_has_gone_leaves_what_works_after_it() -> None:
    """Of a client whose pilot is known by itself, and who is alone counts without what has ended below it."""
    pilot = Row(20, 10, age=900, name="python3", line="python3 pilot.py -q SITE ")
    script = Row(21, 10, age=800, cpu=100, ended=700, line="sh cleanup.sh ")
    found = later("panda", found_in(pilot, Row(30, 20, age=80, cpu=70)), script)
    assert (found.client, [(one.pid, one.cpu) for one in found.payloads]) == ("plain", [(21, 100 * TICKS)])


def test_a_site_adds_its_own() -> None:
    payload = Row(30, 21, age=300, cpu=200, line="/cvmfs/x/cmsRun -j pset.py ")
    table = MadeUpTable(STARTER, Row(20, 10, age=1000), Row(21, 20, age=400), payload)
    found = payload_trees(processes_of(table), table, site_rows("cms=cmsRun, Wrong Name=x, y="))
    assert (found.client, [one.pid for one in found.payloads]) == ("cms", [30])
    assert site_rows("Wrong Name=xyz,y=") == PROFILES == site_rows(None)


def test_command_lines_are_read_once(mocker: MockerFixture) -> None:
    read = mocker.spy(MadeUpTable, "command_line")
    rows = Row(20, 10, age=1000, line="sh "), Row(21, 20, age=990, name="python3", line="python3 pilot.py -q ")
    table = MadeUpTable(STARTER, *rows, Row(30, 21, age=800, cpu=700, name="python"))
    first = payload_trees(processes_of(table), table)
    read.assert_called()
    read.reset_mock()
    later = MadeUpTable(STARTER, *rows, Row(30, 21, age=800, cpu=700, name="python"))
    assert payload_trees(processes_of(later), later, client=first.client, marks=first.marks, looked=UP) == first
    read.assert_not_called()


@pytest.mark.parametrize(
    ("client", "name", "line"),
    [
        ("alice", "java", "java -cp alien.jar alien.site.JobWrapper"),
        ("dirac", "python3", "python3 job/Wrapper/Wrapper_7"),
        ("panda", "python3", "python3 pilot.py -q X"),
        ("glideinwms", "condor_starter", "condor_starter -f"),
    ],
)
def test_a_payload_that_is_young_for_several_looks_is_one(client: str, name: str, line: str) -> None:
    """Its command line may be read again; it counts once, also where an earlier look counted it twice."""
    found = None
    for age in (25, 30, 35, 40, 90, 160):
        rows = Row(20, 10, age=age), Row(21, 20, age=age, cpu=age, name=name, line=line), Row(22, 21, age=age, cpu=age)
        table = MadeUpTable(STARTER, *rows, now=UP + age * TICKS)
        marks = () if found is None else found.marks * 2
        found = payload_trees(
            processes_of(table), table, client=client, marks=marks, looked=UP + (age - 5) * TICKS if marks else 0
        )
        assert (found.client, len(found.payloads), len(found.marks)) == (client, 1, 1)


def test_a_process_that_left_its_parents_is_of_the_job_of_its_session_or_group() -> None:
    """A payload that is a daemon is still its job's; what other jobs and daemons are is not."""
    pilot = Row(20, 10, age=1000, session=20, group="/htcondor/slot1")
    orphan, grouped = Row(30, 1, age=900, cpu=800, session=20), Row(31, 1, age=900, cpu=700, group="/htcondor/slot1/x")
    foreign = Row(40, 1, age=900, cpu=800, group="/htcondor/slot2"), Row(41, 1, age=900, cpu=800, session=41)
    assert payloads(pilot, orphan, grouped, *foreign) == {30: 800, 31: 700}


def test_a_pool_without_groups_of_its_own_takes_no_orphans() -> None:
    starter = STARTER._replace(group="/init.scope")
    table = MadeUpTable(starter, Row(20, 10, group="/init.scope"), Row(40, 1, cpu=90, group="/init.scope"))
    assert set(processes_of(table).members) == {20}


def test_a_group_of_slurm_is_its_jobs_whatever_is_below_it() -> None:
    step = STARTER._replace(group="/slurm/job_7/step_batch/slurm")
    table = MadeUpTable(
        step,
        Row(20, 10, group="/slurm/job_7/step_batch/user/task_0"),
        Row(40, 1, group="/slurm/job_7/step_0/user/task_0"),
        Row(41, 1, group="/slurm/job_77/step_0"),
    )
    assert set(processes_of(table).members) == {20, 40}


def test_more_processes_than_a_job_may_have_tell_nothing_and_cost_nobody_else() -> None:
    bomb = [Row(1000 + n, 20, age=900, cpu=900) for n in range(2000)]
    table = MadeUpTable(STARTER, Row(20, 10, age=1000), *bomb, Row(11, 1), Row(12, 11, cpu=90))
    assert job_processes(table, (STARTER.pid,)) is None
    neighbour = job_processes(table, (11,))
    assert neighbour is not None and [one.pid for one in payload_trees(neighbour, table).payloads] == [12]


def test_payloads_are_counted_up_to_a_bound() -> None:
    many = [Row(1000 + n, 20, age=900, cpu=900, name="python") for n in range(296)]
    assert len(payloads(Row(20, 10, age=1000), *many)) == 256


def test_who_renames_itself_shows_as_its_own_pilots_payload() -> None:
    """Its own, once, with no more than it has used: a name makes no time."""
    fakes = [Row(30 + n, 29 + n, age=900, name="python", line="python /job/Wrapper_1 ") for n in range(50)]
    assert payloads(Row(29, 10, age=1000), *fakes) == {30: 0}


@pytest.mark.parametrize("name", ["a) S 1 1 1 (b", "sh\n(x)) ", "((((", "))))", "\x00\xff"])
def test_a_name_of_brackets_changes_nothing(name: str) -> None:
    found = process_of(stat_text(Row(30, 20, age=50, cpu=7, ended=2, session=5, name=name)))
    assert (found.parent, found.session, found.cpu, found.own) == (20, 5, 9 * TICKS, 7 * TICKS)


def test_parents_that_run_in_a_circle_end() -> None:
    """No kernel says so; a table that was read over some time may."""
    circle = Row(30, 31, age=900, session=20), Row(31, 30, age=900, session=20)
    table = MadeUpTable(STARTER, Row(20, 10, age=900), *circle)
    assert payload_trees(processes_of(table), table).client == "plain"
