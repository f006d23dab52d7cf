"""What the real cluster promises to the tests built on it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import slurm_cluster
from killed_owner import require_nothing_left
from real_daemons import running_sites
from real_daemons.traces import host_state, namespace_of, processes_in
from real_daemons.waiting import wait_for
from slurm_cluster import (
    Account,
    CommandError,
    DaemonsError,
    DeadlineError,
    Qos,
    RootUnavailableError,
    SlurmCluster,
    obtain_root,
)
from slurm_cluster.jobs import expand, parse_jobs
from slurm_cluster.settings import merged

SCRIPTS = str(Path(slurm_cluster.__file__).parents[1])


@pytest.fixture(autouse=True)
def _leave_it_as_it_was(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test that shares the cluster leaves it without jobs."""
    yield
    if "slurm" in request.fixturenames:
        request.getfixturevalue("slurm").cancel_all()


def finished(cluster: SlurmCluster, number: int) -> str:
    """The state in which a job has ended."""
    ended = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL")
    cluster.wait_for(lambda: cluster.job(number).state in ended, 30, f"the end of job {number}")
    return cluster.job(number).state


def starts(cluster: SlurmCluster, number: int) -> None:
    cluster.wait_for(lambda: cluster.job(number).state == "RUNNING", 30, f"job {number} to run")


def shown(cluster: SlurmCluster) -> dict[str, str]:
    """The live configuration."""
    lines = cluster.run(["scontrol", "show", "config"]).stdout.splitlines()
    return {name.strip(): value.strip() for name, equals, value in (line.partition("=") for line in lines) if equals}


# ---- a site in small ----


def test_version_is_the_one_the_release_ships(slurm: SlurmCluster) -> None:
    assert slurm.version[:2] == {"bookworm": (22, 5), "trixie": (24, 11)}[slurm.release]


def test_every_node_offers_the_faked_cores(slurm: SlurmCluster) -> None:
    lines = slurm.run(["sinfo", "--noheader", "--Node", "--format=%N %c %T"]).stdout.splitlines()
    free = [line.replace("planned", "idle") for line in lines]  # kept for a job that has gone
    assert free == [f"node{number} 8 idle" for number in range(1, 5)]


def test_a_job_runs_as_its_user_on_the_node_it_asked_for(slurm: SlurmCluster) -> None:
    job = slurm.submit("id -un; id -Gn; hostname; echo $SLURMD_NODENAME; pwd", "alice", ["--nodelist=node3"])
    assert finished(slurm, job) == "COMPLETED"
    output = slurm.run(["cat", f"slurm-{job}.out"], user="alice").stdout
    assert output.split() == ["alice", "alice", "node3", "node3", "/home/alice"]
    assert slurm.job(job).nodes == ("node3",)


def test_a_job_of_several_nodes_has_a_step_on_each(slurm: SlurmCluster) -> None:
    job = slurm.submit("srun hostname", "bob", ["--nodes=3", "--ntasks-per-node=1", "--cpus-per-task=8"])
    assert finished(slurm, job) == "COMPLETED"
    hosts = slurm.run(["cat", f"slurm-{job}.out"], user="bob").stdout.split()
    assert sorted(hosts) == list(slurm.job(job).nodes)
    assert len(hosts) == 3
    assert slurm.job(job).cores == 24


def test_the_accounting_has_the_job(slurm: SlurmCluster) -> None:
    job = slurm.submit("exit 3", "bob", ["--cpus-per-task=2"])
    assert finished(slurm, job) == "FAILED"
    wanted = {"User": "bob", "Account": "cms", "State": "FAILED", "ExitCode": "3:0", "AllocCPUS": "2"}
    slurm.wait_for(lambda: slurm.accounting(job, *wanted) == [wanted], 10, "the job's record")


def test_accounts_have_their_shares(slurm: SlurmCluster) -> None:
    """Fairshare is on: atlas (alice) is owed twice as much as cms (bob), and priorities come from it."""
    lines = slurm.run(["sshare", "-a", "-n", "-P", "-o", "Account,User,RawShares"]).stdout.splitlines()
    shares = {tuple(line.strip().split("|")) for line in lines}
    assert {("atlas", "", "2"), ("atlas", "alice", "1"), ("cms", "", "1"), ("cms", "bob", "1")} <= shares
    assert shown(slurm)["PriorityType"] == "priority/multifactor"
    job = slurm.submit("true", "bob", ["--hold"])
    assert (slurm.job(job).account, slurm.job(job).qos) == ("cms", "normal")


