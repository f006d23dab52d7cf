"""The lines of docs/install.md, typed on clean machines of Debian 12, 13 and one with Python 3.9, no network."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

import drainwise
from clean_machine import RELEASES, CleanMachine, wheels_for
from made_up_node import ad_text, job_attributes, machine_attributes
from made_up_slurm_node import MadeUpJob
from real_daemons.furnish import copy_tree, write_file

pytestmark = [pytest.mark.play, pytest.mark.in_turn("installing", "installing")]
ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "install.md").read_text()
CLONE = ("plugins", "condor_config.d", "prologs", "slurm", "systemd", "pyproject.toml", "README.md", "LICENSE")
OLDER = "0.0.9"
# No cluster is here that could be asked what it has.
NEW_CLUSTER = "--live none "
# As a site whose central machine has a network finds them in an index.
INDEX = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "/srv/wheels", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
LIBRARY = "/usr/share/drainwise"
ALICE_CAN = (
    "import sys; sys.path.append('/usr/share/drainwise'); import drainwise.node.hook, drainwise.pilotad.node_reader"
)
HOOKS_ALL_THE_TIME = f"""
while [ ! -e /tmp/stop ]; do
    /usr/bin/python3 -I -S -c "{ALICE_CAN}" 2>>/tmp/faults && echo >>/tmp/done
done
"""


def shown(section: str) -> tuple[str, str, str]:
    """What the section shows: the lines for the central machine, the site file, the line for every node."""
    text = PAGE.partition(f"## Install on {section}\n")[2].partition("\n## ")[0]
    fences = [
        (kind, re.sub("^   ", "", body, flags=re.MULTILINE))
        for kind, body in re.findall(r"^   ```(\w+)\n(.*?)^   ```", text, re.MULTILINE | re.DOTALL)
    ]
    scripts = [body for kind, body in fences if kind == "sh"]
    [on_nodes] = [body for body in scripts if "-m drainwise install" in body]
    return (
        "".join(body for body in scripts if body != on_nodes),
        "".join(body for kind, body in fences if kind == "ini"),
        on_nodes,
    )


def typed(machine: CleanMachine, text: str, place: str, umask: str = "022") -> str:
    """What root's shell prints for these lines, each of which must succeed."""
    text = re.sub("^drainwise config slurm ", f"\\g<0>{NEW_CLUSTER}", text, flags=re.MULTILINE)
    script = f"umask {umask}\ncd {place}\n{text}"
    return machine.run(["sh", "-ec", script], environment=INDEX, timeout=200).stdout


def put_clone(machine: CleanMachine, version: str) -> None:
    """The clone of a version; the older one has a module that is no more."""
    shutil.rmtree(f"{machine.root}/root/clone", ignore_errors=True)
    for name in CLONE:
        copy_tree(machine.root, str(ROOT / name), f"/root/clone/{name}", 0)
    package = Path(f"{machine.root}/root/clone/plugins/drainwise")
    begin = (package / "__init__.py").read_text()
    (package / "__init__.py").write_text(begin.replace(f'"{drainwise.__version__}"', f'"{version}"'))
    if version == OLDER:
        (package / "stale.py").touch()


def carry(central: CleanMachine, node: CleanMachine, version: str) -> None:
    """Wheel and tree, by something that keeps no modes but what is a program."""
    [wheel] = Path(f"{central.root}/root/clone/dist").glob(f"drainwise-{version}-*.whl")
    place = f"{node.root}/root/{version}"
    shutil.copytree(f"{central.root}/root/clone/node-tree", f"{place}/node-tree")
    shutil.copy(wheel, place)
    for directory, _, names in os.walk(place):
        os.chmod(directory, 0o700)
        for name in names:
            os.chmod(f"{directory}/{name}", os.stat(f"{directory}/{name}").st_mode & 0o700)


@dataclass(frozen=True)
class Installed:
    """A central machine and a node after the page's lines; what hooks of alice's said meanwhile."""

    central: CleanMachine
    node: CleanMachine
    faults: str
    features: tuple[str, str]


