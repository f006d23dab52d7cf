"""What is wrong with Slurm on the machine where it is asked, and the command that is typed there."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from drainwise.pool.clocks import wrong_clock
from drainwise.pool.finding import DANGEROUS, MISSING, OK
from drainwise.siteconfig import SiteConfig, SlurmSection
from drainwise.slurm.setup.check import exemption_before_others, given_twice, judge
from drainwise.slurm.setup.check_facts import ClusterFacts, NodeFacts
from drainwise.slurm.setup.check_machine import (
    controllers_in,
    judge_away,
    judge_node_agent,
    judge_own_config,
    lines_here,
    unanswered,
)
from drainwise.slurm.setup.own_settings import ClusterHistory, ConfigLine

SITE = SiteConfig()
CONF, OURS = "/etc/slurm/slurm.conf", "/etc/slurm/drainwise.conf"


@pytest.mark.parametrize(
    ("said", "host", "what", "line"),
    [
        ("Munge encode failed: Failed to access socket", "n1", "munge", "systemctl start munge"),
        ("slurm_load_ctl_conf error: Protocol authentication error", "n1", "munge", "scp root@central:/etc/munge"),
        (str(wrong_clock("40 s ahead of", "slurmctld's")), "n1", "clock", "timedatectl set-ntp true"),
        ("scontrol did not answer within 5 s", "central.site.test", "slurmctld", "systemctl start slurmctld"),
        ("Unable to contact slurm controller", "n1", "slurmctld", "systemctl start slurmctld   # on central"),
    ],
)
def test_why_slurm_does_not_answer_is_named_with_what_mends_it(said: str, host: str, what: str, line: str) -> None:
    """As each command says it on Slurm 24.11."""
    found = unanswered(said, [ConfigLine(CONF, 2, "slurmctldhost", "central(10.0.0.1)")], host)
    assert (found.severity, found.what, found.machine) == (MISSING, what, host)
    assert found.line.startswith(line) and said in found.why
    assert ("# on" in found.line) == (host == "n1" and what == "slurmctld")


def test_the_controllers_are_known_without_slurmctld(tmp_path: Path) -> None:
    """By the machine's own slurm.conf; a machine without one, or with one that cannot be read, knows none."""
    site = replace(SITE, slurm=replace(SlurmSection(), config_dir=str(tmp_path)))
    assert lines_here(site) == ()
    (tmp_path / "slurm.conf").write_text("SlurmctldHost=central(10.0.0.1)\nSlurmctldHost=second.site.test\n")
    assert controllers_in(lines_here(site)) == ["central", "second"]


@pytest.mark.parametrize("key", ["preemptparameters", "schedulerparameters"])
def test_a_line_at_which_slurmctld_ends_is_found_before_and_after(key: str) -> None:
    """Seen with 24.11.5, whether it starts or is reconfigured; behind the others the word is sound."""
    line = ConfigLine(CONF, 7, key, "min_exempt_priority=2,reorder_count=3")
    [*before] = exemption_before_others([line, replace(line, value="youngest_first,min_exempt_priority=2")])
    after = unanswered("scontrol: error: connection refused", [line], "central")
    if key == "preemptparameters":
        cure = f"sed -i --follow-symlinks '7s/=.*/=reorder_count=3,min_exempt_priority=2/' {CONF}; systemctl restart"
        assert [one.severity for one in before] == [DANGEROUS] and before[0].line.startswith(cure)
        assert after == replace(before[0], machine="central")
    else:
        assert (before, after.what) == ([], "slurmctld")


def test_a_node_without_its_agent_is_found() -> None:
    assert [one.severity for one in judge_node_agent({"slurmd", "drainwise-node-agent"})] == [OK]
    [found] = judge_node_agent({"slurmd"})
    assert found.severity == MISSING and found.line.endswith("systemctl enable --now drainwise-node-agent")


def cluster(*lines: ConfigLine, **config: str) -> ClusterFacts:
    """A cluster whose slurm.conf here has these lines."""
    return ClusterFacts({"slurm_conf": CONF, **config}, {}, (), (), history=ClusterHistory(lines=lines))