def test_prolog_and_epilog_run_as_root_on_every_node_of_the_job(slurm: SlurmCluster) -> None:
    for name in ("Prolog", "Epilog"):
        note = f'echo {name} $SLURM_JOB_ID $(/usr/bin/id -un) $(/bin/hostname) "$SLURMD_NODENAME" >>/run/notes\n'
        slurm.write(f"/etc/site/{name}", f"#!/bin/sh\n{note}", mode=0o755)
    slurm.configure("Prolog=/etc/site/Prolog\nEpilog=/etc/site/Epilog\n")
    slurm.reconfigure()
    try:
        job = slurm.submit("true", "alice", ["--nodes=2", "--nodelist=node2,node4"])
        for node in ("node2", "node4"):
            notes = Path(slurm.path("/run/notes", node))
            slurm.wait_for(lambda notes=notes: notes.exists() and "Epilog" in notes.read_text(), 30, "the epilog")  # type: ignore[misc]
            assert notes.read_text().splitlines() == [
                f"{name} {job} root {node} {node}" for name in ("Prolog", "Epilog")
            ]
        assert not os.path.exists(slurm.path("/run/notes", "node1"))
    finally:
        slurm.configure("")
        slurm.reconfigure()


def test_a_plain_user_is_refused_administration(slurm: SlurmCluster) -> None:
    job = slurm.submit("sleep 600", "alice")
    starts(slurm, job)
    comment = ["scontrol", "update", f"JobId={job}", "AdminComment=mine"]
    for command in (["scontrol", "update", "NodeName=node1", "State=DRAIN", "Reason=x"], comment):
        assert slurm.run(command, user="alice", check=False).returncode != 0
    assert slurm.run(["scancel", str(job)], user="bob", check=False).returncode != 0
    assert slurm.job(job).state == "RUNNING"
    slurm.run(comment, user="slurm")
    slurm.run(comment, user="root")


def test_a_node_has_its_own_run_and_tmp_and_shares_the_rest(slurm: SlurmCluster) -> None:
    slurm.run(["sh", "-c", "for d in /run /tmp /var/tmp /home/alice; do echo $d > $d/mark; done"], node="node1")
    try:
        for directory in ("/run", "/tmp", "/var/tmp"):
            assert slurm.run(["cat", f"{directory}/mark"], node="node1").stdout == f"{directory}\n"
            assert Path(slurm.path(f"{directory}/mark", "node1")).read_text() == f"{directory}\n"
            assert slurm.run(["cat", f"{directory}/mark"], node="node2", check=False).returncode != 0
        assert slurm.run(["cat", "/home/alice/mark"], node="node2").stdout == "/home/alice\n"
    finally:
        slurm.run(["rm", "/run/mark", "/tmp/mark", "/var/tmp/mark", "/home/alice/mark"], node="node1")


# ---- commands ----


