"""What a person types wrongly gets a proposal; what a person asks is answered on any terminal and with any Python."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import drainwise
from drainwise.cli.command_line.commands import COMMANDS
from drainwise.cli.main import main
from more_examples import most_of

PLUGINS = str(Path(drainwise.__file__).parents[1])
ENVIRONMENT = {"PATH": os.defpath, "PYTHONPATH": PLUGINS, "PYTHONDONTWRITEBYTECODE": "1"}
EACH_HELP = f"""
import sys
sys.path.insert(0, {PLUGINS!r}); sys.dont_write_bytecode = True
from drainwise.cli.main import main
for name in {list(COMMANDS)!r}:
    try:
        code = main([name, "--help"])
    except SystemExit as end:
        code = end.code
    print(code, name, file=sys.stderr)
"""
EVERY_CODE = "".join(f"0 {name}\n" for name in COMMANDS)


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """The last line of what is said of wrong words."""
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    return shown.err.splitlines()[-1]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("stauts",), "drainwise: error: drainwise has no command 'stauts'; did you mean status?"),
        (("help", "repart"), "drainwise: error: drainwise has no command 'repart'; did you mean report?"),
        (("config", "slrm"), "drainwise config: error: drainwise config has no command 'slrm'; did you mean slurm?"),
        (("plan", "--jsn"), "drainwise plan: error: unknown option '--jsn'; did you mean --json?"),
        (("plan", "--polcy=paper"), "drainwise plan: error: unknown option '--polcy=paper'; did you mean --policy?"),
        (("local", "queue", "--jsn"), "drainwise local queue: error: unknown option '--jsn'; did you mean --json?"),
        (("plan", "now"), "drainwise plan: error: unexpected argument 'now'"),
        (
            ("pilot", "run", "--while-draining", "hole"),
            "drainwise pilot run: error: argument --while-draining: 'hole': expected one of holes, deadline, nothing;"
            " did you mean holes?",
        ),
    ],
)
def test_what_is_misspelt_gets_a_proposal(
    words: tuple[str, ...], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said(capsys, *words) == expected


def test_what_resembles_nothing_gets_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        said(capsys, "xyz\x1b") == f"drainwise: error: drainwise has no command 'xyz'; there are {', '.join(COMMANDS)}"
    )


@pytest.mark.parametrize(
    ("asked", "same"), [(["help"], ["--help"]), (["help", "config", "slurm"], ["config", "slurm", "--help"])]
)
def test_help_is_a_command(asked: list[str], same: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    texts = []
    for words in (asked, same):
        with pytest.raises(SystemExit, match=r"^0$"):
            main(words)
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1] != ""


@pytest.mark.parametrize("option", ["-V", "--version"])
def test_the_version_has_a_short_option(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match=r"^0$"):
        main([option])
    assert capsys.readouterr().out == f"drainwise {drainwise.__version__}\n"


@pytest.mark.daemons
def test_every_command_explains_itself_without_any_package() -> None:
    """-I and -S leave out whatever is installed: numpy, jinja2, prometheus_client, HTCondor's bindings."""
    program = EACH_HELP + "print(*{'numpy', 'jinja2', 'prometheus_client', 'htcondor2'} & set(sys.modules))"
    shown = subprocess.run([sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=False)
    assert (shown.returncode, shown.stderr) == (0, EVERY_CODE)
    assert shown.stdout.endswith("\n\n"), "what stood in for a package is gone"


def test_a_command_that_needs_a_package_is_refused_before_it_runs() -> None:
    program = EACH_HELP.partition("for name")[0] + "sys.exit(main(['plan']))"
    shown = subprocess.run([sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=False)
    assert (shown.returncode, shown.stdout) == (1, "")
    assert shown.stderr.startswith("drainwise: this command needs the Python package numpy: ")
    assert shown.stderr.count("\n") == 1


@pytest.mark.daemons
@pytest.mark.parametrize("encoding", most_of(["ascii"], ["ascii", "latin-1"]))
def test_every_command_explains_itself_in_any_encoding(encoding: str) -> None:
    """What it does not have is spelled: SIZE:SHARE,... and task -> parameters."""
    shown = subprocess.run(
        [sys.executable, "-c", EACH_HELP],
        env={**ENVIRONMENT, "PYTHONIOENCODING": encoding},
        capture_output=True,
        check=False,
    )
    assert (shown.returncode, shown.stderr.decode()) == (0, EVERY_CODE)
    text = shown.stdout.decode(encoding)
    assert "task (* for all others) -> parameters" in " ".join(text.split())
    assert "SIZE:SHARE,..." in text and "\\u" not in text


@pytest.mark.parametrize("words", [("help",), ("simulate", "--help")])
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_help_that_cannot_be_written_is_said(words: tuple[str, ...], unbuffered: str) -> None:
    """Short or longer than what is kept before it is written; argparse alone would end with 0."""
    line = ["sh", "-c", 'exec "$@" >/dev/full', "sh", sys.executable, "-m", "drainwise", *words]
    environment = {**ENVIRONMENT, "PYTHONUNBUFFERED": unbuffered}
    shown = subprocess.run(line, env=environment, stderr=subprocess.PIPE, text=True, check=False)
    why = "standard output cannot be written: No space left on device"
    assert (shown.returncode, shown.stderr) == (1, f"drainwise: {why}\n")


def test_an_error_that_cannot_be_written_ends_as_it_would() -> None:
    """Nobody can be told; the exit code is what is left."""
    for words, code in ((["report", "--journal", "/no/such"], 2), (["stauts"], 2)):
        line = ["sh", "-c", 'exec "$@" 2>/dev/full', "sh", sys.executable, "-m", "drainwise", *words]
        shown = subprocess.run(line, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True, check=False)
        assert (shown.returncode, shown.stdout) == (code, "")


def test_without_a_word_the_commands_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """By group, on standard error, with the code of wrong usage."""
    assert main([]) == 2
    out, err = capsys.readouterr()
    assert out == "" and "\nwatch:\n" in err and "\n  status " in err


def test_wrong_usage_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """What is wrong, without the lines of usage before it."""
    with pytest.raises(SystemExit):
        main(["plan", "--cores", "many"])
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("drainwise plan: error: argument --cores")
