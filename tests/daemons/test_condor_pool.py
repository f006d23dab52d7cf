"""What the real pool promises to the tests built on it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import condor_pool
from condor_pool import (
    Ad,
    CommandError,
    CondorPool,
    DeadlineError,
    PoolError,
    RootUnavailableError,
    obtain_root,
    recipe,
    running_pools,
)
from condor_pool.roots import MIRROR_VARIABLE, main_archive
from killed_owner import require_nothing_left
from real_daemons.traces import host_state, namespace_of, processes_in
from real_daemons.waiting import wait_for

SCRIPTS = str(Path(condor_pool.__file__).parents[1])


# ---- a site in small ----


def test_version_is_the_one_the_release_ships(pool: CondorPool) -> None:
    """trixie stands for the layout before 25.4, sid for the one since."""
    assert pool.version[:2] == (23, 9) if pool.release == "trixie" else pool.version >= (25, 4, 0)


def test_every_node_offers_one_partitionable_slot_of_the_faked_cores(pool: CondorPool) -> None:
    slots = pool.slots("PartitionableSlot", ["Name", "Machine", "TotalSlotCpus"])
    assert {(ad.text("Name"), ad.integer("TotalSlotCpus")) for ad in slots} == {
        (f"slot1@{name}.pool.test", 24) for name in pool.node_names
    }


def test_a_users_jobs_run_as_that_user_on_every_node(pool: CondorPool) -> None:
    description = """
        executable = /bin/sh
        arguments = "-c 'id -un; id -Gn; hostname'"
        transfer_executable = False
        output = node$(Process).out
        requirements = Machine == strcat("node", string($(Process) + 1), ".pool.test")
        queue 3
    """
    cluster = pool.submit(textwrap.dedent(description), user="alice")
    pool.wait_for(lambda: not pool.queue(f"ClusterId == {cluster}"), 60, "alice's jobs to end")
    for process, name in enumerate(pool.node_names):
        output = pool.run(["cat", f"node{process}.out"], user="alice").stdout
        assert output.split() == ["alice", "alice", f"{name}.pool.test"]
    assert {ad["ExitCode"] for ad in pool.history(f"ClusterId == {cluster}", ["ExitCode"])} == {0}


def test_a_plain_user_is_refused_administration(pool: CondorPool) -> None:
    command = ["condor_reconfig", "node1.pool.test"]
    refused = pool.run(command, user="alice", check=False)
    assert refused.returncode != 0
    assert "DENIED" in refused.stderr
    for user in ("root", "condor"):
        pool.run(command, user=user)


def test_a_plain_user_cannot_touch_anothers_job(pool: CondorPool) -> None:
    cluster = pool.submit("executable = /bin/sleep\narguments = 600\nhold = True\nqueue\n", user="alice")
    # HTCondor 25 says "There are no jobs in the queue" and ends with 0 where 23 is refused.
    answer = pool.run(["condor_rm", str(cluster)], user="bob", check=False)
    assert "marked for removal" not in answer.stdout
    assert [ad.integer("JobStatus") for ad in pool.queue(f"ClusterId == {cluster}", ["JobStatus"])] == [5]
    pool.run(["condor_rm", str(cluster)], user="alice")


OUTSIDE = """
import json
import htcondor2
collector = htcondor2.Collector()
slots = [ad["Name"] for ad in collector.query(htcondor2.AdType.Startd, projection=["Name"])]
place = ["Name", "MyType", "Machine", "MyAddress", "AddressV1", "CondorVersion", "CondorPlatform"]
schedd = collector.query(htcondor2.AdType.Schedd, projection=place)[0]
try:
    htcondor2.send_command(schedd, htcondor2.DaemonCommand.Reconfig)
    administers = True
except htcondor2.HTCondorException:
    administers = False
print(json.dumps({"slots": slots, "administers": administers}))
"""


@pytest.mark.parametrize(("identity", "administers"), [("plugin@pool.test", True), ("alice@pool.test", False)])
def test_a_program_of_the_host_has_the_rights_of_its_token(pool: CondorPool, identity: str, administers: bool) -> None:
    """The suite's own Python, with the bindings, reads the pool from outside; only the plugin's token administers."""
    said = json.loads(pool.run_outside([sys.executable, "-c", OUTSIDE], identity=identity).stdout)
    assert {name.partition("@")[2] for name in said["slots"]} == {f"{name}.pool.test" for name in pool.node_names}
    assert said["administers"] is administers


def test_the_owner_of_a_directory_can_open_it_to_one_user_by_acl(pool: CondorPool) -> None:
    """The pool's file system keeps POSIX ACLs, and the Python in it can set them."""
    script = f"""
import os, struct
nobody = 2**32 - 1
entries = [(1, 7, nobody), (2, 1, {pool.uid("condor")}), (4, 0, nobody), (16, 1, nobody), (32, 0, nobody)]
os.mkdir("private", 0o700)
packed = b"".join(struct.pack("<HHI", *entry) for entry in entries)
os.setxattr("private", "system.posix_acl_access", struct.pack("<I", 2) + packed)
open("private/ad", "w").write("x")
os.chmod(".", 0o711)
"""
    pool.run(["python3", "-I", "-c", script], user="alice")
    read = ["cat", "/home/alice/private/ad"]
    assert pool.run(read, user="condor").stdout == "x"
    assert pool.run(read, user="bob", check=False).returncode != 0
    assert pool.run(["ls", "/home/alice/private"], user="condor", check=False).returncode != 0


