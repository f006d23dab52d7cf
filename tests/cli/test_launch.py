"""`drainwise launch` as users run it: to the end, interrupted, killed, gone on with, and refused."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from pytest_mock import MockerFixture

from drainwise.cli.main import main
from drainwise_launch.run.store import OpenStart, Store
from drainwise_launch.this_machine.backend import LocalBackend
from real_daemons.waiting import wait_for

pytestmark = pytest.mark.daemons  # it runs real launches

PLUGINS = str(Path(__file__).parents[2] / "plugins")
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "PYTHONPATH": PLUGINS, "PYTHONDONTWRITEBYTECODE": "1", "LANG": "C.UTF-8"}
PATIENCE = 30.0


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "drainwise", "launch", *words]


def launched(*words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    ran = subprocess.run(
        command(*words), env=ENVIRONMENT, capture_output=True, text=True, check=False, timeout=PATIENCE
    )
    assert ran.returncode == code, ran.stdout + ran.stderr
    return ran


def states(*words: str, code: int = 0) -> dict[str, str]:
    found = json.loads(launched(*words, "--json", code=code).stdout)
    return {job["name"]: job["state"] for job in found["jobs"]}


def tagged(directory: Path) -> list[int]:
    """Processes of jobs that belong to a launch in this directory."""
    found = []
    for name in filter(str.isdecimal, os.listdir("/proc")):
        try:
            environment = Path(f"/proc/{name}/environ").read_bytes()
        except OSError:
            continue
        if b"DRAINWISE_LAUNCH_TAG=" in environment and os.fsencode(directory) in environment:
            found.append(int(name))
    return found


def kept(path: str) -> list[str]:
    """The jobs of which it is on disk how they ended."""
    with contextlib.closing(sqlite3.connect(f"file:{path}.launch/launch.sqlite?mode=ro", uri=True)) as base:
        return [name for (name,) in base.execute("SELECT name FROM jobs")]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "night.json"


def write(file: Path, *jobs: dict[str, object], **more: object) -> str:
    file.write_text(json.dumps({"jobs": jobs, **more}))
    return str(file)


def job(name: str, line: str, *after: str, **more: object) -> dict[str, object]:
    return {"name": name, "command": line, "after": list(after), **more}


def test_a_launch_whose_lock_was_removed_starts_nothing_more(file: Path) -> None:
    """Its lock keeps nobody out any more: a second launch beside it would start each job twice."""
    path = write(file, job("a", f'mkdir once && rm "{file}.launch/lock" || true'), job("b", "echo x > b", "a"))
    assert "another launch could run beside this one" in launched(path, code=1).stderr
    assert not (file.parent / "b").exists()
    assert set(states(path).values()) == {"done"}


def test_to_the_end_and_a_second_run_has_nothing_to_do(file: Path) -> None:
    path = write(file, job("b", "cat a >> b", "a"), job("a", "echo x > a"), job("weird $(id); `x`", 'echo "$0"', "b"))
    assert launched(path).stdout == "3 done\n"
    assert (file.parent / "b").read_text() == "x\n"
    assert launched(path).stdout == "3 done (3 of them earlier)\n"
    assert (file.parent / "b").read_text() == "x\n"
    assert launched(path, "--again").stdout == "3 done\n"
    outputs = sorted(os.listdir(f"{path}.launch/out"))
    assert outputs[:2] == ["a.out", "b.out"] and len(outputs) == 3 and outputs[2].startswith("weird___id____x_~")


def test_a_failure_is_told_with_where_to_look_and_mended_by_the_next_run(file: Path) -> None:
    path = write(file, job("a", "echo why; exit 3"), job("b", "true", "a"), job("c", "true"))
    ran = launched(path, code=1)
    assert ran.stdout == "1 done, 1 failed, 1 not run, as one before them failed\n"
    assert ran.stderr == f"drainwise: job a: ended with 3; 1 after it are not run ({path}.launch/out/a.out)\n"
    assert Path(f"{path}.launch/out/a.out").read_text() == "why\n"
    write(file, job("a", "true"), job("b", "true", "a"), job("c", "true"))
    assert states(path) == {"a": "done", "b": "done", "c": "done"}


def test_targets_and_requests_choose_what_is_run(file: Path) -> None:
    path = write(file, job("a", "true"), job("b", "true", "a"), job("c", "true"), requests={"night": ["b"]})
    assert states(path, "a") == {"a": "done", "b": "ready", "c": "ready"}
    assert states(path) == {"a": "done", "b": "done", "c": "ready"}
    launched(path, "nobody", code=2)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_interrupted_it_ends_what_it_started_and_goes_on_when_run_again(file: Path, number: signal.Signals) -> None:
    """The job that ran has not failed; what was done is not done again."""
    path = write(
        file,
        job("a", "echo a >> log"),
        job("b", "echo b >> log; test -e go || exec sleep 60", "a"),
        job("c", "echo c >> log", "b"),
    )
    process = subprocess.Popen(command(path), env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    log = file.parent / "log"
    wait_for(lambda: log.exists() and log.read_text() == "a\nb\n")
    process.send_signal(number)
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 128 + number and not err and out == b"1 done, 2 left\n"
    assert not tagged(file.parent)
    (file.parent / "go").touch()
    assert set(states(path).values()) == {"done"} and log.read_text() == "a\nb\nb\nc\n"


def test_a_terminal_that_is_closed_ends_the_launch_as_any_signal_does(file: Path) -> None:
    """SIGHUP, and nothing can be written any more: what was started is ended, what was done is kept."""
    path = write(file, job("a", "true"), job("b", "touch up; test -e go || exec sleep 60", "a"), job("c", "true", "b"))
    process, terminal = pty.fork()
    if process == 0:
        os.execve(sys.executable, command(path), {**ENVIRONMENT, "TERM": "xterm"})
    wait_for((file.parent / "up").exists)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 128 + signal.SIGHUP
    assert not tagged(file.parent)
    (file.parent / "go").touch()
    assert launched(path).stdout == "3 done (1 of them earlier)\n"


def test_nobody_need_read_what_is_said(file: Path) -> None:
    """The reader of stderr has gone; the rest is run."""
    path = write(file, job("a", "exit 3"), job("b", "sleep 0.1; touch b", "c"), job("c", "true"))
    theirs, ours = os.pipe()
    os.close(theirs)
    process = subprocess.Popen(command(path), env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=ours)
    os.close(ours)
    assert process.communicate(timeout=PATIENCE)[0] == b"2 done, 1 failed\n" and process.returncode == 1
    assert (file.parent / "b").exists()


def test_a_result_that_cannot_be_written_is_told_in_a_line(file: Path) -> None:
    path = write(file, job("a", "true"))
    with open("/dev/full", "wb") as full:
        ran = subprocess.run(command(path), env=ENVIRONMENT, stdout=full, stderr=subprocess.PIPE, check=False)
    assert ran.returncode == 1
    assert ran.stderr == b"drainwise: the result cannot be written: No space left on device\n"
    assert launched(path).stdout == "1 done (1 of them earlier)\n"


def test_json_tells_all_of_every_job(file: Path) -> None:
    path = write(
        file,
        job("a", "exit 3"),
        job("b", "true", "a"),
        job("c", "kill -9 $$"),
        job("d", "true"),
        job("e", "true"),
        requests={"r": ["b", "c", "d"]},
    )
    found = json.loads(launched(path, "--json", code=1).stdout)
    assert list(found) == ["format", "version", "jobs", "counts", "done_earlier"]
    assert found["done_earlier"] == 0
    assert found["counts"] == {"done": 1, "failed": 2, "skipped": 1, "blocked": 0, "ready": 1, "started": 0}
    rows = {one["name"]: one for one in found["jobs"]}
    assert {name: (one["state"], one["code"], one["why"]) for name, one in rows.items()} == {
        "a": ("failed", 3, "ended with 3"),
        "b": ("skipped", None, "a has failed"),
        "c": ("failed", 137, "ended with 137: signal 9"),
        "d": ("done", 0, ""),
        "e": ("ready", None, ""),
    }
    for name, one in rows.items():
        assert list(one) == ["name", "state", "code", "seconds", "backend", "output", "why"]
        assert one["backend"] == "local" and one["output"] == f"{path}.launch/out/{name}.out"
        assert (one["seconds"] is None) == (name in "be")


def test_what_may_still_run_in_a_system_that_cannot_be_used_now_is_not_run_here(file: Path) -> None:
    """Its daemon is away just now: once more on this machine would be twice."""
    path = write(file, job("a", "touch wrong", backend="slurm"), job("b", "touch wrong"))
    launched(path, "b", "--backend", "local")
    (file.parent / "wrong").unlink()
    with contextlib.closing(Store(f"{path}.launch")) as store:
        store.starting([OpenStart("tag", "a", "slurm", "17", 1.0)])
    for words in ((), ("--again",)):
        ran = launched(path, *words, code=1)
        assert "1 jobs of an earlier run may still run in slurm" in ran.stderr
    assert not (file.parent / "wrong").exists()


def test_what_was_left_here_is_ended_though_all_jobs_go_elsewhere_now(file: Path, mocker: MockerFixture) -> None:
    path = write(file, job("a", "true"))
    launched(path)
    with contextlib.closing(Store(f"{path}.launch")) as store:
        tag = f"{store.fact('state', '')}-left"
    left = subprocess.Popen(["sleep", "60"], env={**ENVIRONMENT, "DRAINWISE_LAUNCH_TAG": tag})
    (file.parent / "scratch").mkdir()
    system = LocalBackend({"cpu": 1, "mem": 10, "tmp": 10}, str(file.parent / "scratch"))
    mocker.patch("drainwise_launch.slurm.backend.open_backend", autospec=True, return_value=system)
    write(file, job("a", "touch ran", backend="slurm"))
    assert main(["launch", path]) == 0 and (file.parent / "ran").exists()
    assert left.wait(PATIENCE) == -signal.SIGKILL


def test_a_job_that_will_not_hear_is_killed_when_asked_twice(file: Path) -> None:
    path = write(file, job("a", "trap 'touch heard' TERM; touch up; while :; do sleep 0.05; done"))
    program = (
        "import sys; from drainwise_launch.this_machine import process; process.KILL_WAIT = 1e6; "
        "from drainwise.cli.main import main; sys.exit(main())"
    )
    whole = [sys.executable, "-c", program, "launch", path]
    process = subprocess.Popen(whole, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_for((file.parent / "up").exists)
    process.send_signal(signal.SIGINT)
    wait_for((file.parent / "heard").exists)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=PATIENCE)
    assert process.returncode == 130 and not tagged(file.parent)


def test_killed_it_goes_on_and_ends_first_what_it_had_left_behind(file: Path) -> None:
    """HOSTILE 51: nobody can see how an orphan ends, so it is ended, and the job is run anew: never two at once."""
    path = write(file, job("a", "echo a >> log"), job("b", "echo b >> log; test -e go || exec sleep 60", "a"))
    process = subprocess.Popen(command(path), env=ENVIRONMENT)
    log = file.parent / "log"
    wait_for(lambda: log.exists() and log.read_text() == "a\nb\n")
    wait_for(lambda: "a" in kept(path))
    process.kill()
    process.wait()
    orphans = tagged(file.parent)
    assert len(orphans) == 1
    (file.parent / "go").touch()
    assert set(states(path).values()) == {"done"} and log.read_text() == "a\nb\nb\n"
    assert not tagged(file.parent)


def killed_amid(file: Path, path: str) -> Path:
    """Kill the launch when three jobs run, which end by themselves then; the file that they write to."""
    log = file.parent / "log"
    process = subprocess.Popen(command(path), env=ENVIRONMENT)
    wait_for(lambda: len(list(file.parent.glob("up-*"))) == 3)
    process.kill()
    process.wait()
    (file.parent / "go").touch()
    wait_for(lambda: not tagged(file.parent))
    assert sorted(log.read_text().split()) == ["a", "b", "c"]
    return log


def waiting(name: str, code: int = 0) -> str:
    return f"touch up-{name}; until test -e go; do sleep 0.02; done; echo {name} >> log; test -e twice || exit {code}"


def test_what_ended_while_no_launcher_was_there_is_not_run_again(file: Path) -> None:
    """What failed is tried again, as ever, and what is another job by now is run; times are learned."""
    jobs = [
        job("a", waiting("a")),
        job("b", waiting("b")),
        job("c", waiting("c", code=3)),
        job("d", "echo d >> log", "a"),
    ]
    path = write(file, *jobs, backends={"local": {"cpu": 3}})
    log = killed_amid(file, path)
    (file.parent / "twice").touch()
    jobs[1] = job("b", "echo other >> log")
    write(file, *jobs, backends={"local": {"cpu": 3}})
    ran = launched(path, "--json")
    found = {one["name"]: one for one in json.loads(ran.stdout)["jobs"]}
    assert {one["state"] for one in found.values()} == {"done"} and json.loads(ran.stdout)["done_earlier"] == 1
    assert sorted(log.read_text().split()) == ["a", "b", "c", "c", "d", "other"]
    assert found["a"]["seconds"] > 0
    assert launched(path).stdout == "4 done (4 of them earlier)\n"


def test_anew_means_also_what_ended_while_no_launcher_was_there(file: Path) -> None:
    path = write(file, *(job(name, waiting(name)) for name in "abc"), backends={"local": {"cpu": 3}})
    log = killed_amid(file, path)
    assert launched(path, "--again").stdout == "3 done\n"
    assert sorted(log.read_text().split()) == ["a", "a", "b", "b", "c", "c"]


def test_without_the_process_that_starts_jobs_they_are_started_once_more(file: Path) -> None:
    """It was killed, and not the launcher: nobody can see how its jobs end."""
    line = "echo a >> log; echo $PPID > parent; test -e go || exec sleep 60"
    path = write(file, job("a", line), job("b", "true", "a"))
    process = subprocess.Popen(command(path), env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    parent = file.parent / "parent"
    wait_for(lambda: parent.exists() and parent.read_text())
    (file.parent / "go").touch()
    os.kill(int(parent.read_text()), signal.SIGKILL)
    out, err = process.communicate(timeout=PATIENCE)
    assert out == b"2 done\n" and b"job a: vanished from local" in err and err.count(b"\n") == 1
    assert (file.parent / "log").read_text() == "a\na\n" and not tagged(file.parent)


def test_what_fled_from_its_job_is_ended_with_the_launch(file: Path) -> None:
    path = write(file, job("a", "setsid sh -c 'touch fled; exec sleep 60' & until test -e fled; do sleep 0.05; done"))
    assert launched(path).stdout == "1 done\n" and not tagged(file.parent)


def test_one_launch_runs_once(file: Path) -> None:
    path = write(file, job("a", "touch up; exec sleep 60"))
    process = subprocess.Popen(command(path), env=ENVIRONMENT, stdout=subprocess.DEVNULL)
    wait_for((file.parent / "up").exists)
    assert "another process runs this launch" in launched(path, code=1).stderr
    process.send_signal(signal.SIGINT)
    assert process.wait(PATIENCE) == 130


def said(ran: subprocess.CompletedProcess[str]) -> list[str]:
    """Its warnings, but for what is so on a machine without control groups of version 2 for memory."""
    return [line for line in ran.stderr.splitlines() if "memory is limited for each process" not in line]


def test_a_backend_that_is_not_here_is_replaced_by_this_machine(file: Path) -> None:
    """One warning; a job that asks for a partition runs alone."""
    path = write(
        file,
        *(job(name, "mkdir running && sleep 0.2 && rmdir running", resources={"partition": name}) for name in "abc"),
        backends={"slurm": {}, "local": {"cpu": 8}},
        backend="slurm",
    )
    ran = launched(path)
    assert ran.stdout == "3 done\n"
    assert len(said(ran)) == 1 and "slurm cannot be used here" in ran.stderr


@pytest.mark.parametrize("words", [("--local",), ("-l",), ("--backend", "local")])
def test_on_this_machine_a_partition_makes_a_job_run_alone(file: Path, words: tuple[str, ...]) -> None:
    """Without a warning, for nothing is missing: it was said. Resources that are counted here are reserved as asked."""
    alone = "mkdir running && sleep 0.1 && rmdir running"
    path = write(
        file,
        *(job(name, alone, resources={"partition": name}, backend="slurm") for name in "ab"),
        job("large", alone, resources={"cpu": 9}, backend="nobody-s", expected=100),
        *(job(name, f"{alone.replace('g ', 'g-' + name + ' ')}-{name}", resources={"cpu": 2}) for name in "cd"),
        backends={"local": {"cpu": 4}},
    )
    ran = launched(path, *words, "--json")
    assert {one["backend"] for one in json.loads(ran.stdout)["jobs"]} == {"local"}
    assert json.loads(ran.stdout)["counts"]["done"] == 5 and not said(ran)


def test_options_are_those_of_the_backend_that_they_name(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`-p` is a partition of Slurm's and a priority of Grid Engine's."""
    opened: dict[str, str] = {}
    (file.parent / "scratch").mkdir()

    def opener(name: str) -> Callable[..., object]:
        def opens(_settings: object, options: str, _place: object) -> object:
            opened[name] = options
            return LocalBackend({"cpu": 1, "mem": 10, "tmp": 10}, str(file.parent / "scratch"))

        return opens

    for name in ("slurm", "sge"):
        monkeypatch.setattr(f"drainwise_launch.{name}.backend.open_backend", opener(name))
    path = write(file, job("a", "true", backend="slurm"), job("b", "true", backend="sge"))
    assert main(["launch", path, "--backend-options=-p long"]) == 2 and not opened
    assert main(["launch", path, "--backend-options", "slurm:-p long", "--backend-options", "sge:-p -100"]) == 0
    assert opened == {"slurm": "-p long", "sge": "-p -100"}
    opened.clear()
    assert main(["launch", path, "--again", "--backend", "sge", "--backend-options=-p -100"]) == 0
    assert opened == {"sge": "-p -100"}


