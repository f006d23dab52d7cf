"""`drainwise simulate`: what is asked for is checked option by option, and the documented commands do what they say."""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import json
import os
import pty
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from drainwise.cli.main import main
from drainwise_simulate.policies.named import POLICIES

# Whole simulations take their time.
pytestmark = [pytest.mark.daemons, pytest.mark.in_turn("simulator", "command")]

ROOT = Path(__file__).parents[2]
EXCERPT = str(ROOT / "traces" / "lcg-cnaf.swf.gz")
DOCUMENTS = [ROOT / "docs" / name for name in ("simulate.md", "simulate-results.md")]
QUICK = ("--cores", "64", "--moments", "1", "--replications", "2", "--processes", "1")


def first_lines(path: str, count: int) -> bytes:
    """The beginning of a log, unpacked."""
    with gzip.open(path) as stream:
        return b"".join(itertools.islice(stream, count))


@pytest.fixture
def few(tmp_path: Path) -> str:
    """A log of the first jobs of the excerpt, plain."""
    path = tmp_path / "few.swf"
    path.write_bytes(first_lines(EXCERPT, 900))
    return str(path)


def test_a_table_of_policies(few: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Every policy has a line, least waste first, the optimum before all; what the columns mean is said below."""
    assert main(["simulate", few, *QUICK]) == 0
    shown = capsys.readouterr()
    first, _, title, heading, *rest = shown.out.splitlines()
    assert first.startswith("8 pilots on 64 cores") and title.startswith("all jobs: ") and heading.startswith("policy ")
    rows = [line.split() for line in rest[: len(POLICIES)]]
    assert rows[0][0].startswith("clairvoyant") and {row[0] for row in rows} == set(POLICIES)
    wastes = [float(row[1]) for row in rows]
    assert wastes == sorted(wastes) and shown.err == ""
    assert "core-hours for each core that was given back" in shown.out


def test_json_and_csv(few: str, capsys: pytest.CaptureFixture[str]) -> None:
    """For programs; the same seed gives the same bytes, another one does not."""
    words = ["simulate", few, *QUICK, "--policies", "least-waste"]
    assert main([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [one["policy"] for one in found["results"][0]["policies"]] == ["clairvoyant", "least-waste"]
    texts = []
    for seed in ("1", "1", "7"):
        assert main([*words, "--csv", "--seed", seed]) == 0
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1] != texts[2]
    assert len(list(csv.reader(io.StringIO(texts[0])))) == 1 + 2 * 2


def test_a_page(few: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Written whole, or printed; the table comes too unless the page is printed."""
    page = tmp_path / "page.html"
    words = ["simulate", few, *QUICK, "--policies", "least-waste", "--replications", "1"]
    assert main([*words, "--html", str(page)]) == 0
    assert "all jobs" in capsys.readouterr().out and "</html>" in page.read_text()
    assert main([*words, "--html", "-"]) == 0
    assert capsys.readouterr().out.rstrip().endswith("</html>")
    assert os.listdir(tmp_path) == ["few.swf", "page.html"] or os.listdir(tmp_path) == ["page.html", "few.swf"]


def test_options_reach_the_scenario(few: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Each of them."""
    words = ["--mix", "8:0.5,16:0.5", "--lease", "2d", "--reclaim", "0.1", "--estimates", "requests", "--error", "0.5"]
    words += ["--stuck", "0.1", "--liars", "0.2", "--silent", "0.3", "--horizon", "1h", "--grace", "6h", "--seed", "5"]
    words += ["--longest", "1h", "--policies", "paper", "--json"]
    assert main(["simulate", few, *QUICK, *words]) == 0
    found = json.loads(capsys.readouterr().out)
    scenario = found["scenario"]
    told = {
        "lease": 172800,
        "reclaimed": 0.1,
        "estimates": "requests",
        "error": 0.5,
        "cores": 64,
        "moments": 1,
        "seed": 5,
    }
    told |= {"stuck": 0.1, "liars": 0.2, "silent": 0.3, "mix": {"8": 0.5, "16": 0.5}}
    assert {name: scenario[name] for name in told} == told
    assert (scenario["site"]["horizon"], scenario["site"]["grace"]) == (3600, 21600)
    assert any("ran for longer than 1h" in reason for reason in found["trace"]["skipped"])


def test_the_demand_may_be_jobs_of_the_log(few: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A group's own; times are then those for which they waited, and a group that is not there is named."""
    words = ["simulate", few, "--cores", "64", "--replications", "1", "--processes", "1", "--period", "1h"]
    assert main([*words, "--policies", "least-waste", "--arrivals", "1"]) == 0
    shown = capsys.readouterr().out
    assert "the jobs of 1, who is owed 25 % of the cores, are the demand" in shown and "came as jobs waited" in shown
    assert "policies run apart here" in shown and "in 1 replication," in shown
    assert main([*words, "--arrivals", "nobody"]) == 2
    assert "arrivals = 'nobody': expected a group" in capsys.readouterr().err


SHARES = [("--reclaim", "0"), ("--reclaim", "1.5"), ("--stuck", "-0.1"), ("--liars", "nan"), ("--silent", "x")]


@pytest.mark.parametrize(
    ("option", "value", "expected"),
    [
        *((option, value, "expected a ") for option, value in SHARES),
        ("--cores", "0", "expected a whole number from 1"),
        ("--cores", "12.5", "expected a whole number"),
        ("--mix", "8", "expected a size"),
        ("--mix", "8:0", "expected a size"),
        ("--mix", "8:0.5,8:0.5", "each once"),
        ("--mix", "0:1", "expected a size"),
        ("--mix", "8:nan", "expected a size"),
        ("--lease", "soon", "expected seconds"),
        ("--lease", "0", "from 1s to 3650d"),
        ("--horizon", "0", "from 1s to 3650d"),
        ("--grace", "-5", "expected"),
        ("--error", "-1", "expected a number from 0 to 10"),
        ("--error", "1e9", "expected a number from 0 to 10"),
        ("--policies", "best", "no policy is called 'best'"),
        ("--policies", "", "no policy is called ''"),
        ("--replications", "0", "expected a whole number from 1"),
        ("--moments", "many", "expected a whole number from 1"),
        ("--seed", "-1", "expected a whole number from 0"),
        ("--processes", "0", "expected a whole number from 1"),
        ("--dominant", "2", "expected a number from 0 to 1"),
        ("--estimates", "guess", "expected one of requests, scouts, exact"),
        ("--longest", "x", "expected seconds"),
        ("--shrinking", "2", "expected a number from 0 to 1"),
        ("--chunk", "0", "expected a whole number from 1"),
        ("--period", "0.5", "expected"),
        ("--step", "0", "from 1s to 3650d"),
        ("--while-draining", "x", "expected one of"),
    ],
)
def test_each_option_is_checked(option: str, value: str, expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit 2; the line names the option, the value and what was expected."""
    with pytest.raises(SystemExit) as left:
        main(["simulate", EXCERPT, f"{option}={value}"])
    shown = capsys.readouterr()
    last = shown.err.splitlines()[-1]
    assert (left.value.code, shown.out) == (2, "")
    assert option in last and value in last and expected in last


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("/no/such",), 2, "/no/such: cannot be read: No such file"),
        (("TORN",), 2, "torn: cannot be read to its end"),
        (("WRONG",), 2, "wrong: line 2: column 4 (run time): 'nan': expected a number"),
        (("TRACE", "--html", "/no/such/page.html"), 2, "--html '/no/such/page.html' cannot be written"),
        (("TRACE", "--html", "/"), 2, "it is a directory"),
        (("TRACE", "--longest", "1", "--mix", "1:1", "--lease", "1"), 2, "none of its"),
        (("TRACE", "--cores", "4"), 2, "--cores 4: fewer than a pilot of 8 cores has"),
        (("TRACE", "--cores", "63", "--mix", "8:0.5,64:0.5"), 2, "fewer than a pilot of 64 cores has"),
        (("TRACE", "--json", "--csv"), 2, "not allowed with"),
    ],
)
def test_what_is_wrong_is_said(
    words: tuple[str, ...], code: int, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """At once, in one line, and before minutes of work."""
    row = "1 5 -1 60 1 -1 -1 1 600 -1 1 1 1 -1 -1 -1 -1 -1\n"
    contents = {"TORN": Path(EXCERPT).read_bytes()[:50_000], "WRONG": (row + row.replace(" 60 ", " nan ")).encode()}
    paths = {"TRACE": EXCERPT}
    for name, content in contents.items():
        paths[name] = str(tmp_path / name.lower())
        Path(paths[name]).write_bytes(content)
    try:
        got = main(["simulate", *(paths.get(word, word) for word in words)])
    except SystemExit as fault:
        got = fault.code  # type: ignore[assignment] # argparse leaves with a number
    shown = capsys.readouterr()
    assert (got, shown.out) == (code, "") and said in shown.err.splitlines()[-1]


def test_what_is_not_installed_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], few: str, tmp_path: Path
) -> None:
    """With the extra that brings it."""
    for module in [
        name for name in sys.modules if name.startswith(("jinja2", "drainwise_simulate.p", "drainwise.page"))
    ]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "jinja2", None)
    assert main(["simulate", few, *QUICK, "--html", str(tmp_path / "page.html")]) == 1
    last = capsys.readouterr().err.splitlines()[-1]
    assert last == "drainwise: this command needs the Python package jinja2: pip install 'drainwise[simulate]'"


def test_a_terminal_sees_how_far_it_is(few: str) -> None:
    """A bar on standard error, wiped out at the end; standard output has the result alone."""
    master, slave = pty.openpty()
    words = [sys.executable, "-m", "drainwise", "simulate", few, *QUICK, "--json"]
    environment = {"PYTHONPATH": str(ROOT / "plugins"), "PYTHONDONTWRITEBYTECODE": "1", "TERM": "xterm"}
    ran = subprocess.run(words, stdout=subprocess.PIPE, stderr=slave, env=environment, check=False, timeout=60)
    os.close(slave)
    shown = os.read(master, 1 << 20)
    os.close(master)
    assert ran.returncode == 0 and json.loads(ran.stdout) and b"simulating" in shown and b"\x1b[2K" in shown


def test_the_documented_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Those of both pages on it, on the first jobs of each log and at one moment, for the sake of time."""
    commands = [
        line
        for document in DOCUMENTS
        for fence in re.findall(r"```sh\n(.*?)```", document.read_text(), re.DOTALL)
        for line in re.sub(r"\\\n *", "", fence).splitlines()
        if line.startswith("drainwise ")
    ]
    logs = {word for command in commands for word in shlex.split(command) if word.endswith((".swf.gz", ".swf"))}
    assert len(commands) > 4
    (tmp_path / "traces").mkdir()
    for log in logs:
        name = "wagap" if "wagap" in log else "lcg-cnaf"
        first = first_lines(str(ROOT / "traces" / f"{name}.swf.gz"), 700)
        (tmp_path / log).write_bytes(gzip.compress(first))
    monkeypatch.chdir(tmp_path)
    for command in commands:
        words = [*shlex.split(command)[1:], "--moments", "1", "--replications", "1", "--processes", "1", "--step", "1h"]
        assert main(words) == 0 and capsys.readouterr().out, command
    assert "</html>" in (tmp_path / "simulation.html").read_text()


def test_a_log_in_which_no_moment_has_a_job_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two short jobs, ten months apart."""
    log = tmp_path / "jobs.txt"
    jobs = [f"{n}|alice|COMPLETED|2026-{m}-01T00:00:00|2026-{m}-01T00:00:10|8|60" for n, m in ((1, "01"), (2, "11"))]
    log.write_text("\n".join(["JobID|User|State|Start|End|AllocCPUS|TimelimitRaw", *jobs, ""]))
    assert main(["simulate", str(log)]) == 2
    said = capsys.readouterr()
    assert said.out == "" and "no job runs at any of 20 moments of it" in said.err
