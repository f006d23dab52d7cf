"""The lines of docs/quickstart-slurm.md, typed as they stand on a real cluster with hooks of its own, while jobs run.

Every job is counted, and what the site's own hooks did for each. Machines share one root file system, so what is
carried to a node is there already; services are what a script in the place of systemctl makes of their units.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import drainwise
from built_packages import OLDER, built
from clean_machine import wheels_for
from slurm_cluster import SlurmCluster
from typed_page import blocks_of, packages_named, unpack_wheels

pytestmark = [pytest.mark.play, pytest.mark.in_turn("quick start", "Slurm")]
PAGE = "quickstart-slurm.md"
LOG, NODE = "/srv/site/log", "node1"
OWN = {"Prolog": "/srv/site/prolog", "Epilog": "/srv/site/epilog", "TaskProlog": "/srv/site/task_prolog"}
SYSTEMCTL = """\
#!/bin/sh
# What systemd does with the services of drainwise.
for word; do case $word in drainwise-*) unit=${word%.service} ;; esac; done
here=/run/$unit.pid
ends() {
    [ -e $here ] && kill "$(cat $here)" 2>/dev/null || return 1
    while kill -0 "$(cat $here)" 2>/dev/null; do sleep 0.1; done
    rm $here
}
begins() {
    for place in /etc/systemd/system /usr/lib/systemd/system; do
        [ -e $place/$unit.service ] || continue
        setsid $(sed -n s/^ExecStart=//p $place/$unit.service) </dev/null >/dev/null 2>>/run/$unit.log &
        echo $! >$here
        return
    done
    exit 5
}
case $1 in
daemon-reload) ;;
show) echo $unit.service ;;
try-restart) ! ends || begins ;;
enable | restart) ends; begins ;;
disable) ends ;;
esac
"""
PILOT = """\
mkdir -p queue && echo '{"command": "sleep 3000", "maximum": 4000}' >queue/one.json
exec drainwise pilot run --queue "$PWD/queue"
"""
SITE_FILE = "[slurm]\nagent_period = 2s\n"
SECONDS = 60.0


@dataclass
class Admin:
    """Somebody who types lines on machines of a cluster, and counts."""

    cluster: SlurmCluster
    packages: dict[str, Path] = field(default_factory=dict)
    lasting: dict[int, int] = field(default_factory=dict)
    """Jobs that run all the time, with their starts."""
    short: list[int] = field(default_factory=list)

    def types(self, line: str, node: str) -> str:
        """What a line prints."""
        words = line.split()
        if words[:2] == ["apt", "install"]:
            files = [f"/srv/packages/{self.packages[name].name}" for name in packages_named(words[2:])]
            return self._dpkg(["--install", "--force-confold", *files], node)
        if words[:2] == ["apt", "purge"]:
            return self._dpkg(["--purge", "drainwise", *words[2:]], node)  # apt takes what needs them
        if words[:2] == ["systemctl", "restart"]:
            name = {"slurmctld": "slurmctld", "slurmd": node}[words[2]]
            self.cluster.kill_daemon(name, signal.SIGTERM)
            self.cluster.start_daemon(name)
            self.cluster.wait_until_complete()
            return ""
        ran = self.cluster.run(["sh", "-ec", line], node=node, timeout=120)
        return ran.stdout + ran.stderr

    def _dpkg(self, words: list[str], node: str) -> str:
        """The cluster's packages are only unpacked: dpkg does not know what ours need, and has no diff."""
        ran = self.cluster.run(["dpkg", "--force-depends", "--force-bad-path", *words], node=node, timeout=300)
        return ran.stdout + ran.stderr

    def has(self, version: str, factory: pytest.TempPathFactory) -> None:
        """From now on the packages of this version are at hand."""
        self.packages = built("deb", version, factory)
        for file in self.packages.values():
            self.cluster.copy_in(str(file), f"/srv/packages/{file.name}")

    def runs(self, script: str, *options: str) -> int:
        """Start a job of alice's that is to run all the time."""
        number = self.cluster.submit(script, "alice", options)
        self.cluster.wait_for(lambda: self.cluster.job(number).state == "RUNNING", SECONDS, f"job {number}")
        self.lasting[number] = self.cluster.job(number).start
        return number

    def nobody_is_harmed(self) -> None:
        """A new job ends well, those that ran still run, no node is drained, the site's hooks ran once for each."""
        number = self.cluster.submit("exit 0", "bob")
        self.short.append(number)
        self.cluster.wait_for(lambda: self.cluster.job(number).state == "COMPLETED", SECONDS, f"the end of {number}")
        for lasting, start in self.lasting.items():
            job = self.cluster.job(lasting)
            assert (job.state, job.start) == ("RUNNING", start)
        state = self.cluster.run(["sinfo", "--noheader", "--Node", "--format=%T"]).stdout
        assert not re.search("drain|down|fail", state), state
        started = sorted([*self.lasting, *self.short])
        done = {"prolog": started, "task_prolog": started, "epilog": self.short}
        self.cluster.wait_for(lambda: self.site_hooks() == done, SECONDS, f"the site's own hooks: {done}")

    def site_hooks(self) -> dict[str, list[int]]:
        """By the name of each of the site's hooks the jobs for which it ran."""
        lines = [line.split() for line in Path(self.cluster.root + LOG).read_text().splitlines()]
        names = sorted({name for name, _ in lines} | {"prolog", "task_prolog", "epilog"})
        return {name: sorted(int(number) for one, number in lines if one == name) for name in names}


