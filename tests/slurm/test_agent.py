"""The agent as a process of its own: started as systemd starts it, called by a prolog, killed at any moment."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.common.wake import wake
from drainwise.node.settings import parse
from drainwise.slurm import AGENT_FIFO
from drainwise.slurm.node_agent.agent import LONGEST_PAUSE, RoundSchedule
from interpreters import PYTHONS, interpreter
from made_up_node import PYTHON, public_directory
from real_daemons.waiting import wait_for

from .agent_host import AgentHost

pytestmark = [
    pytest.mark.daemons,  # it runs the real agent
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: the agent becomes each job's user"),
]

PLUGINS = str(Path(__file__).parents[2] / "plugins")
DEADLINE = 20.0


class Agent:
    """An agent of a host, with what it says."""

    def __init__(
        self, host: AgentHost, python: str = PYTHON, period: int = 3600, notify: str = "", **settings: str
    ) -> None:
        keys = {
            "runtime_dir": host.runtime,
            "bin_dir": host.slurm.bin_dir,
            "agent_period_secs": str(period),
            "shutdown_file": host.settings.shutdown_file,
            **settings,
        }
        Path(host.base, "node.conf").write_text("".join(f"{key} = {value}\n" for key, value in keys.items()))
        program = (
            f"import sys; sys.dont_write_bytecode = True; sys.path.append({PLUGINS!r}); "
            f"from drainwise.slurm.node_agent.agent import main; sys.exit(main({f'{host.base}/node.conf'!r}))"
        )
        environment = {"NOTIFY_SOCKET": notify} if notify else {}
        self._said = Path(host.base, f"said.{time.monotonic_ns()}")
        with open(self._said, "wb") as stream:
            self.process = subprocess.Popen([python, "-IS", "-c", program], stderr=stream, env=environment)

    def said(self) -> list[str]:
        return self._said.read_text(encoding="ascii").splitlines()

    def end(self, how: int = signal.SIGKILL) -> None:
        self.process.send_signal(how)
        self.process.wait(DEADLINE)


@pytest.fixture
def host() -> Iterator[AgentHost]:
    with public_directory() as base:
        yield AgentHost(base)


@pytest.fixture
def start(host: AgentHost) -> Iterator[Callable[..., Agent]]:
    """Start agents; they end with the test."""
    agents: list[Agent] = []

    def one(**options: object) -> Agent:
        agents.append(Agent(host, **options))  # type: ignore[arg-type]
        wait_for(lambda: agents[-1].said() or agents[-1].process.poll() is not None, what="its first line")
        return agents[-1]

    yield one
    for agent in agents:
        if agent.process.poll() is None:
            agent.end()


def complete(host: AgentHost, number: int) -> bool:
    return (host.tree(number) / "complete").exists()


@pytest.mark.parametrize("python", PYTHONS)
def test_a_call_completes_a_new_job_at_once(host: AgentHost, start: Callable[..., Agent], python: str) -> None:
    """With the system's Python and 3.9, isolated: long before the next round is due."""
    agent = start(python=interpreter(python))
    host.start(17)  # the prolog calls
    wait_for(lambda: complete(host, 17), what="the job to be complete")
    assert host.features(17)["wall_limit_secs"] == "3600"
    assert len(agent.said()) == 1
    assert host.slurm.complaints() == ""


def test_jobs_that_were_there_before_the_agent(host: AgentHost, start: Callable[..., Agent]) -> None:
    """Whatever their trees are marked as."""
    host.start(17)
    assert complete(host, 17), "nobody listened: the prolog itself says that nothing is to be waited for"
    assert "wall_limit_secs" not in host.features(17)
    start()
    wait_for(lambda: "wall_limit_secs" in host.features(17), what="its limits")


def test_rounds_come_by_themselves(host: AgentHost, start: Callable[..., Agent]) -> None:
    """Published within a period, and again when it changes."""
    start(period=1)
    host.start(17)
    host.report(17)
    wait_for(lambda: host.published(17), what="the report")
    host.report(17, used=3)
    wait_for(lambda: 'used_cpu":3,' in host.slurm.comment(17), what="the next one")


