"""`drainwise estimate`: tables, JSON and a plot from files of every kind; wrong ones end with a line and a code."""

from __future__ import annotations

import gzip
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import drainwise
from drainwise.cli.main import main

PLUGINS = str(Path(drainwise.__file__).parents[1])
EXCERPT = Path(__file__).parents[2] / "scripts" / "local_demo" / "lcg-excerpt.swf"
T0 = 1_795_249_000


def lines(count: int = 12, task: str = "sim", seconds: int = 4600) -> bytes:
    """Records of one task on 8 cores of 10 HS06, 1000 events each."""
    one = {"task": task, "start": T0, "end": T0 + seconds, "cores": 8, "events": 1000, "core_power": 10}
    return (json.dumps({**one, "requested_seconds": 46000, "memory_bytes": 8 << 30}) + "\n").encode() * count


@pytest.fixture
def records(tmp_path: Path) -> str:
    path = tmp_path / "records.jsonl"
    path.write_bytes(lines() + b"nonsense\n" + lines(2, "new"))
    return str(path)


def run(*words: str, stdin: bytes | None = None) -> subprocess.CompletedProcess[str]:
    """The command in a plain Python without any other package."""
    program = f"import sys; sys.path.append({PLUGINS!r}); sys.dont_write_bytecode = True; "
    program += "from drainwise.cli.main import main; sys.exit(main())"
    argv = [sys.executable, "-I", "-S", "-c", program, "estimate", *words]
    done = subprocess.run(argv, input=stdin, capture_output=True, check=False, timeout=60)
    return subprocess.CompletedProcess(argv, done.returncode, done.stdout.decode(), done.stderr.decode())


def test_a_plain_python_prints_the_tables(records: str) -> None:
    """Figures with how many jobs, run times before and after, what is missing, and what was skipped."""
    shown = run(records)
    assert shown.returncode == 0
    rows = {tuple(line.split()[:2]): line.split() for line in shown.stdout.splitlines() if line}
    assert rows["sim", "cpuTime"][2:] == ["-", "432", "(5)", "-", "HS06sPerEvent"]
    assert rows["sim", "ramCount"][2:5] == ["-", "1127", "(5)"]
    assert rows["sim", "12"][2:] == ["0", "1h18m", "9.97×", "/", "9.97×", "1×", "/", "1×", "7"]
    assert "new: no estimate yet, 3 finished jobs are missing" in shown.stdout
    assert shown.stderr == "drainwise: 1 skipped: 1 not JSON\n"


