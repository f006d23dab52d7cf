"""Every command that the documents show works: installed from a wheel as a site does it, on a real pool."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from condor_pool import CondorPool
from real_daemons.waiting import wait_for
from scenario import condor_site

pytestmark = pytest.mark.play
ROOT = Path(__file__).parents[2]
DOCUMENTS = tuple(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md"))
DOCUMENTS += tuple(one for one in sorted((ROOT / "docs").glob("*.md")) if one.name != "json.md")
"""Without docs/json.md: tests/cli/test_json_documents.py runs what it names, and its formats are no commands."""
PILOT = ROOT / "docs" / "pilot.md"
LOCAL = ROOT / "docs" / "local.md"
PROGRAMS = ("drainwise ", "condor_", "scripts/", "pip ")

# Where each documented command is run. The suite itself is `scripts/test`, which begins with `scripts/setup`.
THE_SUITE = {"scripts/setup", "scripts/test", 'scripts/test -m "not daemons"', "scripts/test --all-releases"}
THE_SUITE |= {"scripts/faults"}  # tests/test_faults.py
THE_SITE = {"scripts/docs", "scripts/reference_pages.py"}  # tests/documentation
THE_WHEEL = {  # test_installing.py; the extras are tried by the fixture below
    "drainwise install",
    "drainwise install --prologs",
    "pip install '.[simulate]'",
}
THE_DEMONSTRATION = {"scripts/demo htcondor"}
ELSEWHERE = {
    "scripts/demo",
    "scripts/demo --parts",
    "drainwise status --watch",
}  # test_local_demo.py, tests/cli/test_watch.py
THE_BENCHMARK = {"scripts/bench --write"}
FROM_A_CENTRAL_MACHINE = {
    "drainwise config keys",
    "drainwise config htcondor --role execute --site /etc/drainwise/site.ini --out node-tree",
    "drainwise check htcondor",
    "drainwise check htcondor --node NODE",
    "drainwise status",
    "drainwise status --format name,user,remaining,maxremaining,drainwaste,killwaste",
    "drainwise status --user alice --sort priority --format name,priority",
    "drainwise plan",
    "drainwise plan --cores 64",
    "drainwise plan --cores 8 --user alice",
    "drainwise snapshot",
    "drainwise plan --snapshot FILE",
    "drainwise reclaim --once",
}
ON_A_MACHINE_OF_THE_POOL = {
    "condor_status -af Name PilotKillWaste",
    "condor_status -af Name PilotRemaining PilotDrainingWaste PilotKillWaste",
    "condor_status -af Name PilotReclaimDeadline",
    "condor_status -af Name PilotRemainingMax",
    "condor_status -print-format /etc/drainwise/pilots.cpf",
}
THE_DRAINS = {  # test_defrag_htcondor.py
    "condor_status -print-format /etc/drainwise/nodes.cpf -sort 'real(sum(ChildPilotDrainPrice))'",
}
THE_AGENTS_AD = {  # test_agent_below_master.py
    "condor_status -any -constraint 'MyType == \"DrainwiseAgent\"' -af Name AgentState LastCycle NextCycle",
}
ON_A_NODE = {"drainwise shutdown --at +6h", "drainwise shutdown --cancel"}
IN_A_JOB = {"drainwise features show", "drainwise features check"}
OVER_HTTP = {  # test_features_served.py
    "drainwise features serve /run/drainwise --port 8443 --certificate host.pem --key host-key.pem",
}
THE_QUESTIONS = {  # tests/test_use_cases_of_a_job.py
    "drainwise features left",
    "drainwise features ran",
    "drainwise features rest",
    "drainwise features rest --work 36000",
    "drainwise features shutdown",
    "drainwise features threads",
    "drainwise features slots",
    "drainwise features disk",
    "drainwise features memory",
}
BY_HAND = {  # tests/cli/test_features_write.py
    "drainwise features write --machine /etc/machinefeatures --count --hs06 240.5 --jobslots 24",
}
IN_A_VIRTUAL_MACHINE = {  # tests/features/test_vm_metadata.py, tests/features/test_shutdown_command.py
    "drainwise features locate --metadata http://169.254.169.254",
    "drainwise features end-machine",
    "drainwise pilot run --end-machine",
}
AS_A_PILOT = {
    "drainwise pilot run --cores 4 --seconds 60 --queue queue",
    "drainwise pilot run --queue /data/queue",
    "drainwise pilot run --payload-command 'cat payloads.jsonl'",
}
IN_THE_LOCAL_BATCH_SYSTEM = {
    "drainwise local start --nodes 4x16",
    "drainwise local account alice --quota 32",
    "drainwise local account bob --quota 32",
    "drainwise local submit --account alice --user alice --cores 8 --wall 6h --count 9 -- sleep 3600",
    "drainwise local submit --account bob --user bob --cores 8 --wall 2h --count 2 -- sleep 3600",
    "drainwise local queue",
    "drainwise status --pool local",
    "drainwise plan --pool local",
    "drainwise reclaim --once --act --pool local",
    'drainwise local submit --account bob --cores 8 --wall 1h -- drainwise pilot run --queue "$PWD/queue"',
    "drainwise local remove 1 2 3",
    "drainwise local stop",
    "drainwise local stop --kill",
}
ON_SLURM = {  # test_slurm_pool.py, test_slurm_history.py
    "drainwise config slurm --role node --site /etc/drainwise/site.ini --out node-tree",
    "drainwise config slurm --role controller --site /etc/drainwise/site.ini --out controller-tree",
    "drainwise config slurm --role node --site /etc/drainwise/site.ini --live live.txt --out node-tree",
    "drainwise check slurm",
    "drainwise status --pool slurm",
    "drainwise plan --pool slurm",
    "drainwise reclaim --once --act --pool slurm",
}
THE_AGENT = {  # test_agent_process.py, test_agent_below_master.py
    "drainwise reclaim --loop",
    "drainwise reclaim --loop --act",
    "drainwise reclaim --loop --act --standby",
    "condor_reconfig",
    "condor_off -daemon DRAINWISE_AGENT",
}
THE_QUICK_START = {  # test_quickstart_htcondor.py
    "drainwise --version",
    "condor_status -af Name PilotCronHeartbeat",
    """condor_status -constraint 'State == "Claimed"' -af Name PilotReportStanding PilotDrainingWaste PilotKillWaste""",
    "condor_restart -peaceful -startd",
    "condor_token_create -identity condor@$(condor_config_val UID_DOMAIN) > /etc/condor/tokens.d/drainwise",
    "pip install --target /usr/local/lib/drainwise htcondor",
    "drainwise reclaim --cores 1 --user alice --by +1h --site trial.ini",
    "drainwise reclaim --cores 1 --user alice --by +1h --site trial.ini --act",
}
THE_QUICK_START_ON_SLURM = {  # test_quickstart_slurm.py
    "drainwise config slurm --role node --out node-tree",
    "drainwise install --files-only --tree node-tree",
    "drainwise install --remove --files-only --tree node-tree",
}
THE_DOCTOR = {  # test_quickstart_htcondor.py, tests/doctor
    "drainwise doctor",
    "drainwise doctor --bundle drainwise-bundle.tar.gz",
    "condor_status -constraint 'SlotID == 1' -af Machine PilotCronVersion",
}
THE_PACKAGES = {"scripts/package deb", "scripts/package rpm"}  # tests/install/test_packages.py
ON_REQUEST = {  # test_on_request_htcondor.py, test_on_request_slurm.py, tests/cli/test_on_request.py
    "drainwise plan --cores 64 --by +2h",
    "drainwise reclaim --cores 64 --by +2h",
    'drainwise reclaim --cores 64 --by +2h --reason "the power" --act',
    "drainwise reclaim --cores 16 --user alice --by 2026-12-01T18:00 --act",
    "drainwise drain 'rack7-[01-12]' --by 2026-12-01T08:00 --reason \"new disks\" --act",
    "drainwise drain @broken-nodes --by +6h",
    "drainwise drain --list",
    "drainwise drain NODE --by +2h",
    "drainwise drain --cancel 20261121-081640",
}
THE_SITE_FILE = {  # tests/cli/test_config.py
    "drainwise config check",
    "drainwise config check --show",
    "drainwise config htcondor --role execute --site /etc/drainwise/site.ini --out node-tree --diff",
    "drainwise config slurm --role node --site /etc/drainwise/site.ini --out node-tree --diff",
}
A_NODE_WITH_JOBS = {"condor_restart -peaceful -startd"}  # test_installing_on_pool.py
THE_FILTERS = {  # tests/cli/test_filters.py
    "drainwise status --account group_a --state ordered",
    "drainwise plan --node 'wn[001-120]' --limit 20",
    "drainwise reclaim --once --user alice",
}
THE_JOURNAL = {  # tests/cli/test_journal_commands.py, tests/cli/test_identity.py
    "drainwise explain --vo atlas",
    "drainwise explain --user alice --limit 3",
    "drainwise report --node 'rack7-*' --limit 20",
    "drainwise explain --ce-job 4711.0",
    "drainwise report --vo atlas",
    "drainwise status --format name,vo,cejob --sort vo",
    "drainwise explain 1234.0",
    "drainwise explain slot1_2@node1",
    "drainwise explain 1234.0 --json",
    "drainwise report",
    "drainwise report --days 30 --user alice",
    "drainwise report --json",
    "drainwise report --html report.html",
}
THE_ESTIMATE = {  # tests/cli/test_estimate.py
    "drainwise estimate --swf trace.swf.gz",
    "drainwise estimate records.jsonl",
    "drainwise estimate records.jsonl --tasks tasks.json --settings gdp.json --activity user",
    "drainwise estimate records.jsonl --task sim --json --plot times.html",
    "drainwise pilot run --queue /data/queue --estimate /data/queue/records.jsonl",
}
ON_WHOLE_LOGS = {  # how figures of docs/estimate.md were measured; on an excerpt in tests/cli/test_estimate.py
    "drainwise estimate --swf LCG-2005-1.swf.gz",
    "drainwise estimate --swf wagap-2013.swf.gz",
}
A_POOL_OF_ONES_OWN = {  # tests/systems/test_own_pool.py
    "drainwise status --pool drop",
    "drainwise plan --pool drop",
    "drainwise reclaim --once --act --pool drop",
    "drainwise reclaim --loop --act --pool drop",
    "drainwise explain 17",
}
THE_SIMULATION = {  # tests/cli/test_simulate.py
    "drainwise simulate traces/lcg-cnaf.swf.gz --cores 192",
    "drainwise simulate traces/wagap.swf.gz --mix 8:0.25,16:0.25,32:0.25,64:0.25 --lease 15d",
    "drainwise simulate traces/lcg-cnaf.swf.gz --cores 192 --reclaim 0.05 --json",
    "drainwise simulate traces/lcg-cnaf.swf.gz --cores 192 --estimates requests --liars 0.2 --csv",
    "drainwise simulate traces/lcg-cnaf.swf.gz --cores 192 --html simulation.html",
    "drainwise simulate mix.swf --reclaim 0.05",
    "drainwise simulate mix.swf --moments 2 --replications 2 --policies least-waste,site-least-waste,youngest-first"
    " --min-grace 15m",
    "drainwise simulate wagap-2013.swf.gz --mix 8:0.25,16:0.25,32:0.25,64:0.25 --lease 15d --moments 3"
    " --replications 3 --policies least-waste,site-least-waste --min-grace 30m",
    "drainwise simulate LCG-2005-1.swf.gz --moments 4 --replications 2 --step 10m"
    " --policies site-least-waste,site-default",
    "drainwise simulate mix.swf --moments 4 --replications 2 --step 10m --policies site-least-waste,site-default"
    " --reclaim 0.05",
    "drainwise simulate wagap-2013.swf.gz --mix 8:0.25,16:0.25,32:0.25,64:0.25 --lease 15d --moments 20"
    " --replications 1 --policies least-waste,open-need --shrinking 1 --chunk 8 --reclaim 0.25",
    "drainwise simulate mix.swf --moments 2 --replications 3 --dominant 1 --policies least-waste,open-need"
    " --shrinking 0.5",
}
THE_STANDARD_TABLES = {  # tests/scenario/test_grid_mix.py, tests/scenario/test_waste_tables.py
    "scripts/grid_mix.py panda-bnl-2025-01-100-anon.csv --share 0.8 > mix.swf",
    "scripts/waste_tables --logs . --results waste.json --write docs/simulate-results.md",
    "scripts/waste_tables --logs . --results waste.json --only mix-80/8/twentieth --moments 4",
    "scripts/waste_tables --logs . --results saves.json --only quarter/2h --policies site-default --moments 2"
    " --replications 1 --checkpoint 1h:1m",
}
THE_ROOM = {"scripts/fragmentation"}  # tests/scenario/test_fragmentation.py
THE_SOLVER = {"scripts/chooser_quality"}  # tests/room/test_against_a_solver.py
PLAYED = {  # tests/scenario/test_played_pool.py
    "scripts/played_pool",
    "scripts/played_pool --costs",
    "scripts/played_pool --traces 4",
}
THE_LIES = {"scripts/liars"}  # tests/simulate/test_lies.py
THE_VALIDATION = {  # test_validation.py, test_validation_condor.py, test_validation_launched.py
    "drainwise validate request.toml --backend htcondor",
    "drainwise validate request.toml --backend slurm",
    "drainwise validate request.toml --backend sge",
    "condor_q -af ClusterId JobDescription JobStatus",
    "drainwise local start --nodes 1x16",
    "drainwise local account physics --quota 16",
    "drainwise validate request.toml --account physics",
    "drainwise validate request.toml --show",
    "drainwise validate request.toml --json",
    "drainwise validate request.toml --cancel",
    "drainwise validate request.toml --again --account physics",
}
THE_LAUNCH = {  # tests/launch/test_page.py
    "drainwise launch night.toml",
    "drainwise launch night.toml --again --json",
    "drainwise launch night.toml prepare",
}
ALL = (
    THE_SUITE
    | THE_SITE
    | THE_WHEEL
    | THE_DEMONSTRATION
    | THE_BENCHMARK
    | FROM_A_CENTRAL_MACHINE
    | ON_A_MACHINE_OF_THE_POOL
)
ALL |= (
    A_NODE_WITH_JOBS
    | THE_AGENT
    | THE_AGENTS_AD
    | THE_QUICK_START
    | THE_QUICK_START_ON_SLURM
    | THE_PACKAGES
    | THE_DOCTOR
    | ON_REQUEST
    | THE_FILTERS
    | THE_SITE_FILE
    | THE_JOURNAL
    | THE_VALIDATION
    | THE_ESTIMATE
    | THE_SIMULATION
    | THE_LAUNCH
)
ALL |= (
    ELSEWHERE
    | ON_WHOLE_LOGS
    | THE_ROOM
    | THE_SOLVER
    | THE_LIES
    | PLAYED
    | THE_STANDARD_TABLES
    | A_POOL_OF_ONES_OWN
    | ON_SLURM
    | THE_DRAINS
    | ON_A_NODE
    | IN_A_JOB
    | OVER_HTTP
    | THE_QUESTIONS
    | IN_A_VIRTUAL_MACHINE
    | BY_HAND
    | AS_A_PILOT
    | IN_THE_LOCAL_BATCH_SYSTEM
)

IN_JOB = """\
executable = /bin/sh
transfer_executable = False
arguments = "-c 'PYTHONPATH=/usr/share/drainwise python3 -m drainwise {command}'"
request_memory = 64
request_disk = 1MB
should_transfer_files = YES
when_to_transfer_output = ON_EXIT
output = {name}.out
error = {name}.err
queue
"""


def documented() -> set[str]:
    """The commands in the documents: lines of sh fences and inline code that begins with one of our programs."""
    found: set[str] = set()
    for document in DOCUMENTS:
        text = document.read_text()
        for fence in re.findall(r"```sh\n(.*?)```", text, re.DOTALL):
            whole = re.sub(r" \\\n\s*", " ", fence)
            found |= {line.partition("  #")[0].strip() for line in whole.splitlines() if line.strip()}
        found |= set(re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL)))
    named = {
        "condor_status",
        "condor_drain",
        "condor_vacate",
        "condor_vacate_job",
        "drainwise check",
        "drainwise reclaim",
        "drainwise shutdown",
    }
    named |= {"drainwise pilot run", "drainwise validate", "drainwise estimate", "drainwise simulate", "condor_history"}
    named |= {"drainwise install --defaults", "drainwise install --remove --tree DIR", "condor_config_val -dump"}
    named |= {
        "condor_config_val STARTD_CRON_JOBLIST",
        "condor_status -startd -af Name PilotOrdersSince DaemonStartTime",
    }
    named |= {"condor_startup.sh"}
    named |= {"drainwise help COMMAND"}  # tests/cli/test_command_line.py
    named |= {"drainwise pilot run --return-memory", "drainwise local return"}  # test_local_pool.py runs it
    named |= {"condor_submit", "drainwise config … --out DIR"}
    named |= {"condor_config.dedicated_starter.include", "drainwise config", "drainwise reclaim --cancel ID"}
    named |= {"drainwise reclaim --resume-demand ACCOUNT"}  # tests/cli/test_on_request.py
    named |= {"drainwise drain", "drainwise launch", "drainwise config slurm", "condor_update_machine_ad"}
    named |= {"condor_advertise"}  # test_pushed_attributes.py runs it
    named |= {"drainwise plan --snapshot", "drainwise reclaim --cores N --by TIME", "drainwise COMMAND --help"}
    named |= {"drainwise config example", "drainwise pilot", "condor_master"}  # tests/siteconfig/test_documentation.py
    named |= {
        "condor_on -startd",
        "condor_on -negotiator",
        "condor_on -schedd",
        "drainwise install --files-only",
    }  # test_faults_whole.py
    named |= {"condor_q", "condor_q -better-analyze"}
    named |= {"drainwise status --scheduler-only"}  # tests/cli/test_status.py
    named |= {"drainwise explain", "drainwise explain JOB", "drainwise features serve", "drainwise doctor --bundle"}
    named |= {
        "scripts/panda_figures.py",
        "scripts/panda_figures.py RECORDS TASKS",
    }  # tests/estimate/test_panda_figures.py
    named |= {"drainwise config drop --role ROLE", "drainwise check drop"}  # what the page's system does not offer
    return {words for words in found if words.startswith(PROGRAMS) and words[-1] not in "/:"} - named


def test_every_documented_command_is_run_by_a_test() -> None:
    """The documents show exactly the commands of the lists above."""
    assert documented() == ALL


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A directory with the package as a wheel brings it, templates included."""
    wheels, target = tmp_path_factory.mktemp("wheels"), tmp_path_factory.mktemp("installed")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "wheel", "--no-deps", "--wheel-dir", str(wheels), str(ROOT)], check=True)
    [wheel] = wheels.glob("drainwise-*.whl")
    subprocess.run([*pip, "install", "--no-deps", "--target", str(target), str(wheel)], check=True)
    return str(target)