def test_no_more_run_at_once_than_one_says(file: Path) -> None:
    """However much is free."""
    line = "mkdir running-$$ && sleep 0.2 && ls -d running-* | wc -l >> log; rmdir running-$$"
    path = write(file, *(job(name, line, expected=10) for name in "abcdef"), backends={"local": {"cpu": 6}})
    launched(path, "--jobs", "2")
    counts = [int(line) for line in (file.parent / "log").read_text().split()]
    assert len(counts) == 6 and max(counts) == 2
    assert "expected a whole number" in launched(path, "-j", "0", code=2).stderr


@pytest.mark.parametrize(
    ("jobs", "said"),
    [
        ([job("a", "true", "b"), job("b", "true", "a")], "circle"),
        ([job("a", "true", resources={"unknown": 3})], "there is no resource unknown here"),
        ([job("a", "true", resources={"cpu": 1_000_000})], "it can never run in local: cpu = 1000000"),
        ([job("a", "true", resources={"cpu": 0})], "cpu = '0': expected"),
        ([job("a", "true", backend="pbs")], "expected one of htcondor, slurm, sge, local-batch, local"),
    ],
)
def test_what_cannot_be_launched_is_refused_before_anything_starts(
    file: Path, jobs: list[dict[str, object]], said: str
) -> None:
    path = write(file, job("first", "touch wrong"), *jobs)
    ran = launched(path, code=2)
    assert said in ran.stderr and len(ran.stderr.splitlines()) == 1
    assert not (file.parent / "wrong").exists()