# ---- commands ----


def test_a_command_sees_its_machine_and_a_clean_environment(pool: CondorPool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_PRELOAD_FOR_NOBODY", "1")
    lines = pool.run(
        ["sh", "-c", "hostname; pwd; id -un; env"], user="bob", node="node2", environment={"A": "b c"}
    ).stdout
    host, directory, user, *variables = lines.splitlines()
    assert (host, directory, user) == ("node2.pool.test", "/home/bob", "bob")
    assert {line.partition("=")[0] for line in variables} - {"PWD", "OLDPWD", "SHLVL", "_"} == {
        *("PATH", "LANG", "USER", "LOGNAME", "HOME", "CONDOR_CONFIG", "A")
    }


def test_a_command_that_hangs_is_ended_with_its_process(pool: CondorPool) -> None:
    with pytest.raises(CommandError, match="sleep 4711 ended with code 124"):
        pool.run(["sleep", "4711"], timeout=0.3)
    assert "sleep 4711" not in pool.run(["ps", "-eo", "args"]).stdout


def test_a_wait_in_vain_says_for_what_and_shows_the_logs(pool: CondorPool) -> None:
    with pytest.raises(DeadlineError) as error:
        pool.wait_for(lambda: 0, 0.1, "the end of time")
    assert "waited 0.3 s for the end of time; last value: 0" in str(error.value)
    assert "--- node3 StartLog" in str(error.value)


def test_an_attribute_of_another_type_is_an_error_that_names_it() -> None:
    with pytest.raises(PoolError, match="Cpus"):
        Ad({"Cpus": "eight"}).integer("Cpus")


# ---- configuration ----


def test_reconfigure_returns_when_the_daemons_have_read_the_new_text(pool: CondorPool) -> None:
    ask = ["condor_config_val", "-startd", "SITE_NOTE"]
    pool.configure("node2", "60-note.conf", 'SITE_NOTE = "read"\n')
    pool.reconfigure("node2")
    assert pool.run(ask, node="node2").stdout.strip() == '"read"'
    assert pool.run(ask, node="node1", check=False).stdout.strip() != '"read"'


def test_restart_gives_a_node_new_daemons(pool: CondorPool) -> None:
    ask = ["condor_status", "-master", "-af", "MyAddress", "-constraint", 'Machine == "node3.pool.test"']
    before = pool.run(ask).stdout
    pool.restart("node3")
    assert pool.run(ask).stdout not in ("", before)


def test_a_folder_copied_in_belongs_to_whom_it_should(pool: CondorPool, tmp_path: Path) -> None:
    program = tmp_path / "site" / "bin" / "hello"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\necho hello\n")
    program.chmod(0o755)
    pool.copy_in(str(tmp_path / "site"), "/opt/copied", owner="alice")
    assert pool.run(["/opt/copied/bin/hello"], user="bob").stdout == "hello\n"
    assert pool.run(["stat", "-c", "%U", "/opt/copied/bin", "/opt/copied/bin/hello"]).stdout.split() == ["alice"] * 2


def test_a_package_copied_in_is_compiled_once_until_it_changes(pool: CondorPool, tmp_path: Path) -> None:
    """What another copy in the same place compiled is taken, and Python takes it; never for other sources."""
    module, place = tmp_path / "package" / "module.py", Path(f"{pool.root}/opt/compiled")
    module.parent.mkdir()
    (module.parent / "__init__.py").touch()
    seen = []
    for line in ("print(1)\n", "print(1)\n", "print(2)\n"):
        if not module.exists() or module.read_text() != line:
            module.write_text(line)
        pool.copy_in(str(module.parent), "/opt/compiled/package")
        [compiled] = place.glob("package/__pycache__/module.*.pyc")
        ran = pool.run(
            ["python3", "-v", "-c", "import package.module"],
            user="alice",
            environment={"PYTHONPATH": "/opt/compiled"},
        )
        assert f"code object from '/opt/compiled/package/__pycache__/{compiled.name}'" in ran.stderr
        seen.append((ran.stdout, compiled.stat().st_mtime_ns))
        shutil.rmtree(place)
    assert seen[0] == seen[1] and [said for said, _ in seen] == ["1\n", "1\n", "2\n"]
    assert seen[2][1] != seen[0][1]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"nodes": 0}, "1 to 200 execute nodes, not 0"),
        ({"config": {"submit": "X = 1"}}, "no role or node 'submit'.*central, access, execute.*node3"),
        ({"cpus": 8, "static_slots": (8, 8)}, r"\[8, 8\] cores do not fit in 8"),
        ({"release": "slink"}, "unknown release 'slink'; known: trixie, sid"),
    ],
)
def test_a_wrong_argument_is_refused_before_anything_starts(arguments: dict[str, object], complaint: str) -> None:
    with pytest.raises(PoolError, match=complaint), CondorPool(**arguments):  # type: ignore[arg-type]
        pytest.fail("it started")