@pytest.fixture(scope="module")
def site_pool(release: str) -> Iterator[CondorPool]:
    """A pool with drainwise on every machine and pilots in it."""
    with CondorPool(nodes=condor_site.NODES, cpus=condor_site.CPUS, release=release) as pool:
        condor_site.install(pool)
        clusters = condor_site.submit_pilots(pool)
        pool.wait_for(lambda: condor_site.all_pilots_report(pool, len(clusters)), 90, "nine pilots that report")
        yield pool


@pytest.mark.play
def test_commands_of_the_central_machine(site_pool: CondorPool, installed: str, tmp_path: Path) -> None:
    """The pool side's commands, from the installed wheel, end with 0 and print something."""
    site_file = f"{site_pool.root}/etc/drainwise/site.ini"
    environment, saved = {"PYTHONPATH": installed}, tmp_path / "snapshot.json"
    program = f"{installed}/bin/drainwise"
    saved.write_text(site_pool.run_outside([program, "snapshot"], environment=environment).stdout)
    for command in sorted(FROM_A_CENTRAL_MACHINE):
        words = shlex.split(command.replace("node-tree", str(tmp_path / "node-tree")))[1:]
        words = [site_file if word == "/etc/drainwise/site.ini" else word for word in words]
        words = [{"NODE": "node1.pool.test", "FILE": str(saved)}.get(word, word) for word in words]
        if words[0] in {"check", "status", "plan", "reclaim"}:
            words += ["--site", site_file]  # it lies in the pool's own file system, not in /etc of this machine
        ran = site_pool.run_outside([program, *words], check=False, environment=environment)
        assert ran.returncode == 0 and ran.stdout.strip(), f"{command}: {ran.returncode}\n{ran.stdout}{ran.stderr}"
    assert os.access(tmp_path / "node-tree/usr/libexec/drainwise/prepare-hook", os.X_OK)


