"""The unit of a node's server of features: where there is one, what it starts, and that it may do no more."""

from __future__ import annotations

import argparse
import configparser
import os
import shlex
import shutil
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from drainwise.cli import features
from drainwise.cli.command_line.options import build
from drainwise.features.job_token import features_url, make_token
from drainwise.features.read import HttpReader
from drainwise.htcondor.setup.render import render as render_htcondor
from drainwise.install.templates import FEATURES_UNIT, features_unit
from drainwise.siteconfig import FeaturesSection, SiteConfig
from drainwise.slurm.setup.render import render as render_slurm

SITE = SiteConfig(file="/etc/drainwise/site.ini")


def site(url: str | None) -> SiteConfig:
    return replace(SITE, features=FeaturesSection(url=url))


def text(url: str, root: str = "/run/drainwise") -> str:
    [file] = features_unit(site(url), root, "slurmd.service")
    assert file.path == FEATURES_UNIT
    return file.text


def service(url: str, root: str = "/run/drainwise") -> configparser.SectionProxy:
    parser = configparser.ConfigParser(interpolation=None)
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read_string(text(url, root))
    return parser["Service"]


def understood(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    build(parser.add_subparsers(), "features", features.COMMAND)
    return parser.parse_args(words)


@pytest.mark.parametrize("url", ["https://%h:8443", "https://%h", "http://localhost:8080/", "https://%h.example.org:1"])
@pytest.mark.parametrize("root", ["/run/drainwise", "$(condor_config_val EXECUTE)"])
def test_systemd_takes_it(url: str, root: str, tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("needs systemd-analyze")
    unit = tmp_path / "drainwise-features.service"
    unit.write_text(text(url, root).replace("/usr/bin/drainwise", "/bin/true"))
    ran = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(unit)], capture_output=True, text=True, check=False, timeout=60
    )
    assert [line for line in ran.stderr.splitlines() if "drainwise-features" in line and "slurmd" not in line] == []


def test_what_it_starts_is_a_command_that_there_is() -> None:
    program, *words = shlex.split(service("https://%h:8443")["ExecStart"])
    args = understood(words)
    assert (program, args.root, args.host, args.port) == ("/usr/bin/drainwise", "/run/drainwise", "0.0.0.0", 8443)
    assert (args.certificate, args.key) == ("/etc/grid-security/hostcert.pem", "/etc/grid-security/hostkey.pem")
    args = understood(shlex.split(service("http://127.0.0.1:99/")["ExecStart"])[1:])
    assert (args.host, args.port, args.certificate, args.key) == ("127.0.0.1", 99, None, None)


def test_on_htcondor_the_node_says_where_jobs_run() -> None:
    """systemd makes one `$` of two, and the shell asks HTCondor."""
    shell, option, command = shlex.split(service("https://%h:8443", "$(condor_config_val EXECUTE)")["ExecStart"])
    command = command.replace("$$", "$").replace("exec /usr/bin/drainwise", "printf '%s\\n'")
    said = subprocess.run(
        [shell, option, f"condor_config_val() {{ echo '/var/lib/a b'; }}; {command}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert understood(said.stdout.splitlines()).root == "/var/lib/a b"


@pytest.mark.parametrize(
    ("url", "capabilities"),
    [("https://%h:8443", "CAP_DAC_READ_SEARCH"), ("https://%h", "CAP_DAC_READ_SEARCH CAP_NET_BIND_SERVICE")],
)
def test_it_may_read_and_no_more(url: str, capabilities: str) -> None:
    unit = service(url)
    assert unit["CapabilityBoundingSet"] == capabilities
    assert (unit["ProtectSystem"], unit["NoNewPrivileges"], unit["PrivateDevices"]) == ("strict", "yes", "yes")


@pytest.mark.parametrize("url", [None, "https://features.example.org", "https://%h:8443/features"])
def test_there_is_none_where_another_machine_or_program_serves(url: str | None) -> None:
    assert features_unit(site(url), "/run/drainwise", "x.service") == ()


def test_it_goes_to_the_nodes_of_each_batch_system() -> None:
    condor = [role for role in ("execute", "access", "central", "all") if has_unit(render_htcondor, role)]
    assert condor == ["execute", "all"]
    assert [role for role in ("node", "controller", "all") if has_unit(render_slurm, role)] == ["node", "all"]


def has_unit(render: object, role: str) -> bool:
    assert callable(render)
    return FEATURES_UNIT in [file.path for file in render(site("https://%h:8443"), role)]


@pytest.mark.daemons  # the server itself, with the unit's capabilities
@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("setpriv") is None, reason="root gives up capabilities")
def test_with_these_capabilities_it_serves_a_closed_tree_by_its_token(tmp_path: Path) -> None:
    """As systemd starts it: root that may read everything. The job's token is the job's user's alone."""
    tree = tmp_path / "node1" / "17"
    features_of_job = tree / ".jobfeatures"
    features_of_job.mkdir(parents=True)
    (features_of_job / "allocated_cpu").write_text("8\n")
    token = make_token(str(tree), (54321, 54321))
    for path in (tree, features_of_job, features_of_job / "allocated_cpu"):
        os.chown(path, 54321, 54321)
    os.chmod(tree, 0o700)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    unit = service(url, str(tmp_path))
    bounds = ",".join(f"+{name.lower().removeprefix('cap_')}" for name in unit["CapabilityBoundingSet"].split())
    command = shlex.split(unit["ExecStart"])[1:]
    limited = ["setpriv", f"--bounding-set=-all,{bounds}", "--no-new-privs", sys.executable, "-m", "drainwise"]
    server = subprocess.Popen([*limited, *command], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None and server.stdout.readline().startswith("serving ")
        read = HttpReader(features_url(url, "node1/17", token, ".jobfeatures"))
        assert read.fetch("allocated_cpu") == b"8\n"
        assert HttpReader(features_url(url, "node1/17", "x", ".jobfeatures")).fetch("allocated_cpu") is None
        status = Path(f"/proc/{server.pid}/status").read_text()
        assert "CapEff:\t0000000000000004\n" in status  # CAP_DAC_READ_SEARCH, number 2
    finally:
        server.terminate()
        server.communicate(timeout=10)