def test_systemd_hears_of_it_once_prologs_can_call_it(host: AgentHost, start: Callable[..., Agent]) -> None:
    """slurmd starts after that, so no prolog finds nobody."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(f"{host.base}/notify")
        systemd.settimeout(DEADLINE)
        start(notify=f"{host.base}/notify")
        assert systemd.recv(4096).decode() == f"READY=1\nSTATUS=the agent looks after {host.runtime}, every 3600 s"
        assert wake(f"{host.runtime}/{AGENT_FIFO}")
        host.start(17)
        wait_for(lambda: complete(host, 17), what="the job to be complete")


def test_job_slots_follow_the_nodes_settings(host: AgentHost, start: Callable[..., Agent]) -> None:
    """Draft row 2.3: a dynamic value. A file that has changed is read again; a wrong one changes nothing."""
    agent = start(period=1)
    host.start(17)
    file = Path(host.base, "node.conf")
    text = file.read_text()
    wait_for(lambda: host.features(17).get("jobslots") == "64", what="Slurm's own count")
    file.write_text(f"{text}jobslots = 12\n")
    wait_for(lambda: host.features(17).get("jobslots") == "12", what="what the site says by now")
    file.write_text(f"{text}jobslots = many\n")
    wait_for(lambda: any("jobslots" in line for line in agent.said()), what="the line about the broken file")
    assert host.features(17)["jobslots"] == "12"
    file.write_text(text)
    wait_for(lambda: host.features(17).get("jobslots") == "64", what="Slurm's own count again")


def test_a_node_takes_the_values_of_its_kind(host: AgentHost, start: Callable[..., Agent]) -> None:
    """By its name from the prolog on; by a feature, which slurmctld says, when the agent has learnt it."""
    agent = start(period=1)
    file = Path(host.base, "node.conf")
    kinds = (
        "kind = by-feature\nfeature = rack9\nhs06 = 900\nkind = by-name\nhost = node[1-9]\nhs06 = 320\njobslots = 3\n"
    )
    text = file.read_text()
    file.write_text(text + kinds)
    host.settings = parse(text + kinds, "node.conf")
    host.start(17)
    assert (host.features(17)["hs06"], host.features(17)["jobslots"]) == ("320", "3")
    wait_for(lambda: complete(host, 17), what="the job to be complete")
    assert (host.features(17)["hs06"], host.features(17)["hs06_job"]) == ("320", "40")
    file.write_text((text + kinds).replace("rack9", "rack1"))
    wait_for(lambda: host.features(17)["hs06"] == "900", what="the kind by its feature")
    wait_for(lambda: host.features(17)["jobslots"] == "64", what="the next of its files")
    assert agent.process.poll() is None


def test_there_is_one_agent(host: AgentHost, start: Callable[..., Agent]) -> None:
    """A second one says so and ends; after the first was killed another may start."""
    first, second = start(), start()
    assert second.process.wait(DEADLINE) == 1
    assert len(second.said()) == 1 and "has an agent already" in second.said()[0]
    first.end()
    assert start().process.poll() is None


def test_a_runtime_directory_of_everybodys_is_refused(host: AgentHost, start: Callable[..., Agent]) -> None:
    """HOSTILE 47: whoever made it first could have put anything there."""
    os.mkdir(host.runtime)
    os.chmod(host.runtime, 0o777)
    agent = start()
    assert agent.process.wait(DEADLINE) == 1
    assert "others may write there" in agent.said()[0]


def test_an_outage_is_one_line_and_no_pile_up(host: AgentHost, start: Callable[..., Agent]) -> None:
    """HOSTILE 54: while slurmctld is silent one command runs at a time, later and later; then all is made good."""
    host.start(17)
    host.report(17)
    host.slurm.mode("hang")
    agent = start(period=1, command_timeout_secs="1")
    wait_for(lambda: len(agent.said()) > 1, what="the line")
    for _ in range(200):
        wake(f"{host.runtime}/agent.wake")
    begun = len(host.slurm.calls())
    while len(host.slurm.calls()) == begun:  # until the next one
        children = Path(f"/proc/{agent.process.pid}/task/{agent.process.pid}/children").read_text().split()
        assert len(children) <= 1
        time.sleep(0.02)
    assert len(host.slurm.calls()) <= 5, "whoever calls it, and however often, is not the reason to ask again"
    assert [line.partition(": ")[2].partition(":")[0] for line in agent.said()[1:]] == ["slurmctld"]
    host.slurm.mode("hang", on=False)
    wait_for(lambda: host.published(17), what="the report")
    wait_for(lambda: len(agent.said()) == 3, what="the other line")
    assert agent.said()[-1] == "drainwise: slurmctld: answers again"


def test_killed_at_any_moment_nothing_is_half(host: AgentHost, start: Callable[..., Agent]) -> None:
    """HOSTILE 51: whole files only, and the next agent does all that was not done."""
    for number in range(17, 23):
        host.start(number)
        host.report(number)
    for turn in range(12):
        end = host.now + 600 + turn
        for number in range(17, 23):
            host.slurm.set(number, EndTime=end, TimeLimit="00:30:00")
        agent = Agent(host, period=1)
        pause = time.monotonic() + 0.05 + turn * 0.025
        while time.monotonic() < pause:
            time.sleep(0.001)
        agent.end()
        for number in range(17, 23):
            word = host.site_ad(number)
            assert word == "" or re.fullmatch(r"VACATE_DESIRED = True\nPAYLOAD_DEADLINE = \d+\n", word)
            keys = {name: text for name, text in host.features(number).items() if not name.startswith(".")}
            for name, text in keys.items():
                assert text and (name.startswith("shutdown_") or re.fullmatch(r"[\d.]+", text)), name
            assert re.fullmatch(r'(\{"drainwise":1,.*\})?', host.slurm.comment(number))
    start(period=1)
    for number in range(17, 23):
        wait_for(lambda number=number: f"= {end}\n" in host.site_ad(number), what="the order")  # type: ignore[misc]
        wait_for(lambda number=number: host.published(number), what="the report")  # type: ignore[misc]


def test_it_outlives_what_a_job_does_to_it(host: AgentHost, start: Callable[..., Agent]) -> None:
    """A tree without a lease, with a broken one, and things that are no trees: a line each, the others as before."""
    agent = start(period=1)
    host.start(17)
    host.start(18)
    (host.tree(18) / "lease").write_text("job = x\n")
    os.mkdir(host.tree(19))
    host.tree(20).write_text("")
    host.tree(21).symlink_to("/etc")
    os.mkfifo(f"{host.runtime}/fifo")
    os.mkdir(f"{host.runtime}/.hidden")
    host.report(17)
    wait_for(lambda: host.published(17), what="the neighbour's report")
    assert agent.process.poll() is None
    # A round of a slow machine may see the neighbour's tree while it is made: then that has a line of its own.
    jobs = {line.split(":")[1].strip() for line in agent.said()[1:]} - {"job 17"}
    assert jobs == {"job 18", "job 19", "job 20", "job 21"}


def test_it_stays_small(host: AgentHost, start: Callable[..., Agent]) -> None:
    """A hundred rounds with jobs that come and go leave no descriptor, child or memory behind."""
    agent = start()
    host.start(17)
    wait_for(lambda: complete(host, 17), what="the first job")

    def size() -> tuple[int, int]:
        status = Path(f"/proc/{agent.process.pid}/status").read_text()
        resident = re.search(r"VmRSS:\s+(\d+)", status)
        assert resident
        return len(os.listdir(f"/proc/{agent.process.pid}/fd")), int(resident[1])

    before = size()
    for number in range(100, 130):
        host.start(number)
        wait_for(lambda number=number: complete(host, number), what="a job")  # type: ignore[misc]
        shutil.rmtree(host.tree(number))
    wait_for(lambda: size()[0] <= before[0], what="all descriptors to be closed")
    assert size()[1] < before[1] + 3000


def test_agents_have_phases_of_their_own() -> None:
    """The first round is somewhere in the first period, the others a period later each."""
    schedule = RoundSchedule(30, 1000.0, 0.5)
    assert schedule.due == 1015.0
    schedule.succeeded(1015.2)
    assert schedule.due == 1045.0


def test_rounds_that_could_not_be_done_are_left_out() -> None:
    """Nothing is made up for after a pause of the machine."""
    schedule = RoundSchedule(30, 1000.0, 0.0)
    schedule.succeeded(5000.0)
    assert 5000.0 <= schedule.due <= 5030.0


@given(st.floats(1, 3600), st.lists(st.floats(0, 0.999), min_size=1, max_size=60))
def test_pauses_grow_and_stay_bounded(period: float, chances: list[float]) -> None:
    """Never shorter than three quarters of a period, never longer than the limit and its quarter."""
    schedule, now, longest = RoundSchedule(period, 0.0, 0.0), 0.0, max(LONGEST_PAUSE, period) * 1.25
    for chance in chances:
        schedule.failed(now, chance)
        assert 0.75 * period * 0.999 <= schedule.due - now <= longest * 1.001
        assert now < schedule.greet_due <= now + period + 1e-6
        now = schedule.due
    schedule.succeeded(now)
    assert schedule.due - now <= period * 1.001
    assert schedule.greet_due <= now


def test_a_greeting_that_is_answered_ends_the_silence() -> None:
    """A new job got an answer: the round that was put off is due now. Otherwise a greeting changes nothing."""
    schedule = RoundSchedule(30, 0.0, 0.9)
    schedule.succeeded(1.0, is_round=False)
    assert schedule.due == 27.0
    for now in (0.0, 30.0, 90.0):
        schedule.failed(now, 0.5)
    schedule.succeeded(95.0, is_round=False)
    assert schedule.due == 95.0