@pytest.mark.play
def test_commands_of_the_pools_machines(site_pool: CondorPool) -> None:
    """HTCondor's own tools show the waste of all nine pilots; a node's shutdown is planned and cancelled."""
    for command in sorted(ON_A_MACHINE_OF_THE_POOL):
        shown = site_pool.run(shlex.split(command), user="bob").stdout
        assert len(re.findall(r"^slot1_\d@node\d", shown, re.MULTILINE)) == len(condor_site.MIXES), shown
    for command in ("drainwise shutdown --at +6h", "drainwise shutdown --cancel"):
        words = ["python3", "-m", *shlex.split(command)]
        ran = site_pool.run(words, node="node1", environment={"PYTHONPATH": "/usr/share/drainwise"})
        assert "shutdown" in ran.stdout


@pytest.mark.play
def test_commands_in_a_job(site_pool: CondorPool) -> None:
    """A job sees its features and finds nothing wrong with them."""
    site_pool.run(["condor_rm", "-all"])
    site_pool.wait_for(lambda: not site_pool.queue("JobStatus == 2", ["ClusterId"]), 60, "an empty pool")
    for command in sorted(IN_A_JOB):
        words = command.partition(" ")[2]
        name = words.replace(" ", "-")
        cluster = site_pool.submit(IN_JOB.format(command=words, name=name), user="alice")
        site_pool.wait_for(lambda: site_pool.history(f"ClusterId == {cluster}", ["ProcId"]), 60, f"the job {name}")  # noqa: B023 - called at once
        printed = Path(f"{site_pool.root}/home/alice/{name}.out").read_text()
        [job] = site_pool.history(f"ClusterId == {cluster}", ["ExitCode"])
        assert job.integer("ExitCode") == 0, printed
        assert "wall_limit_secs" in printed and "hs06" in printed