def test_a_command_sees_its_machine_and_a_clean_environment(
    slurm: SlurmCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SBATCH_ACCOUNT", "nobody")
    script = ["sh", "-c", "hostname; pwd; id -un; env"]
    host, directory, user, *variables = slurm.run(
        script, user="bob", node="node2", environment={"A": "b c"}
    ).stdout.splitlines()
    assert (host, directory, user) == ("node2", "/home/bob", "bob")
    assert {line.partition("=")[0] for line in variables} - {"PWD", "OLDPWD", "SHLVL", "_"} == {
        *("PATH", "LANG", "USER", "LOGNAME", "HOME", "A")
    }


@pytest.mark.parametrize(
    ("where", "complaint"),
    [({"node": "node9"}, "no machine 'node9'.*central, node1"), ({"user": "eve"}, "no user 'eve'")],
)
def test_an_unknown_machine_or_user_is_an_error_that_names_it(
    slurm: SlurmCluster, where: dict[str, str], complaint: str
) -> None:
    with pytest.raises(DaemonsError, match=complaint):
        slurm.run(["true"], user=where.get("user", "root"), node=where.get("node", "central"))


def test_a_command_that_hangs_is_ended_with_its_process(slurm: SlurmCluster) -> None:
    with pytest.raises(CommandError, match="sleep 4711 ended with code 124"):
        slurm.run(["sleep", "4711"], timeout=0.3)
    assert "sleep 4711" not in slurm.run(["ps", "-eo", "args"]).stdout


def test_a_wait_in_vain_says_for_what_and_shows_the_logs(slurm: SlurmCluster) -> None:
    with pytest.raises(DeadlineError) as error:
        slurm.wait_for(lambda: 0, 0.1, "the end of time")
    assert "waited 0.3 s for the end of time; last value: 0" in str(error.value)
    assert "--- slurmctld\n" in str(error.value)
    assert "--- node4\n" in str(error.value)


# ---- from outside ----

OUTSIDE = """
import json, subprocess, sys
def ask(*argv, text=""):
    return subprocess.run(argv, input=text, capture_output=True, text=True)
mine = ask("squeue", "--me", "--noheader", "--format=%A").stdout.split()
batch = ask("scontrol", text=f"update JobId={mine[0]} AdminComment=by_stdin\\n")
print(json.dumps({"mine": mine, "python": sys.executable, "refused": "denied" in batch.stdout + batch.stderr,
                  "unknown": ask("scontrol", "show", "job", "4711").returncode}))
"""


@pytest.mark.parametrize(("user", "administers"), [("alice", False), ("root", True)])
def test_a_program_of_the_host_uses_the_clusters_tools_as_a_user(
    slurm: SlurmCluster, user: str, administers: bool
) -> None:
    """The suite's own Python finds squeue and scontrol on its PATH; input, output and exit code pass."""
    job = slurm.submit("true", "alice", ["--hold"])
    own = slurm.submit("true", user, ["--hold"]) if user == "alice" else job
    script = OUTSIDE.replace('"--me", ', "") if administers else OUTSIDE
    said = json.loads(slurm.run_outside([sys.executable, "-c", script], user=user).stdout)
    assert set(said["mine"]) == {str(job), str(own)}
    assert said["python"] == sys.executable
    assert said["refused"] is not administers
    assert said["unknown"] == 1


def test_a_tool_used_from_outside_ends_with_the_program_that_called_it(slurm: SlurmCluster) -> None:
    def at_work() -> bool:
        # Not what becomes squeue: it is bound to its caller by its last step before that.
        return any(
            line.startswith("squeue --iterate=1") for line in slurm.run(["ps", "-eo", "args"]).stdout.splitlines()
        )

    command = slurm.outside_command(["squeue", "--iterate=1"])
    with subprocess.Popen(command, env=slurm.outside_env("bob"), stdout=subprocess.PIPE) as caller:
        slurm.wait_for(at_work, 10, "squeue inside")
        caller.kill()
        slurm.wait_for(lambda: not at_work(), 30, "the end of squeue inside")


# ---- jobs as the harness shows them ----

NAME = "a \"b\" 'c'; $(d)|\\ é\u2028,\n\tX=1"


def test_what_a_user_calls_a_job_does_not_disturb_the_list(slurm: SlurmCluster) -> None:
    job = slurm.submit("true", "alice", ["--hold", f"--job-name={NAME}"])
    assert [(found.id, found.user) for found in slurm.jobs("--user=alice", "--states=PENDING")] == [(job, "alice")]
    assert slurm.job(job).name == NAME
    assert slurm.job(job).reason == "JobHeldUser"


def test_tasks_of_arrays_and_parts_of_heterogeneous_jobs_are_jobs(slurm: SlurmCluster) -> None:
    array = slurm.submit("sleep 600", "alice", ["--array=0-1"])
    starts(slurm, array)
    tasks = [f"--jobs={array}"]
    slurm.wait_for(lambda: {job.state for job in slurm.jobs(*tasks)} == {"RUNNING"}, 30, "both tasks to run")
    assert {job.label for job in slurm.jobs(*tasks)} == {f"{array}_0", f"{array}_1"}
    mixed = slurm.submit("sleep 600", "bob", ["--ntasks=1", ":", "--ntasks=1", "--cpus-per-task=8"])
    starts(slurm, mixed)
    parts = [job for job in slurm.jobs() if job.label.startswith(f"{mixed}+")]
    assert [(job.label, job.cores) for job in parts] == [(f"{mixed}+0", 1), (f"{mixed}+1", 8)]
    assert all(0 < job.start < time.time() < job.end for job in parts)


def test_a_node_that_slurm_drained_for_a_step_that_did_not_end_is_resumed(slurm: SlurmCluster) -> None:
    """So one job that proctrack/linuxproc could not end does not fail the tests after it; other drains stay."""
    drain = ["scontrol", "update", "State=DRAIN"]
    slurm.run([*drain, "NodeName=node1", "Reason=Kill task failed"])
    slurm.run([*drain, "NodeName=node2", "Reason=disk"])
    slurm.cancel_all()
    states = slurm.run(["sinfo", "--noheader", "--Node", "--format=%N %T"]).stdout.split()
    slurm.run(["scontrol", "update", "NodeName=node2", "State=RESUME"])
    resumed, drained = (state.rstrip("*") for state in states[1:4:2])  # * for a moment
    assert resumed in {"idle", "planned"} and drained == "drained"  # planned: the backfill scheduler has looked at it


def test_a_record_that_squeue_cut_short_is_an_error() -> None:
    with pytest.raises(DaemonsError, match="2 fields"):
        parse_jobs("\x1e12\x1f12")


@pytest.mark.parametrize(
    ("nodes", "names"),
    [
        ("", ()),
        ("node1", ("node1",)),
        ("node[1-3,5]", ("node1", "node2", "node3", "node5")),
        ("central,node[9-11]", ("central", "node9", "node10", "node11")),
    ],
)
def test_node_lists_are_expanded(nodes: str, names: tuple[str, ...]) -> None:
    assert expand(nodes) == names


# ---- configuration ----


def test_a_later_line_takes_the_place_of_an_earlier_one() -> None:
    text = merged(
        "A=1\n# a comment\nB=2\nNodeName=n1 CPUs=1\nNodeName=n2 CPUs=1\n", "b=3\nA=\nNodeName=n2 CPUs=8\nC = x y\n"
    )
    assert text == "b=3\nNodeName=n1 CPUs=1\nNodeName=n2 CPUs=8\nC = x y\n"


@pytest.mark.parametrize("line", ["KillWait", "Kill Wait=5", "=5"])
def test_a_line_that_is_no_setting_is_refused(line: str) -> None:
    with pytest.raises(DaemonsError, match=r"is no line of slurm\.conf: expected Key=Value"):
        merged(f"A=1\n{line}\n")


def test_reconfigure_returns_when_the_daemons_have_read_the_new_text(slurm: SlurmCluster) -> None:
    """slurmctld shows it, and a slurmd acts on it at once."""
    before = shown(slurm)
    slurm.write("/etc/site/task_prolog", "#!/bin/sh\necho export FROM_THE_SITE=$SLURMD_NODENAME\n", mode=0o755)
    slurm.configure("TaskProlog=/etc/site/task_prolog\nKillWait=7\nPrologFlags=\n")
    slurm.reconfigure()
    try:
        changed = {name: value for name, value in shown(slurm).items() if before.get(name) != value}
        assert changed["KillWait"] == "7 sec"
        assert changed["PrologFlags"] == "(null)"
        job = slurm.submit("echo $FROM_THE_SITE", "alice", ["--nodelist=node4"])
        finished(slurm, job)
        assert slurm.run(["cat", f"slurm-{job}.out"], user="alice").stdout == "node4\n"
    finally:
        slurm.configure("")
        slurm.reconfigure()
    assert {name: value for name, value in shown(slurm).items() if "KillWait" in name} == {"KillWait": "5 sec"}


def test_a_restart_gives_new_daemons_and_leaves_jobs_running(slurm: SlurmCluster) -> None:
    job = slurm.submit("sleep 600", "alice")
    starts(slurm, job)
    names = ("slurmctld", *slurm.node_names)
    before = {slurm.daemon_pid(name) for name in names}
    slurm.restart()
    assert not before & {slurm.daemon_pid(name) for name in names}
    assert slurm.job(job).state == "RUNNING"


def test_a_folder_copied_in_belongs_to_whom_it_should(slurm: SlurmCluster, tmp_path: Path) -> None:
    program = tmp_path / "site" / "bin" / "hello"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\necho hello\n")
    program.chmod(0o755)
    slurm.copy_in(str(tmp_path / "site"), "/opt/copied", owner="alice")
    assert slurm.run(["/opt/copied/bin/hello"], user="bob", node="node2").stdout == "hello\n"
    assert slurm.run(["stat", "-c", "%U", "/opt/copied/bin", "/opt/copied/bin/hello"]).stdout.split() == ["alice"] * 2


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"nodes": 0}, "1 to 64 nodes, not 0"),
        ({"release": "slink"}, "unknown release 'slink'; known: bookworm, trixie, sid"),
        ({"config": "nonsense"}, "'nonsense' is no line of slurm.conf"),
    ],
)
def test_a_wrong_argument_is_refused_before_anything_starts(arguments: dict[str, object], complaint: str) -> None:
    with pytest.raises(DaemonsError, match=complaint), SlurmCluster(**arguments):  # type: ignore[arg-type]
        pytest.fail("it started")


