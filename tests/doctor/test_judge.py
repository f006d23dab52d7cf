"""What a doctor says of a machine: each disorder under its topic, and the first thing to do."""

from __future__ import annotations

from dataclasses import replace

import pytest

from drainwise.cli.doctor import lines_of
from drainwise.cli.screen.layout import Paper
from drainwise.doctor.facts import (
    AgentLook,
    BatchFacts,
    Installation,
    MachineFacts,
    RenderedFact,
    Rights,
    RunningProcess,
    SeenNode,
)
from drainwise.doctor.judge import TOPICS, judge, next_step
from drainwise.pool.finding import DANGEROUS, MISSING, OK, Finding

NODE = MachineFacts(
    "wn1",
    0,
    Installation("0.2.0", "release", "/usr/share/drainwise/releases/x", (("drainwise-node", "0.2.0"),), "0.2.0"),
    (
        BatchFacts(
            *("htcondor", "HTCondor", "25.4.0", ("execute",)),
            daemons=("condor_master", "condor_startd"),
            in_force=True,
            nodes=(SeenNode("wn1", "0.2.0", 12),),
            stale_after=900,
            update=300,
            standings={"fresh": 3},
        ),
    ),
    (RenderedFact("/usr/libexec/drainwise/pilot-cron", "the defaults", "0.2.0", differs=False),),
    (RunningProcess("condor_master", 7, 90_000), RunningProcess("condor_startd", 8, 89_000)),
)
[BATCH] = NODE.batch
CENTRAL = replace(
    NODE,
    host="cm",
    batch=(
        replace(
            BATCH,
            roles=("central",),
            agent_here=True,
            whole=True,
            daemons=("condor_master",),
            rights=Rights(True, "tried at wn1"),
        ),
    ),
    installation=replace(
        NODE.installation, libraries={"numpy": "2.0", "jinja2": "3.1", "htcondor2": "25.4.0"}, packages=()
    ),
    agent=(AgentLook(True, "an agent that acts is running"),),
)


def bad(facts: MachineFacts) -> list[tuple[str, str]]:
    """The topics with something to mend, and how grave it is."""
    return [(one.what, one.severity) for one in judge(facts) if one.severity != OK]


@pytest.mark.parametrize("facts", [NODE, CENTRAL, replace(NODE, batch=(), rendered=(), running=())])
def test_a_machine_in_order_has_nothing_to_mend(facts: MachineFacts) -> None:
    """A machine without a batch system, too; each topic has its line."""
    found = judge(facts)
    assert bad(facts) == []
    assert list(dict.fromkeys(one.what for one in found)) == list(TOPICS)
    assert next_step(found) == "nothing to mend here"


def changed(**batch: object) -> MachineFacts:
    """The node with another view of its batch system."""
    return replace(NODE, batch=(replace(BATCH, **batch),))  # type: ignore[arg-type]