# ---- nothing is shared, nothing stays ----


def test_the_pool_can_change_neither_the_cache_nor_the_hosts_kernel(pool: CondorPool) -> None:
    """condor_master as shipped sets vm.dirty_bytes and more of the machine it starts on."""
    pool.run(["sh", "-c", "echo changed > /etc/issue; touch /srv/mark"])
    root = obtain_root(pool.release).path
    assert "changed" not in Path(root, "etc/issue").read_text()
    assert not Path(root, "srv/mark").exists()
    refused = pool.run(["sh", "-c", "echo 4096 > /proc/sys/vm/dirty_bytes"], check=False)
    assert refused.returncode != 0


@pytest.fixture(scope="module")
def second_pool(pool: CondorPool) -> Iterator[CondorPool]:
    """Another pool beside the first, with static slots."""
    with CondorPool(nodes=1, cpus=24, release=pool.release, static_slots=(8, 8, 4)) as running:
        yield running


def test_two_pools_at_once_do_not_clash(pool: CondorPool, second_pool: CondorPool) -> None:
    assert sorted(ad.integer("Cpus") for ad in second_pool.slots()) == [4, 8, 8]
    assert len(pool.slots("PartitionableSlot")) == 3
    cluster = second_pool.submit("executable = /bin/true\nqueue\n", user="bob")
    second_pool.wait_for(lambda: second_pool.history(f"ClusterId == {cluster}"), 60, "bob's job in the second pool")
    assert not pool.history('Owner == "bob"')


def test_killing_one_process_ends_everything(second_pool: CondorPool) -> None:
    namespaces = {namespace_of(second_pool.pid, kind) for kind in ("pid", "mnt")}
    assert len(processes_in(namespaces)) > 5
    os.kill(second_pool.pid, signal.SIGKILL)
    wait_for(lambda: not processes_in(namespaces), 10, "the end of the pool's processes")


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGINT])
def test_a_pool_does_not_outlive_a_program_that_is_killed_while_it_starts(
    ending: signal.Signals, tmp_path: Path
) -> None:
    """Neither after SIGKILL nor after Ctrl-C is a process, mount, user or file left."""
    obtain_root("trixie")
    require_nothing_left("condor_pool", "CondorPool", "nodes=1", ending, tmp_path)


def test_a_pool_that_cannot_start_says_why_and_leaves_nothing() -> None:
    before = host_state(), running_pools()
    with (
        pytest.raises(CommandError, match=r"(?s)condor_master.*Configuration Error.*50-extra.conf"),
        CondorPool(nodes=1, config={"all": "this is no assignment\n"}),
    ):
        pytest.fail("it started")
    assert (host_state(), running_pools()) == before


def test_a_pool_that_has_ended_refuses_commands() -> None:
    with pytest.raises(PoolError, match="not running"):
        CondorPool().run(["true"])


# ---- root file systems ----


def test_a_build_that_breaks_leaves_nothing_in_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MIRROR_VARIABLE, f"file://{tmp_path}/no-archive")
    cache = tmp_path / "cache"
    with pytest.raises(RootUnavailableError, match="mmdebstrap"):
        obtain_root("trixie", str(cache))
    assert os.listdir(cache) == ["trixie.lock"]


def test_two_who_ask_at_once_for_a_root_that_is_missing_build_it_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The build itself is stood in for by a slow one: what counts is who waits for whom."""
    builds = []

    def build(release: str, root: str, archive: str) -> None:
        builds.append(release)
        time.sleep(0.3)
        Path(root, "finished").touch()

    monkeypatch.setattr(recipe, "build_root", build)
    monkeypatch.setenv(MIRROR_VARIABLE, "file:///nowhere")
    stale = tmp_path / ".trixie-0.killed"
    stale.mkdir()
    found: list[str] = []
    askers = [
        threading.Thread(target=lambda: found.append(obtain_root("trixie", str(tmp_path)).path)) for _ in range(2)
    ]
    for asker in askers:
        asker.start()
    for asker in askers:
        asker.join(20)
    assert builds == ["trixie"]
    assert found[0] == found[1]
    assert os.listdir(found[0]) == ["finished"]
    assert not stale.exists()


def test_the_archive_is_the_one_of_the_systems_own_suite() -> None:
    listing = """\
https://security.example/debian-security bookworm-security main
https://mirror.example/debian bookworm-updates main
https://mirror.example/debian bookworm contrib
https://mirror.example/debian bookworm main
https://other.example tool main
"""
    assert main_archive(listing, "bookworm") == "https://mirror.example/debian"
    assert main_archive(listing, "jammy") == ""