# ---- faults ----


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_job_goes_on_and_ends_while_slurmctld_is_away(slurm: SlurmCluster, how: signal.Signals) -> None:
    """After a crash too, once slurmctld had saved that the job runs."""
    job = slurm.submit("until [ -e goon ]; do sleep 0.1; done; echo done", "alice")
    starts(slurm, job)
    output = Path(slurm.path(f"/home/alice/slurm-{job}.out"))
    slurm.wait_for(output.exists, 10, "the job's start")
    if how == signal.SIGKILL:
        slurm.run(["scontrol", "update", f"JobId={job}", "AdminComment=it-runs"])
        state = Path(slurm.path("/srv/central/state/job_state"))
        slurm.wait_for(lambda: state.exists() and b"it-runs" in state.read_bytes(), 20, "the state to be saved")
    slurm.kill_daemon("slurmctld", how)
    try:
        assert not slurm.is_running("slurmctld")
        assert slurm.run(["squeue"], check=False, timeout=1).returncode != 0
        with pytest.raises(DaemonsError, match="slurmctld does not run"):
            slurm.kill_daemon("slurmctld")
        slurm.run(["touch", "goon"], user="alice")
        slurm.wait_for(lambda: output.read_text() == "done\n", 10, "the job's work without slurmctld")
    finally:
        slurm.start_daemon("slurmctld")
        slurm.wait_until_complete()
        slurm.run(["rm", "-f", "goon"], user="alice")
    assert finished(slurm, job) == "COMPLETED"


