"""Things that go wrong on whole machines: `drainwise doctor` names each, and its next step, typed there, helps.

A submission breaks some of them, in turn by the commit; `scripts/test --all-releases` all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

import drainwise
from more_examples import most_of
from real_daemons.site import CENTRAL
from turns import commits
from typed_page import blocks_of
from whole_sites import (
    CONDOR_SITE_FILE,
    NODES,
    PILOT,
    PLACE,
    SITE_FILE,
    Admin,
    condor_machines,
    pip_installs,
    runs,
    slurm_machines,
)

pytestmark = pytest.mark.play
TURN = "faults on whole machines"
SECONDS = 400.0
FEW = 5


@dataclass(frozen=True)
class Fault:
    """What is typed on a machine to break something, what a doctor there says, and what its next step begins with.

    before: what is typed on the node first.
    """

    machine: str
    breaks: str
    says: str
    next: str
    before: str = ""


EXECUTE = "/var/lib/condor/execute"
HOOKS, ETC = "/usr/libexec/drainwise", "/etc/drainwise"
INSTALL, CONF = "drainwise install --files-only", "/etc/slurm/slurm.conf"
SILENT = '{"drainwise":1,"version":"0.1.0","at":1795000000}'
JOBS = '"$(squeue -h -o %A)"'
FILL = "if=/dev/zero of=/run/drainwise/fill bs=1M 2>/dev/null || true"
ENDS = "printf 'Preempt%s\\n' Type=preempt/qos Mode=REQUEUE Parameters=min_exempt_priority=2,reorder_count=1"
ADD, OFTEN = "echo Include drainwise.conf >>", "systemctl unmask"
SLURM = {
    "a prolog is gone": Fault("node1", "rm -r /etc/slurm/prolog.d", r"50-drainwise: No such file", INSTALL),
    "a task prolog cannot be run": Fault("node1", f"chmod 644 {HOOKS}/slurm-task-prolog", "mode 0644", "chmod 755"),
    "a hook is a user's": Fault("node1", "chown alice /etc/slurm/epilog.d/50-drainwise", "dangerous.*epilog", "chown"),
    "hooks lie open": Fault("node1", f"chmod 777 {HOOKS}", rf"dangerous.*{HOOKS} above it", f"chown root:root {HOOKS}"),
    "a task prolog is gone": Fault("node1", f"rm {HOOKS}/slurm-task-prolog", "task-prolog: No such file", INSTALL),
    "a node's directory is a user's": Fault("node1", "chown alice /run/drainwise/node1", "not used", "chown root:root"),
    "no room is left for features": Fault("node1", f"dd {FILL}", "full: new jobs get no", "mount -o remount,size="),
    "settings are gone": Fault("node1", f"rm {ETC}/node.conf", r"node.conf: No such file", INSTALL),
    "the package is closed": Fault("node1", "chmod 700 /usr/share/drainwise", "cannot read the package", "chmod a+rX"),
    "the node's agent is stopped": Fault(
        "node1", "systemctl stop drainwise-node-agent", "node's agent: it does", OFTEN
    ),
    "the node's agent is disabled": Fault(
        "node1", "systemctl disable --now drainwise-node-agent", "node's agent: it", OFTEN
    ),
    "the node's agent has no unit": Fault(
        "node1", "rm /etc/systemd/system/drainwise-node-agent.service", "node-agent.service: No such file", INSTALL
    ),
    "a node leaves our lines out": Fault("node1", f"sed -i /drainwise.conf/d {CONF}", "does not include", "sed"),
    "slurmd is stopped": Fault("node1", "systemctl stop slurmd", "slurmd should run", "systemctl start slurmd"),
    "munge is stopped": Fault("node1", "systemctl stop munge", "munge: it does not run", "systemctl start munge"),
    "a node was drained": Fault(
        CENTRAL, "scontrol update NodeName=node1 State=DRAIN Reason='Prolog error'", "drained nodes", "drainwise doctor"
    ),
    "the cluster leaves our lines out": Fault(
        CENTRAL, f"sed -i /drainwise.conf/d {CONF}; systemctl restart slurmctld", "does not use drainwise", "sed"
    ),
    "our lines stand twice": Fault(CENTRAL, f"{ADD} {CONF}", "is included twice", "sed"),
    "our lines are gone": Fault(CENTRAL, "rm /etc/slurm/drainwise.conf", r"drainwise.conf: No such file", INSTALL),
    "hooks get no time": Fault(
        CENTRAL, f"echo PrologEpilogTimeout=5 >>{CONF}; scontrol reconfigure", "Slurm takes the last", "sed"
    ),
    "accounting is stopped": Fault(CENTRAL, "systemctl stop slurmdbd", "slurmdbd: ", "systemctl start slurmdbd"),
    "slurmctld is stopped": Fault(
        CENTRAL, "systemctl stop slurmctld", "slurmctld: it does", "systemctl start slurmctld"
    ),
    "slurmctld ends at a line": Fault(
        CENTRAL, f"{ENDS} >>{CONF}; systemctl restart slurmctld || true", "ends when it reads", "sed"
    ),
    "a node gives no sign of life": Fault(
        CENTRAL,
        f"scontrol update NodeName=node1 Extra='{SILENT}'; scontrol update JobId={JOBS} AdminComment=''",
        "no sign of life",
        OFTEN,
        before="systemctl stop drainwise-node-agent",
    ),
    "a comment is another's": Fault(
        CENTRAL,
        f"scontrol update JobId={JOBS} AdminComment=mine",
        "AdminComment",
        "scontrol update JobId=",
    ),
    "the agent is stopped": Fault(CENTRAL, "systemctl stop drainwise-agent", "not running", "systemctl start"),
    "the agent is masked": Fault(CENTRAL, "systemctl mask --now drainwise-agent", "nobody holds", OFTEN),
}
SINCE_25_05 = {
    "a prolog's own limit is too short": Fault(
        CENTRAL, f"echo PrologTimeout=5 >>{CONF}; scontrol reconfigure", "before that, Slurm kills", "sed"
    ),
}
CONDOR = {
    "a hook is gone": Fault("node2", f"rm {HOOKS}/prepare-hook", "prepare-hook: No such file", INSTALL),
    "all hooks are gone": Fault("node2", f"rm -r {HOOKS}", "pilot-cron: No such file", INSTALL),
    "a hook cannot be read": Fault("node2", f"chmod 711 {HOOKS}/update-hook", "mode 0711", "chmod 755"),
    "/proc hides processes": Fault(
        "node2", "mount -o remount,hidepid=2 /proc", "hides the starters", "mount -o remount,hidepid="
    ),
    "jobs' directories have no access lists": Fault(
        "node2", f"mount -t ramfs ramfs {EXECUTE}; chown condor: {EXECUTE}", "has no access lists", "install -d"
    ),
    "the cron cannot be run": Fault("node2", f"chmod 644 {HOOKS}/pilot-cron", "mode 0644", "chmod 755"),
    "settings are gone": Fault("node2", f"rm {ETC}/node.conf", "node.conf: No such file", INSTALL),
    "a hook is a user's": Fault("node2", f"chown alice {HOOKS}/update-hook", "dangerous.*update-hook", "chown"),
    "hooks lie open": Fault("node2", f"chmod 777 {HOOKS}", rf"dangerous.*{HOOKS} above it", f"chown root:root {HOOKS}"),
    "the package is closed": Fault("node2", "chmod 700 /usr/share/drainwise", "cannot read the package", "chmod a+rX"),
    "HTCondor is stopped": Fault("node2", "systemctl stop condor", "should run here", "systemctl start condor"),
    "the startd is off": Fault("node2", "condor_off -startd -fast", "condor_startd should run", "condor_on -startd"),
    "the negotiator is off": Fault(
        CENTRAL, "condor_off -negotiator", "condor_negotiator should", "condor_on -negotiator"
    ),
    "the schedd is off": Fault(CENTRAL, "condor_off -schedd -fast", "condor_schedd should", "condor_on -schedd"),
    "a node leaves our lines out": Fault(
        "node2", "rm /etc/condor/config.d/40-drainwise-enabled.conf; condor_reconfig", "does not use drainwise", "echo"
    ),
    "the agent is stopped": Fault(CENTRAL, "systemctl stop drainwise-agent", "not running", "systemctl start"),
    "the agent is masked": Fault(CENTRAL, "systemctl mask --now drainwise-agent", "nobody holds", OFTEN),
}


def in_turn(faults: dict[str, Fault]) -> list[Fault]:
    """Some of them, other ones for each commit; all in a run of everything."""
    every = list(faults.values())
    first = commits() * FEW % len(every)
    return most_of((every * 2)[first : first + FEW], every)


def doctor(admin: Admin, machine: str) -> str:
    """What a doctor says on a machine."""
    return admin.types("drainwise doctor", machine, check=False)


def is_found_and_helped(admin: Admin, fault: Fault) -> None:
    """Break it, look, type the next step, look again."""
    if fault.before:
        admin.types(fault.before, "node1")
    admin.types(fault.breaks, fault.machine)
    found = [""]

    def is_named() -> bool:
        found[0] = doctor(admin, fault.machine)
        return re.search(fault.says, found[0]) is not None

    admin.site.wait_for(is_named, SECONDS, fault.says)
    assert f"\nnext: {fault.next}" in found[0] and "\nthen: drainwise doctor" in found[0]
    types_next(admin, found[0], fault.machine)
    is_sound(admin)


def types_next(admin: Admin, said: str, machine: str) -> None:
    """Type a doctor's next step where it says; where that asks the doctor of another machine, its next step."""
    [step] = re.findall(r"^next: (.*)$", said, re.MULTILINE)
    [there] = re.findall(r"# on ([^\s.]+)\S*$", step) or [machine]
    if step.startswith("drainwise doctor"):
        types_next(admin, doctor(admin, there), there)
    else:
        admin.types(step, there)