def test_json_and_plot(records: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One task alone, as JSON; the plot as SVG or page by its name."""
    for name in ("times.svg", "times.html"):
        plot = tmp_path / name
        assert main(["estimate", records, "--task", "sim", "--json", "--plot", str(plot)]) == 0
        found = json.loads(capsys.readouterr().out)
        assert list(found["tasks"]) == ["sim"] and found["skipped"] == {"not JSON": 1}
        assert found["tasks"]["sim"]["stages"][0]["figures"]["cpuTime"]["value"] == 432
        assert plot.read_text().count("<circle") == 7
    assert sorted(os.listdir(tmp_path)) == ["records.jsonl", "times.html", "times.svg"]


def test_parameters_and_settings(records: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Presets stand before the estimates, settings of the activity count, and a rule that speaks is shown."""
    tasks, settings = tmp_path / "tasks.json", tmp_path / "gdp.json"
    tasks.write_text(json.dumps({"sim": {"cpuTime": 40}, "*": {"ramCount": 7}}))
    settings.write_text(json.dumps({"SCOUT_RAMCOUNT_MARGIN_user": 0, "SCOUTS": 2}))
    words = ["--tasks", str(tasks), "--settings", str(settings), "--activity", "user"]
    assert main(["estimate", records, *words]) == 0
    shown = capsys.readouterr().out
    assert "exhausted: estimate_off: cpuTime 432 HS06 s per event from 1 jobs, preset 40" in shown
    rows = [line.split() for line in shown.splitlines()]
    assert ["sim", "cpuTime", "40", "432", "(1)", "-", "HS06sPerEvent"] in rows
    assert ["new", "ramCount", "7", "1024", "(1)", "-", "MBPerCore"] in rows


def test_names_that_nothing_knows_are_told_and_it_goes_on(records: str, tmp_path: Path) -> None:
    """A whole gdpconfig and the parameters of a PanDA task are no fault of the user's."""
    tasks, settings = tmp_path / "tasks.json", tmp_path / "gdp.json"
    tasks.write_text(json.dumps({"sim": {"baseWalltime": 0, "taskName": "a", "vo": "atlas"}, "new": {"vo": "atlas"}}))
    settings.write_text(json.dumps({"SCOUT_MIN_OK_RATE_EXHAUSTED_user": 1, **{f"NQUEUE_{n:02}": n for n in range(22)}}))
    shown = run(records, "--tasks", str(tasks), "--settings", str(settings))
    assert shown.returncode == 0 and " 497 (5) " in " ".join(shown.stdout.split())
    gdp, names, _ = shown.stderr.splitlines()
    assert gdp.startswith(f"drainwise: {settings}: not used: NQUEUE_00, NQUEUE_01") and gdp.endswith("and 3 more")
    assert names == f"drainwise: {tasks}: not used: taskName, vo"


def test_what_is_missing_for_want_of_events_has_a_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In the table and in JSON."""
    path = tmp_path / "records.jsonl"
    one = {"task": "sim", "start": T0, "end": T0 + 100, "cores": 8, "events": 9, "output_bytes": 10}
    path.write_text((json.dumps(one) + "\n") * 5)
    assert main(["estimate", str(path)]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    for name in ("cpuTime", "outDiskCount"):
        assert any(row[:6] == ["sim", name, *"----"] and row[6].startswith("missing") for row in rows), name
    assert main(["estimate", str(path), "--json"]) == 0
    [stage] = json.loads(capsys.readouterr().out)["tasks"]["sim"]["stages"]
    assert stage["missing"]["outDiskCount"] == "too few events: none of 5 jobs had 10 events"


def test_gzip_and_standard_input(tmp_path: Path) -> None:
    """A packed file is unpacked, - reads the input, packed or not."""
    packed = tmp_path / "records.gz"
    packed.write_bytes(gzip.compress(lines()))
    plain = run(str(packed))
    assert plain.returncode == 0 and "cpuTime" in plain.stdout
    assert run("-", stdin=lines()).stdout == run("-", stdin=gzip.compress(lines())).stdout == plain.stdout


def test_a_log_is_compared(capsys: pytest.CaptureFixture[str]) -> None:
    """Median and p90 of request and estimate, on a real log; the same as JSON."""
    assert main(["estimate", "--swf", str(EXCERPT)]) == 0
    head, first, *_ = capsys.readouterr().out.splitlines()
    assert " ".join(head.split()) == "asked when a job jobs request, median p90 estimate, median p90"
    assert main(["estimate", "--swf", str(EXCERPT), "--json"]) == 0
    start = json.loads(capsys.readouterr().out)["error_ratio"][0]
    assert start["after"] == 0 and start["estimate"]["median"] < start["request"]["median"]
    assert first.split()[:2] == ["starts", str(start["request"]["jobs"])]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ((), 2, "required"),
        (("RECORDS", "--swf", "x"), 2, "not allowed"),
        (("/no/such",), 2, "/no/such: cannot be read: No such file"),
        (("/",), 2, "/: cannot be read: Is a directory"),
        (("RECORDS", "--task", "x"), 2, "--task 'x': no job of that task"),
        (("RECORDS", "--plot", "x.png"), 2, ".svg or .html"),
        (("RECORDS", "--plot", "/no/such/x.svg"), 2, "cannot be written: No such file"),
        (("RECORDS", "--format", "sacct"), 2, "have sacct print its header"),
        (("RECORDS", "--format", "condor-long"), 1, "no finished payload in it"),
        (("RECORDS", "--tasks", "BROKEN"), 2, "expected JSON"),
        (("RECORDS", "--tasks", "LIST"), 2, "expected one JSON object"),
        (("RECORDS", "--tasks", "TWICE"), 2, "expected the key once"),
        (("RECORDS", "--settings", "TWICE"), 2, "expected the key once"),
        (("RECORDS", "--settings", "WRONG"), 2, "SCOUTS = '0': expected a whole number"),
        (("RECORDS", "--settings", "/no/such"), 2, "a file that can be read"),
        (("RECORDS", "--settings", "FIFO"), 2, "not a regular file"),
        (("TORN",), 2, "cannot be read to its end"),
        (("TEXT",), 2, "--format"),
        (("EMPTY",), 1, "no finished payload in it"),
        (("--swf", "RECORDS"), 1, "no job with a run time and a requested time in it: "),
        (("--swf", "/no/such"), 2, "/no/such: cannot be read"),
    ],
)
def test_what_is_wrong_is_said(
    words: tuple[str, ...], code: int, said: str, records: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line that names the file and what was expected; nothing on standard output, nothing left behind."""
    contents = {
        "BROKEN": b"{",
        "LIST": b"[]",
        "TWICE": b'{"a": 1, "a": 2}',
        "WRONG": b'{"SCOUTS": 0}',
        "TORN": gzip.compress(os.urandom(100_000))[:5000],
        "EMPTY": b"",
        "TEXT": b"hello\n",
    }
    paths = {"RECORDS": records}
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
        paths[name] = str(tmp_path / name)
    os.mkfifo(tmp_path / "FIFO")
    paths["FIFO"] = str(tmp_path / "FIFO")
    before = sorted(os.listdir(tmp_path))
    try:
        got = main(["estimate", *(paths.get(word, word) for word in words)])
    except SystemExit as fault:
        got = fault.code  # type: ignore[assignment] # argparse leaves with a number
    shown = capsys.readouterr()
    assert (got, shown.out) == (code, "") and said in shown.err.splitlines()[-1]
    assert sorted(os.listdir(tmp_path)) == before


def test_names_reach_no_terminal_raw(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """HOSTILE 41: a task named with an escape sequence is no sound record; marks that turn the writing are left out."""
    path = tmp_path / "records.jsonl"
    path.write_bytes(lines(6, "a\x1b[31mb") + lines(6, "good"))
    assert main(["estimate", str(path)]) == 0
    shown = capsys.readouterr()
    assert "\x1b" not in shown.out + shown.err and "6 no task" in shown.err


def test_the_documented_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Those of docs/estimate.md, on files with the names that stand there; the pilot learns from its own queue."""
    document = (EXCERPT.parents[2] / "docs" / "estimate.md").read_text()
    commands = [line for fence in re.findall(r"```sh\n(.*?)```", document, re.DOTALL) for line in fence.splitlines()]
    record, tasks = re.findall(r"```json\n(.*?)```", document, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "records.jsonl").write_text(record * 6)
    (tmp_path / "tasks.json").write_text(tasks)
    (tmp_path / "gdp.json").write_text('{"SCOUT_NUM_SHORT_user": 3}')
    (tmp_path / "trace.swf.gz").write_bytes(gzip.compress(EXCERPT.read_bytes()))
    *estimates, pilot = commands
    for command in estimates:
        assert main(shlex.split(command)[1:]) == 0 and capsys.readouterr().out
    assert (tmp_path / "times.html").exists()
    queue = tmp_path / "queue"
    queue.mkdir()
    for number in range(6):
        payload = {"command": ["true"], "expected": 50, "maximum": 60, "task": "nap"}
        (queue / f"{number}.json").write_text(json.dumps(payload))
    words = shlex.split(pilot.replace("/data/queue", str(queue)))[1:]
    words += ["--cores", "1", "--seconds", "200", "--idle-limit", "0", "--poll", "0.05"]
    program = f"import sys; sys.path.append({PLUGINS!r}); sys.dont_write_bytecode = True; "
    program += "from drainwise.cli.main import main; sys.exit(main())"
    argv = [sys.executable, "-I", "-S", "-c", program, *words]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60, env={})
    assert (done.returncode, done.stderr) == (0, "") and "6 payloads done" in done.stdout
    assert main(["estimate", str(queue / "records.jsonl")]) == 0
    assert capsys.readouterr().out.splitlines()[-1].split()[:3] == ["nap", "6", "0"]