def test_a_node_whose_slurmd_is_dead_comes_back_with_its_job(slurm: SlurmCluster) -> None:
    job = slurm.submit("sleep 600", "bob", ["--nodelist=node2"])
    starts(slurm, job)
    slurm.kill_daemon("node2", signal.SIGTERM)
    assert not slurm.is_running("node2")
    slurm.wait_until_complete()  # without it
    slurm.start_daemon("node2")
    slurm.wait_until_complete()
    assert slurm.job(job).state == "RUNNING"
    assert "-N node2" in slurm.run(["ps", "-eo", "args"]).stdout


def test_the_accounting_catches_up_after_the_database_was_dead(slurm: SlurmCluster) -> None:
    known = [{"State": "COMPLETED"}]
    # A slurmctld that was cut off before it had registered does not come back to its accounting.
    before = slurm.submit("true", "alice")
    slurm.wait_for(lambda: slurm.accounting(before, "State") == known, 60, "the accounting to work")
    slurm.kill_daemon("slurmdbd")
    slurm.kill_daemon("mariadbd")
    try:
        job = slurm.submit("true", "alice")
        assert finished(slurm, job) == "COMPLETED"
    finally:
        slurm.start_daemon("mariadbd")
        slurm.start_daemon("slurmdbd")
    slurm.wait_for(lambda: slurm.accounting(job, "State") == known, 120, "the record of a job of that time")


def test_an_unknown_daemon_is_an_error_that_names_the_known(slurm: SlurmCluster) -> None:
    with pytest.raises(DaemonsError, match=r"no daemon 'slurmd'.*known: munged, mariadbd, slurmdbd, slurmctld, node1"):
        slurm.kill_daemon("slurmd")


# ---- the newest Slurm, which drainwise does not support yet ----


@pytest.fixture(scope="module")
def newest() -> Iterator[SlurmCluster]:
    """A cluster of sid's Slurm."""
    try:
        obtain_root("sid")
    except RootUnavailableError as error:
        pytest.skip(f"no root file system of sid: {error}")
    with SlurmCluster(nodes=2, cpus=4, release="sid") as running:
        yield running


def test_a_young_slurmctld_of_the_newest_slurm_starts_after_a_crash(newest: SlurmCluster) -> None:
    assert not os.path.exists(newest.path("/srv/central/state/assoc_usage")), "it has saved its state"
    newest.kill_daemon("slurmctld")
    newest.start_daemon("slurmctld")
    newest.wait_until_complete()