def test_a_terminal_shows_a_bar_with_the_eta(file: Path) -> None:
    path = write(file, job("a", "sleep 0.5", expected=1000), job("b", "true", "a"))
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command(path), env={**ENVIRONMENT, "TERM": "xterm"}, stderr=theirs, stdout=subprocess.PIPE
    )
    os.close(theirs)
    seen = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:
            break
        if not piece:
            break
        seen += piece
    os.close(ours)
    assert process.communicate(timeout=PATIENCE)[0] == b"2 done\n"
    assert re.search(rb"0/2 over, 1 running, ETA 0:1[56]:", seen) and seen.endswith(b"\r\x1b[K")


def test_what_an_earlier_release_had_is_said_and_starts_nothing_by_mistake(file: Path) -> None:
    """`--dry-run` must not run the jobs; jobs that jobs added are named."""
    path = write(file, job("a", "touch ran"))
    assert "--dry-run: " in launched(path, "--dry-run", code=2).stderr and os.listdir(file.parent) == ["night.json"]
    Path(f"{path}.launch").mkdir()
    Path(f"{path}.launch/jobs.jsonl").write_text("{}\n")
    ran = launched(path)
    assert ran.stdout == "1 done\n" and f"{path}.launch/jobs.jsonl: jobs that jobs add are run no more" in ran.stderr
