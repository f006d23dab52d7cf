"""The check asks each node what an order would ask, as the agent would: it says ok only where orders can be given."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from condor_pool import DOMAIN, CommandError, CondorPool, obtain_root
from condor_pool.layout import CENTRAL, PORT
from drainwise.htcondor.setup.check import LINES
from drainwise.htcondor.setup.render import ROLES, render
from drainwise.install.rendered_tree import RenderedFile, write_tree
from drainwise.siteconfig import SiteConfig, load
from drainwise.siteconfig.schema import AgentSection
from real_daemons.furnish import write_file

PLUGINS = Path(__file__).parents[2] / "plugins"
SITE_FILE = """\
[htcondor]
cron_period = 2s
slot_update_interval = 2s
update_interval = 2s
initial_update_interval = 1s
max_vacate_time = 5s
[reclaim]
grace = 1m
margin = 10s
"""
TRUST = f"{CENTRAL}.{DOMAIN}"
# As `use security:get_htcondor_idtokens` of HTCondor 23 has it; the tools come as condor@ the pool's own domain here.
STRICT = f"""\
TRUST_DOMAIN = {TRUST}
ALLOW_ADMINISTRATOR = root@* condor@$(TRUST_DOMAIN) condor@{DOMAIN}
"""
TOKENS = "/etc/condor/tokens.d"
# Root of the central manager with PyPI's bindings: the machine's own key and tokens, nothing of its home.
CLIENT = f"""\
RELEASE_DIR = /usr
LOCAL_DIR = /tmp
LOCAL_CONFIG_DIR =
CONDOR_HOST = 127.0.0.10
COLLECTOR_HOST = 127.0.0.10:{PORT}
NETWORK_INTERFACE = 127.0.0.10
ENABLE_IPV6 = False
DEFAULT_DOMAIN_NAME = {DOMAIN}
UID_DOMAIN = {DOMAIN}
TRUST_DOMAIN = {TRUST}
SEC_PASSWORD_DIRECTORY = {{root}}/etc/condor/passwords.d
SEC_TOKEN_SYSTEM_DIRECTORY = {{root}}{TOKENS}
SEC_CLIENT_AUTHENTICATION_METHODS = IDTOKENS, FS, ANONYMOUS
"""


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CondorPool]:
    """Two nodes of a pool of HTCondor 23.9 with everything installed, whose nodes know few administrators."""
    obtain_root("trixie")
    file = tmp_path_factory.mktemp("site") / "site.ini"
    file.write_text(SITE_FILE)
    site = load(str(file))
    drop_ins = {role: render(site, role)[-1].text for role in ROLES}
    with CondorPool(nodes=2, cpus=4, release="trixie", config={"all": STRICT, **drop_ins}) as running:
        running.copy_in(str(PLUGINS / "drainwise"), "/usr/share/drainwise/drainwise")
        files = [file for role in ROLES for file in render(site, role)[:-1]]
        write_tree([*files, RenderedFile("/etc/drainwise/site.ini", SITE_FILE)], running.root)
        os.makedirs(f"{running.root}/srv/clients/root")
        write_file(running.root, "/srv/clients/root/condor_config", CLIENT.format(root=running.root))
        running.reconfigure("execute")  # the drop-in includes what has just been put there
        publishing = "PilotCronHeartbeat isnt undefined"
        running.wait_for(lambda: len(running.slots(publishing, ["Name"])) == 2, 30, "crons on 2 nodes")
        yield running


@pytest.fixture
def token(pool: CondorPool) -> Iterator[str]:
    """A token of the machine's, as get_htcondor makes one: of an identity that the nodes' ALLOW_ADMINISTRATOR names."""
    path = f"{TOKENS}/condor@{TRUST}"
    made = pool.run(["condor_token_create", "-identity", f"condor@{TRUST}"]).stdout
    write_file(pool.root, path, made, mode=0o600)
    yield f"condor@{TRUST}"
    os.unlink(pool.root + path)


def check(pool: CondorPool, *words: str, environment: Mapping[str, str] | None = None) -> tuple[int, dict[str, str]]:
    """Exit code of the check on the central manager as root; what it finds to mend, "machine what" -> the rest."""
    argv = [sys.executable, "-B", "-m", "drainwise", "check", "htcondor", "--json"]
    argv += ["--site", f"{pool.root}/etc/drainwise/site.ini", *words]
    config = {"CONDOR_CONFIG": f"{pool.root}/srv/clients/root/condor_config"}
    ran = pool.run_outside(argv, check=False, environment={**config, **(environment or {})})
    assert ran.stdout, ran.stderr
    found = [one for one in json.loads(ran.stdout)["findings"] if one["severity"] != "ok"]
    return ran.returncode, {
        f"{one['machine'].partition('.')[0]} {one['what']}": f"{one['value']}: {one['why']}: {one['line']}"
        for one in found
    }


def faults(pool: CondorPool, *expected: str) -> dict[str, str]:
    """What the check finds, once it is just what is expected: on a busy machine a cron may be late for a moment."""

    def just_those() -> list[dict[str, str]]:
        code, found = check(pool)
        assert code == (1 if found else 0)
        return [found] if list(found) == list(expected) else []

    return pool.wait_for(just_those, 60, f"{expected or 'nothing'} to mend")[0]


def test_an_identity_that_the_nodes_refuse_is_named_with_the_line(pool: CondorPool) -> None:
    """PyPI's bindings without a token come by the pool's key; each node is asked and refuses."""
    found = faults(pool, *(f"{node} orders" for node in pool.node_names))
    for node in pool.node_names:
        assert "condor@password" in found[f"{node} orders"]
        assert "ALLOW_ADMINISTRATOR = $(ALLOW_ADMINISTRATOR), condor@password" in found[f"{node} orders"]
    pool.configure("execute", "90-agent.conf", "ALLOW_ADMINISTRATOR = $(ALLOW_ADMINISTRATOR), condor@password\n")
    pool.reconfigure("execute")
    try:
        faults(pool)
    finally:
        pool.configure("execute", "90-agent.conf", "")
        pool.reconfigure("execute")


def test_the_machines_own_token_is_shown_where_the_key_is_refused(pool: CondorPool, token: str) -> None:
    """Nothing is to be configured for root: check and agent use the token that get_htcondor made; the order arrives."""
    faults(pool)
    text = "executable = /bin/sleep\narguments = 600\ntransfer_executable = False\nqueue\n"
    pool.submit(text, user="alice")
    [slot] = pool.wait_for(
        lambda: pool.slots("JobStart isnt undefined", ["Name", "Machine", "GlobalJobId", "JobStart"]), 60, "a job"
    )
    run = f"{slot.text('GlobalJobId')}@{slot.integer('JobStart')}"
    program = (
        "import sys; from drainwise.htcondor.pool.order_channel import give_order;"
        "from drainwise.htcondor.pool.knobs import OrderEntry;"
        "list(give_order(OrderEntry(sys.argv[1], int(sys.argv[2])), sys.argv[3], sys.argv[4]))"
    )
    deadline = str(int(time.time()) + 1800)  # beyond MachineMaxVacateTime: else the run ends at once
    environment = {"CONDOR_CONFIG": f"{pool.root}/srv/clients/root/condor_config", "PYTHONPATH": str(PLUGINS)}
    argv = [sys.executable, "-B", "-c", program, run, deadline, slot.text("Name"), slot.text("Machine")]
    log = Path(f"{pool.root}{pool.node(slot.text('Machine').partition('.')[0]).log_dir}/StartLog")
    refused = log.read_text().count("PERMISSION DENIED")
    try:
        pool.run_outside(argv, environment=environment)
        assert log.read_text().count("PERMISSION DENIED") == refused
        asked = f"PilotReclaimDeadline =?= {deadline}"
        pool.wait_for(lambda: pool.slots(asked, ["Name"]), 20, "the order on its slot")
    finally:
        pool.run(["condor_rm", "-all"])
        pool.wait_for(lambda: not pool.slots('State == "Claimed"', ["Name"]), 60, "an empty pool")


def test_a_startd_that_has_not_been_started_since_is_named_with_the_line(pool: CondorPool, token: str) -> None:
    """Its knobs look right after a reconfig and it refuses every order; the line of the finding mends it."""
    pool.configure("node2", "90-late.conf", "ENABLE_RUNTIME_CONFIG = False\n")
    pool.restart("node2")
    pool.configure("node2", "90-late.conf", "")
    pool.reconfigure("node2")
    found = faults(pool, "node2 orders")
    assert "has not been started since ENABLE_RUNTIME_CONFIG" in found["node2 orders"]
    line = found["node2 orders"].rpartition(": ")[2].partition("   (")[0]
    assert line == "condor_restart -startd -peaceful NODE"
    pool.run(line.replace("NODE", f"node2.{DOMAIN}").split(), node="node2")
    faults(pool)


@pytest.mark.parametrize(
    ("gone", "what", "words"),
    [
        ("/usr/libexec/drainwise/update-hook", "files of the node", "/usr/libexec/drainwise/update-hook"),
        ("/usr/share/drainwise/drainwise", "PilotCronHeartbeat", "the package has gone"),
    ],
)
def test_files_that_are_gone_from_a_node_are_seen_from_afar(
    pool: CondorPool, token: str, gone: str, what: str, words: str
) -> None:
    """A hook alone, and the whole package: the central manager's check says so of the two nodes."""
    os.rename(pool.root + gone, f"{pool.root}{gone}.away")
    try:
        found = faults(pool, f"node1 {what}", f"node2 {what}")  # they share one file system
        assert words in found[f"node1 {what}"]
    finally:
        os.rename(f"{pool.root}{gone}.away", pool.root + gone)
    faults(pool)