def test_commands_of_a_pilot(installed: str, tmp_path: Path) -> None:
    """A pilot with a queue made as documented runs its payload, with numbers given or with those of the features."""
    features = tmp_path / "features"
    features.mkdir()
    (features / "allocated_cpu").write_text("4\n")
    (features / "wall_limit_secs").write_text("600\n")
    environment = {"PATH": f"{installed}/bin:/usr/bin:/bin", "PYTHONPATH": installed, "JOBFEATURES": str(features)}
    [how_to] = [fence for fence in re.findall(r"```sh\n(.*?)```", PILOT.read_text(), re.DOTALL) if "mkdir" in fence]
    payload = '{"command": "true", "maximum": 5}\n'
    for number, command in enumerate(sorted(AS_A_PILOT)):
        place, shared = tmp_path / str(number), tmp_path / f"data{number}"
        place.mkdir()
        shared.mkdir()
        (shared / "p.json").write_text(payload)
        (place / "payloads.jsonl").write_text(payload)
        script = how_to if command in how_to else command
        script = script.replace("pilot run", "pilot run --idle-limit 1").replace("/data/queue", str(shared))
        words = ["sh", "-e", "-c", script]
        ran = subprocess.run(words, cwd=place, env=environment, capture_output=True, text=True, check=False)
        assert ran.returncode == 0 and "1 payloads done, 0 failed" in ran.stdout, f"{script}\n{ran.stdout}{ran.stderr}"