@pytest.fixture(scope="module", params=RELEASES)
def system(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def installed(system: str) -> Iterator[Installed]:
    """The lines of both sections: of an older version, then of this one, while hooks run all the time.

    The node has what an earlier page said: a plain directory, and a module that is no more.
    """
    condor, site_file, on_nodes = shown("an HTCondor site")
    slurm, _, on_slurm_nodes = shown("a Slurm site")
    assert on_nodes == on_slurm_nodes and f"drainwise-{drainwise.__version__}-py3-none-any.whl" in on_nodes
    with CleanMachine(system) as central, CleanMachine(system) as node, ThreadPoolExecutor(1) as threads:
        copy_tree(central.root, wheels_for(RELEASES[system][0]), "/srv/wheels", 0)
        put(central, "/etc/drainwise/site.ini", site_file)
        node.copy_in(str(ROOT / "plugins" / "drainwise"), f"{LIBRARY}/drainwise")
        for name in ("drainwise/stale.py", "drainwise-0.0.8.dist-info/METADATA", "bin/drainwise"):
            put(node, f"{LIBRARY}/{name}", "")
        for version, lines in ((OLDER, condor), (drainwise.__version__, slurm)):
            put_clone(central, version)
            typed(central, lines, "/root/clone", "077")
            carry(central, node, version)
        hooks = threads.submit(node.run, ["sh", "-c", HOOKS_ALL_THE_TIME], user="alice", timeout=300)
        try:
            node.wait_for(lambda: os.path.exists(f"{node.root}/tmp/done"), 30, "hooks")
            typed(node, on_nodes.replace(drainwise.__version__, OLDER), f"/root/{OLDER}")
            features = condor_hook(node)
            typed(node, on_nodes, f"/root/{drainwise.__version__}", "077")
        finally:
            put(node, "/tmp/stop", "")
            hooks.result()
        yield Installed(central, node, Path(f"{node.root}/tmp/faults").read_text(), features)


def put(machine: CleanMachine, path: str, text: str) -> None:
    os.makedirs(os.path.dirname(machine.root + path), exist_ok=True)
    write_file(machine.root, path, text)


def condor_hook(node: CleanMachine) -> tuple[str, str]:
    """What the prepare hook prints and says for a job of alice's."""
    scratch, alice = "/home/alice/scratch", node.uid("alice")
    if not os.path.exists(node.root + scratch):
        os.mkdir(node.root + scratch)
        os.chown(node.root + scratch, alice, alice)
    write_file(node.root, f"{scratch}/.machine.ad", ad_text(machine_attributes("slot1_1", 8)), owner=alice)
    ad = ad_text(job_attributes("central.pool.test#1.0#1795339000", 1795339000, {}))
    environment = {"_CONDOR_SCRATCH_DIR": scratch, "_CONDOR_MACHINE_AD": f"{scratch}/.machine.ad"}
    ran = node.run(["/usr/libexec/drainwise/prepare-hook"], user="alice", stdin=ad, environment=environment)
    return ran.stdout, ran.stderr


def slurm_task(node: CleanMachine) -> subprocess.CompletedProcess[str]:
    """The task prolog of a job of alice's."""
    job = MadeUpJob(7, node.uid("alice"), node="node1", node_list="node1", cpus_per_node="4")
    node.run(["/etc/slurm/prolog.d/50-drainwise"], environment=job.environment())
    return node.run(["/usr/libexec/drainwise/slurm-task-prolog"], user="alice", environment=job.environment())


def test_hooks_work_and_none_met_half_a_tree(installed: Installed) -> None:
    """While a plain directory became a release, and one release another: alice's hooks found it whole all the time."""
    assert installed.faults == ""
    printed, said = installed.features
    assert "MACHINEFEATURES" in printed and said == ""
    assert "export MACHINEFEATURES=" in slurm_task(installed.node).stdout
    assert "MACHINEFEATURES" in condor_hook(installed.node)[0]


def test_nothing_stale_is_left(installed: Installed) -> None:
    """Neither a module of an earlier version, nor what pip wrote on the node, nor more than one release before."""
    stale = "import sys; sys.path.append('/usr/share/drainwise'); import drainwise.stale"
    for machine, python in ((installed.central, "/opt/drainwise/bin/python3"), (installed.node, "/usr/bin/python3")):
        assert machine.run(["drainwise", "--version"], "alice").stdout == f"drainwise {drainwise.__version__}\n"
        assert "No module named 'drainwise.stale'" in machine.run([python, "-c", stale], check=False).stderr
    library = f"{installed.node.root}{LIBRARY}"
    assert sorted(os.listdir(library)) == ["drainwise", "releases", "tree"]
    assert len(os.listdir(f"{library}/releases")) == 2


def test_everybody_can_read_it_whatever_the_umask(installed: Installed) -> None:
    """And all of it is compiled: jobs' users could not keep what they compile."""
    for path in Path(f"{installed.node.root}{LIBRARY}/releases").rglob("*"):
        assert path.stat().st_mode & 0o777 == (0o755 if path.is_dir() else 0o644), path
        if path.suffix == ".py":
            assert list((path.parent / "__pycache__").glob(f"{path.stem}.*.pyc")), path


def test_commands_of_a_node(installed: Installed) -> None:
    """They need the standard library alone, and make the directories that they need, for everybody."""
    node = installed.node
    assert "No module named pip" in node.run(["python3", "-m", "pip"], check=False).stderr
    assert not os.path.exists(f"{node.root}/var/lib/drainwise")
    typed(node, "drainwise shutdown --at +6h", "/root", "077")
    assert "shutdown planned" in node.run(["drainwise", "shutdown"], user="alice").stdout
    assert "no shutdown" in typed(node, "drainwise shutdown --cancel", "/root")
    features = "/home/alice/scratch/.machinefeatures"
    assert (
        "hs06" in node.run(["drainwise", "features", "show", "--machine", features], user="alice", check=False).stdout
    )
    assert "squeue cannot be run" in node.run(["drainwise", "status", "--pool", "slurm"], check=False).stderr
    said = node.run(["drainwise", "plan", "--pool", "slurm"], check=False)
    assert (said.returncode, said.stdout) == (1, "") and "numpy" in said.stderr, "what decides needs it"
    put(node, "/etc/drainwise/site.ini", shown("an HTCondor site")[1])
    assert "scontrol cannot be run" in node.run(["drainwise", "check", "slurm"], check=False).stderr


def test_what_alice_cannot_read_is_said_in_one_line_of_the_log(installed: Installed) -> None:
    """On HTCondor also in the starter's log; the same line once more mends it."""
    node = installed.node
    log = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    log.bind(f"{node.root}/dev/log")
    os.chmod(f"{node.root}/dev/log", 0o666)
    log.settimeout(10)
    os.chmod(f"{node.root}{LIBRARY}", 0o700)
    line = f"uid {node.uid('alice')} cannot read {LIBRARY}/drainwise: run `drainwise install --library {LIBRARY}` here"
    printed, said = condor_hook(node)
    assert printed == "" and said.count("\n") == 1 and line in said
    assert f"prepare-hook does nothing: {line}" in log.recv(1000).decode()
    ran = slurm_task(node)
    assert (ran.stdout, ran.stderr) == ("", "")
    assert f"task_prolog does nothing: {line}" in log.recv(1000).decode()
    log.close()
    os.chmod(f"{node.root}/etc/drainwise", 0o700)
    typed(node, shown("a Slurm site")[2], f"/root/{drainwise.__version__}", "077")
    printed, said = condor_hook(node)
    assert "MACHINEFEATURES" in printed and said == ""


def test_the_wheel_has_the_prologs_of_other_batch_systems(installed: Installed) -> None:
    """No clone is on a node: they come from the wheel, and what they call is there."""
    node, wheel = installed.node, f"drainwise-{drainwise.__version__}-py3-none-any.whl"
    typed(node, f"PYTHONPATH={wheel} python3 -m drainwise install --prologs", f"/root/{drainwise.__version__}", "077")
    libexec = Path(f"{node.root}/usr/libexec/drainwise")
    for script in (path for path in (ROOT / "prologs").rglob("*") if path.is_file()):
        placed = libexec / script.relative_to(ROOT / "prologs")
        assert placed.stat().st_mode & 0o777 == (0o755 if os.access(script, os.X_OK) else 0o644)
    node.run(["/usr/libexec/drainwise/drainwise-features", "write", "--machine", "/tmp/features", "--hs06", "12.5"])
    assert Path(f"{node.root}/tmp/features/hs06").read_text().strip() == "12.5"
    said = node.run(["sh", "-c", ". /usr/libexec/drainwise/drainwise-job.sh; echo sourced"], user="alice")
    assert (said.stdout, said.stderr) == ("sourced\n", "")