def test_a_machine_whose_own_slurm_conf_leaves_our_lines_out_is_found() -> None:
    """Where they are in force: slurmd would run without when it starts anew. Without a file here there is nothing."""
    site_line, our_line = ConfigLine(CONF, 3, "clustername", "x"), ConfigLine(OURS, 9, "prolog", "/p/*")
    [found] = judge_own_config(cluster(site_line), SITE, True, "slurmd")
    assert found.line == (
        r"sed -i --follow-symlinks '$a\Include drainwise.conf' /etc/slurm/slurm.conf; systemctl restart slurmd"
    )
    assert list(judge_own_config(cluster(site_line, our_line), SITE, True, "slurmd")) == []
    assert list(judge_own_config(cluster(site_line), SITE, False, "slurmd")) == []
    configless = ClusterFacts({}, {}, (), (), history=ClusterHistory(lines=None))
    assert list(judge_own_config(configless, SITE, True, "slurmd")) == []


def test_lines_that_are_included_twice_are_one_finding_whose_command_leaves_them_once(tmp_path: Path) -> None:
    """It is typed here, on a file."""
    conf = tmp_path / "slurm.conf"
    conf.write_text("ClusterName=x\nInclude drainwise.conf\nA=1\nInclude drainwise.conf\n")
    ours = [ConfigLine(OURS, number, key, "/p/*") for number, key in ((9, "prolog"), (11, "epilog"))]
    facts = replace(cluster(*ours, *ours), config={"slurm_conf": str(conf)})
    [found] = given_twice(facts, SITE, 0)
    assert (found.what, found.value) == ("Include", "2 times")
    subprocess.run(["sh", "-c", found.line.partition("; scontrol")[0]], check=True)
    assert conf.read_text() == "ClusterName=x\nA=1\nInclude drainwise.conf\n"


def test_of_a_limit_that_is_given_twice_the_sites_later_line_goes() -> None:
    """Slurm takes the last one, which is shorter than ours needs."""
    lines = ConfigLine(OURS, 18, "prologepilogtimeout", "60"), ConfigLine(CONF, 21, "prologepilogtimeout", "5")
    [found] = given_twice(cluster(*lines, prologepilogtimeout="5"), SITE, 0)
    assert found.line == "sed -i --follow-symlinks 21d /etc/slurm/slurm.conf; scontrol reconfigure"


def test_nodes_that_were_drained_for_a_hook_and_a_silent_accounting_are_found() -> None:
    """Others that are drained are the site's own matter."""
    facts = replace(
        cluster(accountingstoragehost="db1"),
        drained=(("n[1-2]", "Prolog error"), ("n3", "new disks")),
        accounting_fault="sacctmgr failed: Connection refused",
    )
    found = {one.what: one for one in judge(facts, SITE, 0)}
    assert found["drained nodes"].line == "drainwise doctor   # on n[1-2]"
    assert found["drained nodes"].value == "n[1-2]: Prolog error"
    assert found["slurmdbd"].line == "systemctl start slurmdbd   # on db1"
    calm = {one.what for one in judge(cluster(), SITE, 0)}
    assert not {"drained nodes", "slurmdbd"} & calm


@pytest.mark.parametrize("reason", ["Prolog error", "Not responding"])
def test_a_node_that_is_in_order_again_takes_jobs_by_its_own_doctors_last_step(reason: str) -> None:
    """Before its slurmd runs it would drain anew, and what somebody else has drained stays so."""
    facts = replace(
        cluster(),
        drained=(("n[1-2]", reason), ("n3", "new disks")),
        nodes=(NodeFacts("w2", "n2"), NodeFacts("w3", "n3")),
    )
    assert [one.line for one in judge_away(facts, "w2.site", {"slurmd"})] == [
        "scontrol update NodeName=n2 State=RESUME"
    ]
    assert [one.line for one in judge_away(facts, "w2.site", set())] == ["systemctl start slurmd"]
    assert not [*judge_away(facts, "w3", {"slurmd"}), *judge_away(facts, "w1", {"slurmd"})]