def test_commands_of_the_local_batch_system(installed: str, tmp_path: Path) -> None:
    """The page on it, typed from top to bottom: alice is over quota, bob's pilot runs and reports, nothing is left."""
    fences = re.findall(r"```sh\n(.*?)```", LOCAL.read_text(), re.DOTALL)
    written = [line.partition("  #")[0].strip() for fence in fences for line in fence.splitlines()]
    assert {line for line in written if line.startswith("drainwise")} == IN_THE_LOCAL_BATCH_SYSTEM
    program = tmp_path / "bin" / "drainwise"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nPYTHONPATH={installed} exec {sys.executable} -m drainwise "$@"\n')
    program.chmod(0o755)
    environment = {"PATH": f"{program.parent}:/usr/bin:/bin", "DRAINWISE_LOCAL": str(tmp_path / "state")}

    def typed(text: str) -> str:
        ran = subprocess.run(
            ["sh", "-e", "-c", text], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert ran.returncode == 0, f"{text}\n{ran.stdout}{ran.stderr}"
        return ran.stdout

    *before, last = fences
    try:
        plan, *_ = [typed(fence) for fence in before]
        assert "16 to give back now" in plan and "alice (alice) gives back" in plan
        status = partial(typed, "drainwise status --pool local --json")
        wait_for(lambda: '"used_cpu": 2.0' in status(), explain=partial(typed, "drainwise local queue --all"))
    finally:
        ended = typed(last)
    assert "the daemon has stopped" in ended and "leases were ended" in ended


def test_commands_of_the_simulation(installed: str, tmp_path: Path) -> None:
    """On a committed excerpt, as from a clone; the page comes with the wheel.

    tests/cli/test_simulate.py runs all of them from the working copy.
    """
    (tmp_path / "traces").symlink_to(ROOT / "traces")
    environment = {"PATH": f"{installed}/bin:/usr/bin:/bin", "PYTHONPATH": installed}
    [command] = [one for one in THE_SIMULATION if "--html" in one]
    less = ["--moments", "1", "--replications", "2", "--step", "2h", "--policies", "least-waste,youngest-first"]
    words = [sys.executable, "-m", *shlex.split(command), *less]
    ran = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0 and ran.stdout and not ran.stderr, f"{command}: {ran.stdout}{ran.stderr}"
    assert "</html>" in (tmp_path / "simulation.html").read_text()


@pytest.mark.xdist_group("test_benchmark")
def test_the_benchmark() -> None:
    """`scripts/bench` measures and prints its tables; how fast this machine is today is no promise.

    The clusters and pools that it brings up for the rest of its figures take many minutes.
    """
    command = [sys.executable, str(ROOT / "scripts" / "bench"), "--runs", "3", "--only", "node"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert ran.returncode in {0, 1} and "prepare hook" in ran.stdout, ran.stdout + ran.stderr


@pytest.mark.in_turn("the main job on a pool", "demonstration")
@pytest.mark.xdist_group("test_demonstration")
def test_the_demonstration(release: str) -> None:
    """`scripts/demo htcondor` plays the scenario to its end."""
    command = [str(ROOT / "scripts" / "demo"), "htcondor", "--release", release]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.count("drained and left by itself") == 2
    assert ran.stdout.count("vacated by its deadline") == 1
    assert ran.stdout.count("untouched, still running") == 6