def test_who_may_submit_must_not_write_to_a_startd(pool: CondorPool, token: str) -> None:
    """With the pool's own ALLOW_WRITE alice hides what a node publishes; with the line of the finding she cannot."""
    pool.configure("node1", "90-writers.conf", f"ALLOW_WRITE_STARTD = *@{DOMAIN}\n")
    pool.reconfigure("node1")
    try:
        found = faults(pool, "node1 ALLOW_WRITE_STARTD")
        push = ["sh", "-c", f"echo PilotForged = True | condor_update_machine_ad -name node1.{DOMAIN}"]
        pool.run(push, user="alice")
        line = found["node1 ALLOW_WRITE_STARTD"].rpartition(": ")[2]
        pool.configure("node1", "90-writers.conf", f"{line}\n")
        pool.reconfigure("node1")
        assert pool.run(push, user="alice", check=False).returncode != 0
        faults(pool)
    finally:
        pool.configure("node1", "90-writers.conf", "")
        pool.reconfigure("node1")


def test_an_accounting_group_is_bound_by_the_lines_that_are_shown(pool: CondorPool, token: str) -> None:
    """Where groups have quotas: bob is billed to alice's group, at the submission or later, until they stand there."""
    groups = "GROUP_NAMES = group_a, group_b\nGROUP_QUOTA_group_a = 2\nGROUP_QUOTA_group_b = 2\n"
    job = "executable = /bin/sleep\narguments = 1\nhold = True\n{}\nqueue\n"
    foreign, own = job.format('+AccountingGroup = "group_a.alice"'), job.format("accounting_group = group_b")
    write_file(pool.root, "/etc/condor/accounting_groups", "* alice group_a\n* bob group_b\n")
    pool.configure("central", "90-groups.conf", groups)
    pool.reconfigure("central")
    try:
        faults(pool, "central AccountingGroup")
        pool.submit(foreign, user="bob")
        pool.configure("central", "90-groups.conf", f"{groups}{LINES}\n")
        pool.reconfigure("central")
        faults(pool)
        with pytest.raises(CommandError, match="bob may not use this accounting group"):
            pool.submit(foreign, user="bob")
        for submitted in (pool.submit(own, user="bob"), pool.submit(job.format(""), user="bob")):
            edit = ["condor_qedit", str(submitted), "AccountingGroup", '"group_a.alice"']
            ran = pool.run(edit, user="bob", check=False)
            assert "immutable" in ran.stdout + ran.stderr
    finally:
        pool.configure("central", "90-groups.conf", "")
        pool.reconfigure("central")
        pool.run(["condor_rm", "-all"], check=False)


