"""`drainwise check htcondor`: findings that can be read and acted on, and a clear end without a pool."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from drainwise.cli import check
from drainwise.pool.finding import DANGEROUS, MISSING, OK, Finding

PLUGINS = Path(__file__).parents[2] / "plugins"


def test_a_node_of_slurm_is_checked_with_the_standard_library_alone() -> None:
    """The modules that `check slurm` imports; -I and -S leave out whatever is installed beside it."""
    modules = "agent.health cli.agent_place slurm.setup.check slurm.setup.check_facts slurm.setup.check_node"
    imports = "; ".join(f"import drainwise.{name}" for name in modules.split())
    parsed = (
        "p = argparse.ArgumentParser(); build(p.add_subparsers(), 'check', check.COMMAND);"
        " p.parse_args(['check', 'slurm'])"
    )
    program = f"import argparse, sys; sys.path.insert(0, {str(PLUGINS)!r}); {imports}; "
    program += f"from drainwise.cli import check; from drainwise.cli.command_line.options import build; {parsed}"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_findings_are_ordered_and_what_machines_share_stands_once() -> None:
    """The dangerous first; a pool of many nodes with one fault is one paragraph."""
    findings = [
        Finding(OK, "A", "fine", machine="n0"),
        *(Finding(MISSING, "B", "because", "B = 1", "0", machine=f"n{number}") for number in range(6)),
        Finding(DANGEROUS, "C", "oh", "C =\nD = 2", machine="n1"),
        Finding(MISSING, "B", "because", "B = 1", "7", machine="n7"),
    ]
    assert check.as_text(findings).split("\n") == [
        "dangerous C on n1",
        "          why:   oh",
        "          add:   C =",
        "                 D = 2",
        "",
        "missing   B on n0, n1, n2, n3 and 2 more",
        "          found: 0",
        "          why:   because",
        "          add:   B = 1",
        "",
        "missing   B on n7",
        "          found: 7",
        "          why:   because",
        "          add:   B = 1",
        "",
        "ok        A on n0",
        "          why:   fine",
        "",
    ]


def test_nothing_is_cut_off() -> None:
    """The line to add can be copied, however long it is."""
    line = "X = " + "y" * 500
    assert line in check.as_text([Finding(MISSING, "X", "w" * 300, line, machine="n")])


def test_what_a_daemon_answered_cannot_steer_the_terminal() -> None:
    """Hostile case 41: control characters of a value or a name are not printed."""
    text = check.as_text([Finding(MISSING, "X", "why", "line", "a\rb\x1b]0;x\x07", machine="n\x1b[2J")])
    assert text.replace("\n", "").isprintable()


def test_json_has_every_finding() -> None:
    """Whole, with what is in order."""
    findings = [Finding(OK, "A", "fine", machine="n"), Finding(DANGEROUS, "C", "oh", "C =", "1", "n")]
    assert [Finding(**one) for one in json.loads(check.as_json(findings))["findings"]] == findings


@pytest.mark.daemons
@pytest.mark.parametrize("kind", ["refused", "unknown name", "no collector configured"])
def test_a_pool_that_is_not_there_is_one_line(kind: str, tmp_path: Path) -> None:
    """Exit code 1, nothing on standard output, no traceback."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    hosts = {"refused": f"127.0.0.1:{port}", "unknown name": "collector.invalid", "no collector configured": ""}
    (tmp_path / "condor_config").write_text(f"COLLECTOR_HOST = {hosts[kind]}\nLOCAL_CONFIG_DIR =\n")
    (tmp_path / "site.ini").write_text("")
    program = f"import sys; sys.path.insert(0, {str(PLUGINS)!r}); from drainwise.cli.main import main; sys.exit(main())"
    ran = subprocess.run(
        [sys.executable, "-B", "-c", program, "check", "htcondor", "--site", str(tmp_path / "site.ini")],
        env={**os.environ, "CONDOR_CONFIG": str(tmp_path / "condor_config")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (1, "")
    (line,) = ran.stderr.splitlines()
    assert line.startswith("drainwise: the collector ")


@pytest.mark.parametrize("terminal", [True, False])
def test_how_far_the_questions_have_come_is_shown_on_a_terminal_alone(
    terminal: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On one line, which is gone at the end; a pipe and a log stay clean."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    for asked in range(3):
        check.show_progress(asked, 2)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err == (
        "\r0 of 2 daemons answered\r1 of 2 daemons answered\r2 of 2 daemons answered\r\x1b[K" * terminal
    )