def test_the_newest_slurm_runs_and_accounts_a_users_job(newest: SlurmCluster) -> None:
    assert newest.version[:2] == (26, 5)
    nodes = newest.run(["sinfo", "--noheader", "--Node", "--format=%N %c %T"]).stdout.splitlines()
    assert nodes == ["node1 4 idle", "node2 4 idle"]
    job = newest.submit("id -un; hostname", "alice", ["--nodelist=node2"])
    assert finished(newest, job) == "COMPLETED"
    assert newest.run(["cat", f"slurm-{job}.out"], user="alice").stdout == "alice\nnode2\n"
    wanted = {"User": "alice", "Account": "atlas", "State": "COMPLETED", "ExitCode": "0:0"}
    newest.wait_for(lambda: newest.accounting(job, *wanted) == [wanted], 10, "the job's record")


# ---- nothing is shared, nothing stays ----


def test_the_cluster_can_change_neither_the_cache_nor_the_hosts_kernel(slurm: SlurmCluster) -> None:
    slurm.run(["sh", "-c", "echo changed > /etc/issue; touch /srv/mark"])
    root = obtain_root(slurm.release).path
    assert "changed" not in Path(root, "etc/issue").read_text()
    assert not Path(root, "srv/mark").exists()
    refused = slurm.run(["sh", "-c", "echo 4096 > /proc/sys/vm/dirty_bytes"], check=False)
    assert refused.returncode != 0
    # Nor its clock: CAP_SYS_TIME of linux/capability.h.
    rights = slurm.run(["grep", "CapEff", "/proc/self/status"]).stdout.split()[1]
    assert not int(rights, 16) & 1 << 25


@pytest.fixture(scope="module")
def second(slurm: SlurmCluster) -> Iterator[SlurmCluster]:
    """Another cluster beside the first, with accounts, a QOS and a setting of its own."""
    with SlurmCluster(
        nodes=4,
        cpus=2,
        release=slurm.release,
        config="AccountingStoreFlags=job_comment\n",
        accounts=(Account("ligo", 5, ("alice", "bob")),),
        qos=(Qos("pilots", ("Priority=10", "Preempt=normal")),),
    ) as cluster:
        yield cluster


def test_two_clusters_at_once_do_not_clash(slurm: SlurmCluster, second: SlurmCluster) -> None:
    """Each has its own nodes, accounts and jobs, under the same names, addresses and numbers."""
    job = second.submit("hostname", "bob", ["--qos=pilots"])
    assert finished(second, job) == "COMPLETED"
    assert (second.job(job).account, second.job(job).qos) == ("ligo", "pilots")
    assert shown(second)["AccountingStoreFlags"] == "job_comment"
    assert shown(slurm)["AccountingStoreFlags"] == "(null)"
    assert slurm.jobs("--account=ligo") == []
    with pytest.raises(CommandError, match=r"[Ii]nvalid qos"):
        slurm.submit("true", "bob", ["--qos=pilots"])


def test_killing_one_process_ends_everything(second: SlurmCluster) -> None:
    namespaces = {namespace_of(second.pid, kind) for kind in ("pid", "mnt")}
    assert len(processes_in(namespaces)) > 5
    os.kill(second.pid, signal.SIGKILL)
    wait_for(lambda: not processes_in(namespaces), 10, "the end of the cluster's processes")


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGINT])
def test_a_cluster_does_not_outlive_a_program_that_is_killed_while_it_starts(
    slurm_release: str, ending: signal.Signals, tmp_path: Path
) -> None:
    """Neither after SIGKILL nor after Ctrl-C is a process, mount, user or file left."""
    options = f"nodes=2, release={slurm_release!r}"
    require_nothing_left("slurm_cluster", "SlurmCluster", options, ending, tmp_path)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("NoSuchSetting=1", "unrecognized key: NoSuchSetting"),
        ("StateSaveLocation=/proc/nowhere", r"(?s)slurmctld.*--- slurmctld.*fatal.*/proc/nowhere"),
    ],
    ids=["unknown key", "no place for the state"],
)
def test_a_cluster_that_cannot_start_says_why_and_leaves_nothing(slurm_release: str, line: str, complaint: str) -> None:
    before = host_state(), running_sites()
    with (
        pytest.raises((CommandError, DeadlineError), match=complaint),
        SlurmCluster(nodes=1, release=slurm_release, config=f"{line}\n"),
    ):
        pytest.fail("it started")
    assert (host_state(), running_sites()) == before


def test_a_cluster_that_has_ended_refuses_commands() -> None:
    with pytest.raises(DaemonsError, match="the SlurmCluster is not running"):
        SlurmCluster().run(["true"])