def is_sound(admin: Admin) -> None:
    """On no machine is there anything to mend."""
    for machine in admin.site.machines:
        admin.site.wait_for(
            lambda machine=machine: "next: nothing to mend here" in doctor(admin, machine),  # type: ignore[misc]
            SECONDS,
            f"{machine} in order",
        )


def is_perfect(admin: Admin, system: str) -> None:
    """On each machine both end with 0, and nothing is found."""
    for machine in admin.site.machines:
        assert "0 dangerous, 0 missing" in admin.types(f"drainwise check {system} && drainwise doctor", machine)


@pytest.fixture
def cluster(release: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Admin]:
    """A Slurm cluster with drainwise from packages, by the quick start, and a pilot that reports."""
    page = "quickstart-slurm.md"
    with slurm_machines(release) as site:
        admin = Admin(site, tmp_path_factory)
        admin.has(drainwise.__version__)
        [installs], [[central, renders, shows]] = blocks_of(page, "1."), blocks_of(page, "2.")
        for line in installs:
            admin.types(line, "node1")
        admin.types(central)
        site.write("/etc/drainwise/site.ini", SITE_FILE)
        for line in (renders, shows):
            admin.types(line)
        site.copy_in(site.path(f"{PLACE}/node-tree"), f"{PLACE}/node-tree", node="node1")
        [[tree], agent], [[include, controller], restart] = blocks_of(page, "3."), blocks_of(page, "4.")
        for machine in site.machines:
            admin.types(tree, machine)
        for line in (*agent, include, *restart):
            admin.types(line, "node1")
        for line in (include, controller):
            admin.types(line)
        runs(admin, PILOT, "--cpus-per-task=2", "--time=1-0")
        admin.types("systemctl enable --now drainwise-agent")
        yield admin