FILE = NODE.rendered[0]
HERE = NODE.installation
DISORDERS = {
    "a wrong site file": (
        replace(NODE, site="/etc/drainwise/site.ini", site_fault="[reclaim] grace"),
        *("role", DANGEROUS, "correct /etc/drainwise/site.ini"),
    ),
    "what cannot be looked at": (replace(NODE, faults=("slurm: a fault",)), "role", MISSING, "a fault"),
    "no package for hooks": (
        replace(NODE, installation=replace(HERE, release="")),
        *("installed", MISSING, "drainwise install"),
    ),
    "two versions here": (
        replace(NODE, installation=replace(HERE, release="0.1.0")),
        *("installed", MISSING, "one version here"),
    ),
    "a closed directory": (
        replace(NODE, installation=replace(HERE, unreadable="/usr/share")),
        *("installed", DANGEROUS, "chmod a+rX /usr/share"),
    ),
    "no numpy for the agent": (
        replace(CENTRAL, installation=replace(CENTRAL.installation, libraries={"jinja2": "3", "htcondor2": "25"})),
        *("installed", MISSING, "python3-numpy"),
    ),
    "no bindings for the agent": (
        replace(CENTRAL, installation=replace(CENTRAL.installation, libraries={"jinja2": "3", "numpy": "2"})),
        *("installed", MISSING, "/usr/local/lib/drainwise htcondor"),
    ),
    "rendered from an older site file": (
        replace(NODE, rendered=(replace(FILE, differs=True, command="drainwise config htcondor --out /"),)),
        *("rendered", MISSING, "drainwise config htcondor --out /"),
    ),
    "what a removal left": (
        replace(NODE, rendered=(RenderedFact("/etc/slurm/prolog.d/50-drainwise", stub=True),)),
        *("rendered", MISSING, "take it out"),
    ),
    "a file that cannot be read": (
        replace(NODE, rendered=(RenderedFact("/etc/drainwise/node.conf", fault="Permission denied"),)),
        *("rendered", MISSING, "ls -l /etc/drainwise/node.conf"),
    ),
    "a hook that others can change": (
        replace(NODE, rendered=(replace(FILE, fault="others can change it", is_dangerous=True, command="chmod"),)),
        *("rendered", DANGEROUS, "chmod"),
    ),
    "what a check of the system finds here": (
        changed(findings=(Finding(MISSING, "Include", "it is included twice", "sed it", "2 times"),)),
        *("in force", MISSING, "sed it"),
    ),
    "not in force": (changed(in_force=False, enable="echo it"), "in force", MISSING, "echo it"),
    "a daemon that is down": (
        replace(NODE, running=NODE.running[:1]),
        "running",
        MISSING,
        "condor_on -startd   # not needed in the first seconds after a start",
    ),
    "no answer": (changed(fault="condor_status did not answer"), "running", MISSING, "did not answer"),
    "an agent that does not run": (
        replace(CENTRAL, agent=(AgentLook(False, "nobody holds the lock", "systemctl start drainwise-agent"),)),
        *("running", MISSING, "systemctl start drainwise-agent"),
    ),
    "orders that are refused": (
        replace(CENTRAL, batch=(replace(CENTRAL.batch[0], rights=Rights(False, "no ADMINISTRATOR", "ALLOW_A = x")),)),
        *("allowed", MISSING, "ALLOW_A = x"),
    ),
    "a silent node of the pool": (
        replace(CENTRAL, batch=(replace(CENTRAL.batch[0], nodes=(SeenNode("wn2.site"), SeenNode("cm", "", 1))),)),
        *("fresh", MISSING, "drainwise doctor   # on wn2.site"),
    ),
    "a silent node": (changed(nodes=(SeenNode("wn1", "0.2.0", 3600),)), "fresh", MISSING, "drainwise check htcondor"),
    "a node that never published": (
        changed(nodes=(SeenNode("wn1"),)),
        "fresh",
        MISSING,
        "sleep 300; drainwise check htcondor   # only if it was enabled just now; else at once",
    ),
}


@pytest.mark.parametrize("disorder", DISORDERS)
def test_a_disorder_is_found_and_the_next_step_mends_it(disorder: str) -> None:
    facts, topic, severity, step = DISORDERS[disorder]
    assert bad(facts) == [(topic, severity)]
    assert step in next_step(judge(facts))


def test_the_danger_comes_first_and_then_the_first_topic() -> None:
    facts = replace(NODE, running=(), rendered=(replace(FILE, differs=True, command="drainwise config"),))
    assert next_step(judge(facts)).startswith("drainwise config")
    dangerous = replace(facts, installation=replace(HERE, unreadable="/usr/share"))
    assert next_step(judge(dangerous)) == "chmod a+rX /usr/share"


def test_after_a_next_step_there_may_be_others() -> None:
    """Each is typed alone; where nothing is to be mended, nothing follows."""
    found = judge(replace(NODE, running=NODE.running[:1]))
    step, then = [*lines_of(found, next_step(found), Paper())][-2:]
    assert step.startswith("next: condor_on") and then.startswith("then: drainwise doctor")
    assert [*lines_of(judge(NODE), "nothing to mend here", Paper())][-1] == "next: nothing to mend here"


def test_an_edited_file_is_kept_and_no_disorder() -> None:
    facts = replace(NODE, rendered=(replace(FILE, edited=True, differs=True),))
    assert bad(facts) == []
    assert any("edited here" in one.why for one in judge(facts))


def test_versions_of_nodes_are_counted_and_a_mix_is_no_disorder() -> None:
    """Neighbouring versions work together: an upgrade goes node by node."""
    nodes = (SeenNode("a", "0.2.0", 1), SeenNode("b", "0.1.0", 1), SeenNode("c", "", 1), SeenNode("d"))
    facts = replace(CENTRAL, batch=(replace(CENTRAL.batch[0], nodes=nodes),))
    [line] = [one.why for one in judge(facts) if one.what == "versions"]
    assert line == "mixed: 1 of unknown, 1 of 0.1.0, 1 of 0.2.0; here 0.2.0"
    assert bad(facts) == [("fresh", MISSING)]
