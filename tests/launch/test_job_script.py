"""A job's script is run by a real sh: argv, environment and directory arrive as they are, whatever stands in them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.facts.errors import ActionRefused
from drainwise_launch.backend import Start
from drainwise_launch.choice.resources import Resources
from drainwise_launch.job_script import NOT_BEGUN, job_script
from more_examples import more_examples

TELL = "import json, os, sys; json.dump([sys.argv[1:], dict(os.environ), os.getcwd()], open(sys.argv[1], 'w'))"
SHELLS = [shell for shell in (("/bin/sh",), ("/bin/bash", "--posix")) if Path(shell[0]).exists()]
words = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=30)
names = st.one_of(
    st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,10}", fullmatch=True),
    st.sampled_from(["X Y", "a.b", "BASH_FUNC_f%%", "UID", "PPID", "OPTIND", "ümlaut", "IFS", "PS4", "ENV", "-x"]),
    st.sampled_from(
        ["BASHPID", "BASH_ARGV", "BASH_COMMAND", "GROUPS", "DIRSTACK", "EPOCHSECONDS", "SRANDOM", "FUNCNAME"]
    ),
).filter(lambda name: name not in {"PWD", "OLDPWD", "SHLVL", "_"})


def start(tmp_path: Path, argv: tuple[str, ...], **rest: object) -> Start:
    given = {"name": "j", "tag": "t", "cwd": str(tmp_path), "resources": Resources(), "stdout": f"{tmp_path}/out"}
    return Start(argv=argv, **{**given, **rest})  # type: ignore[arg-type]


def run(script: str, shell: tuple[str, ...] = ("/bin/sh",)) -> int:
    return subprocess.run(shell, input=script.encode(), env={"LEFT": "1", "LC_ALL": "C"}, check=False).returncode


@pytest.mark.daemons
@more_examples(0.5)
@given(st.lists(words, max_size=4), st.dictionaries(names, words, max_size=5), st.sampled_from(SHELLS))
def test_nothing_a_user_writes_is_evaluated(
    tmp_path_factory: pytest.TempPathFactory, argv: list[str], environment: dict[str, str], shell: tuple[str, ...]
) -> None:
    """HOSTILE 44, 46: quotes, newlines, `$(…)`, IFS, PS4 and names that sh has for itself."""
    place = tmp_path_factory.mktemp("it's $HOME; \n #$ -N x")
    told = str(place / "told")
    job = start(place, (sys.executable, "-I", "-c", TELL, told, *argv), environment=environment)
    assert run(job_script(job, unwanted=("LEFT", "LC_ALL")), shell) == 0
    heard_argv, heard_environment, cwd = json.loads(Path(told).read_text())
    for of_the_shell in ("PWD", "OLDPWD", "SHLVL", "_", "LC_CTYPE"):
        heard_environment.pop(of_the_shell, None)
    environment.pop("LC_CTYPE", None)
    assert heard_argv == [told, *argv]
    assert heard_environment == environment
    assert cwd == str(place)


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_that_reads_the_script_from_its_stdin_reads_all_of_it(tmp_path: Path, shell: tuple[str, ...]) -> None:
    """As Grid Engine's script_from_stdin does it; the script is larger than what a shell reads ahead."""
    job = start(
        tmp_path, ("/bin/sh", "-c", "wc -c; exit 7"), environment={"LARGE": "x" * 60_000, "PATH": "/bin:/usr/bin"}
    )
    assert run(job_script(job), shell) == 7 and run(job_script(job, {99: 227}), shell) == 7
    assert (tmp_path / "out").read_text() == "0\n0\n"


def test_both_streams_are_appended_to_the_file(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("before\n")
    assert run(job_script(start(tmp_path, ("/bin/sh", "-c", "echo one; echo two >&2; exit 7")))) == 7
    assert (tmp_path / "out").read_text() == "before\none\ntwo\n"


@pytest.mark.parametrize(("code", "ended"), [(99, 227), (100, 228), (98, 98), (0, 0), (255, 255)])
def test_codes_that_mean_something_to_the_batch_system_are_moved(tmp_path: Path, code: int, ended: int) -> None:
    job = start(tmp_path, ("/bin/sh", "-c", f"exit {code}"), environment={"IFS": "0123456789"})
    assert run(job_script(job, {99: 227, 100: 228})) == ended


@pytest.mark.parametrize("moved", [{}, {99: 227}])
@pytest.mark.parametrize("program", ["exit", "if", "A=b", "{", "cd", "-c", "!", "test", "echo hi"])
def test_a_program_is_no_word_of_the_shell_s(tmp_path: Path, program: str, moved: dict[int, int]) -> None:
    (tmp_path / program).write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\nexit 7\n")
    (tmp_path / program).chmod(0o755)
    path = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    assert run(job_script(start(tmp_path, (program, "x"), environment=path), moved)) == 7
    assert (tmp_path / "ran").exists()


def test_a_program_that_env_would_take_for_a_variable_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ActionRefused, match="called 'A=b'"):
        job_script(start(tmp_path, ("A=b",), environment={"x.y": "1"}))


def test_a_signal_is_told_as_a_shell_tells_it(tmp_path: Path) -> None:
    assert run(job_script(start(tmp_path, ("/bin/sh", "-c", "kill -9 $$")), {99: 227})) == 128 + 9


@pytest.mark.parametrize("wrong", [{"cwd": "/nowhere"}, {"stdout": "/nowhere/out"}])
def test_what_cannot_begin_does_not_run(tmp_path: Path, wrong: dict[str, str]) -> None:
    code = run(job_script(start(tmp_path, ("/usr/bin/touch", f"{tmp_path}/ran"), **wrong)))
    assert code in {NOT_BEGUN, 2}  # 2: dash ends at once where a redirection fails
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("word", ["a\0b", "\ud800"])
def test_what_no_process_can_be_given_is_refused(tmp_path: Path, word: str) -> None:
    with pytest.raises(ActionRefused):
        job_script(start(tmp_path, ("/bin/echo", word)))