@pytest.fixture
def pool(release: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Admin]:
    """An HTCondor pool with drainwise from packages, by the quick start; its startds take orders."""
    page = "quickstart-htcondor.md"
    with condor_machines(release) as site:
        admin = Admin(site, tmp_path_factory)
        admin.has(drainwise.__version__)
        [installs], [enables, _], [[central, pip, *_]] = (blocks_of(page, step) for step in ("1.", "2.", "4."))
        [[restart], token, _] = blocks_of(page, "6.")
        for node in NODES:
            for line in (*installs, *enables, *restart.splitlines()):
                admin.types(line, node)
        admin.types(central)
        pip_installs(site, pip)
        site.write("/etc/drainwise/site.ini", CONDOR_SITE_FILE)
        for line in (*token, *enables, "systemctl enable --now drainwise-agent"):  # the users' access point, too
            admin.types(line)
        yield admin


@pytest.mark.in_turn(TURN, "Slurm")
def test_slurm(cluster: Admin) -> None:
    """Before, between and after, nothing is to be mended on any machine; `check` says the same."""
    is_sound(cluster)
    assert '"version"' in cluster.types("scontrol show node node1 | grep Extra=")
    is_perfect(cluster, "slurm")
    for fault in in_turn(SLURM | SINCE_25_05 if cluster.site.release == "sid" else SLURM):
        is_found_and_helped(cluster, fault)


@pytest.mark.in_turn(TURN, "HTCondor")
def test_htcondor(pool: Admin) -> None:
    """On a node there is no site file, and on some releases no bindings of use."""
    is_sound(pool)
    is_perfect(pool, "htcondor")
    for fault in in_turn(CONDOR):
        is_found_and_helped(pool, fault)