def test_an_agent_that_dies_below_condor_master_is_told(pool: CondorPool, token: str) -> None:
    """It is alive at any moment when one looks; the master's log says how often it ended."""
    site = "[agent]\nact = yes\ncondor_master = yes\n"
    write_file(pool.root, "/etc/drainwise/agent.ini", SITE_FILE + site)
    write_tree([RenderedFile("/usr/bin/drainwise", "#!/bin/sh\nexit 2\n", 0o755)], pool.root)
    below = f"{render(SiteConfig(agent=AgentSection(condor_master='yes')), 'central')[-1].text}\n"
    pool.configure("central", "90-agent.conf", below + "MASTER_BACKOFF_CONSTANT = 1\n")
    pool.reconfigure("central")
    seen = {
        "_CONDOR_DAEMON_LIST": "MASTER, COLLECTOR, DRAINWISE_AGENT",
        "_CONDOR_MASTER_LOG": f"{pool.root}{pool.node(CENTRAL).log_dir}/MasterLog",
    }
    words = ("--role", "central", "--site", f"{pool.root}/etc/drainwise/agent.ini")
    try:
        found = pool.wait_for(
            lambda: {
                what: why for what, why in check(pool, *words, environment=seen)[1].items() if "ends again" in why
            },
            40,
            "an agent that ends again and again",
        )
        [why] = found.values()
        assert "condor_master does not keep the agent running" in why and "DRAINWISE_AGENT" in why
    finally:
        pool.configure("central", "90-agent.conf", "")
        pool.reconfigure("central")


def test_bindings_that_are_too_old_are_one_line(pool: CondorPool) -> None:
    """Debian's own, of HTCondor 23.9: what a look, an agent's start and the check say, instead of an AttributeError."""
    programs = [
        "from drainwise.htcondor.pool.pool import HTCondorPool; HTCondorPool().snapshot(0)",
        "from drainwise.htcondor.pool.pool import HTCondorPool; HTCondorPool().require_bindings()",
        "from drainwise.htcondor.pool.collector import pool_ads; next(pool_ads())",
    ]
    for program in programs:
        environment = {"PYTHONPATH": "/usr/share/drainwise"}
        ran = pool.run(["python3", "-B", "-c", program], environment=environment, check=False)
        last = ran.stderr.splitlines()[-1]
        assert last.startswith(
            "drainwise.facts.errors.UsageError: HTCondor's Python bindings here are too old: version 23.9.6"
        )
        assert "pip install 'drainwise[htcondor]'" in last