@pytest.fixture(scope="module")
def own_hooks(slurm_release: str) -> Iterator[SlurmCluster]:
    """A cluster on which nobody thought of drainwise, with a prolog, an epilog and a task prolog that write a line."""
    config = "".join(f"{key}={path}\n" for key, path in OWN.items())
    with SlurmCluster(nodes=1, cpus=8, release=slurm_release, config=config) as running:
        for path in OWN.values():
            name = path.rpartition("/")[2]
            running.write(path, f"#!/bin/sh\necho {name} $SLURM_JOB_ID >>{LOG}\n", 0o755)
        running.write(LOG, "", 0o666)
        running.write("/usr/local/bin/systemctl", SYSTEMCTL, 0o755)
        running.run(["mkdir", "-p", "/run/systemd/system"], node=NODE)
        yield running


def configuration(cluster: SlurmCluster) -> list[str]:
    """What slurmctld says of hooks, as KEY=VALUE."""
    lines = cluster.run(["scontrol", "show", "config"]).stdout.splitlines()
    return [re.sub(r"\s*=\s*", "=", line) for line in lines if re.match(r"\w*(Prolog|Epilog)", line)]


def test_the_quick_start(own_hooks: SlurmCluster, tmp_path_factory: pytest.TempPathFactory) -> None:
    """From no package to the first figure, an order, an upgrade, back, and to nothing: eight countings, no harm."""
    cluster, admin = own_hooks, Admin(own_hooks)
    version = cluster.run(["python3", "-c", "import sys; print(*sys.version_info[:2], sep='.')"]).stdout.strip()
    unpack_wheels(wheels_for(version), ("numpy", "jinja2", "markupsafe"), f"{cluster.root}/usr/local/lib/drainwise")
    admin.has(OLDER, tmp_path_factory)
    before = configuration(cluster)
    admin.runs("exec sleep 3000")
    admin.nobody_is_harmed()

    [installs] = blocks_of(PAGE, "1.")
    assert [admin.types(line, NODE) for line in installs][-1] == f"drainwise {OLDER}\n"
    admin.nobody_is_harmed()
    put_in_force(admin, before)
    pilot = first_figures(admin)
    ordered = order(admin, pilot)
    [[again], out, away] = blocks_of(PAGE, "Upgrade")
    for starts, other in enumerate((drainwise.__version__, OLDER), 2):
        admin.has(other, tmp_path_factory)
        admin.types(again, NODE)
        assert admin.types("drainwise --version", NODE) == f"drainwise {other}\n"
        agent_has_started(cluster, starts)
        admin.nobody_is_harmed()
        assert cluster.job(pilot).end == ordered, "the order stands"
        assert Path(f"{cluster.root}/etc/drainwise/site.ini").read_text() == SITE_FILE

    for line in out:
        admin.types(line, "central")
    assert configuration(cluster) == before
    for line in away:
        admin.types(line, NODE)
    admin.nobody_is_harmed()
    left = cluster.run(["sh", "-c", "find /usr /etc /var -xdev -name '*drainwise*'"], node=NODE).stdout
    assert left.split() == ["/usr/local/lib/drainwise"], "the site's own"
    assert len(admin.short) == 8 and cluster.job(pilot).end == ordered


def put_in_force(admin: Admin, before: list[str]) -> None:
    """The steps 2 to 4: slurmctld says what it said `before` until the last of them."""
    [[central, renders, shows]] = blocks_of(PAGE, "2.")
    admin.types(central, "central")
    admin.cluster.write("/etc/drainwise/site.ini", SITE_FILE)
    admin.types(renders, "central")
    assert "/usr/libexec/drainwise/slurm-task-prolog" in admin.types(shows, "central")

    [[tree], agent] = blocks_of(PAGE, "3.")
    for line in (tree, *agent):
        admin.types(line, NODE)
    agent_has_started(admin.cluster, 1)
    assert configuration(admin.cluster) == before
    admin.nobody_is_harmed()

    include, restart = blocks_of(PAGE, "4.")
    for line in include:
        admin.types(line, "central")
    for line in restart:
        admin.types(line, NODE)
    assert "TaskProlog=/usr/libexec/drainwise/slurm-task-prolog" in configuration(admin.cluster)
    admin.nobody_is_harmed()


def agent_has_started(cluster: SlurmCluster, times: int) -> None:
    """Wait until it has, and no more often."""
    log = Path(cluster.path("/run/drainwise-node-agent.log", NODE))
    cluster.wait_for(lambda: log.read_text().count("looks after") == times, SECONDS, f"start {times} of the agent")


def first_figures(admin: Admin) -> int:
    """The step 5: the number of a pilot that squeue shows with its report."""
    [[figures, status]] = blocks_of(PAGE, "5.")
    pilot = admin.runs(PILOT, "--cpus-per-task=2", "--time=1-0")
    reported = re.compile(rf"^{pilot} +alice +{{\"drainwise\":1,.*\"used_cpu\":1\b", re.MULTILINE)
    admin.cluster.wait_for(lambda: reported.search(admin.types(figures, "central")), SECONDS, "the first figures")
    assert re.search(rf"^{pilot} .*\balice\b.*\bfresh\b", admin.types(status, "central"), re.MULTILINE)
    admin.nobody_is_harmed()
    return pilot


def order(admin: Admin, pilot: int) -> int:
    """The step 7: when the pilot's lease ends then, UNIX s."""
    [[trial, dry_run, act, shows]] = blocks_of(PAGE, "7.")
    admin.types(trial, "central")
    ends = admin.cluster.job(pilot).end
    assert re.search(rf"\b{pilot}\b", admin.types(dry_run, "central")) and admin.cluster.job(pilot).end == ends
    print(admin.types(act, "central"))
    print(admin.types(shows, "central"))
    ordered = admin.cluster.job(pilot).end
    assert ordered <= ends - 22 * 3600, "the order shortens the lease of a day"
    return ordered
