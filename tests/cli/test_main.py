"""The command line as a whole: exit codes, one line per error, and what a command may import."""

from __future__ import annotations

import errno
import importlib.metadata
import os
import re
import subprocess
import sys
import types
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import pytest

import drainwise
from drainwise.cli.command_line.commands import COMMANDS, GROUPS
from drainwise.cli.command_line.options import Command, option
from drainwise.cli.main import main
from drainwise.common.neighbours import PACKAGES
from drainwise.facts import errors

PLUGINS = str(Path(drainwise.__file__).parents[1])
SYSTEM_PYTHON = "/usr/bin/python3"
ENVIRONMENT = {"PATH": os.defpath, "PYTHONPATH": PLUGINS, "PYTHONDONTWRITEBYTECODE": "1"}


def command(monkeypatch: pytest.MonkeyPatch, what: object) -> None:
    """Make `status` a command that raises or returns `what`."""

    def run(args: object) -> Any:
        if isinstance(what, BaseException):
            raise what
        return what

    module = types.SimpleNamespace(COMMAND=Command("x", (option("--pool SYSTEM", "x"),), run))
    monkeypatch.setitem(sys.modules, "drainwise.cli.status", module)


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match=r"^0$"):
        main(["--help"])
    shown = capsys.readouterr().out
    at = [shown.index(f"\n{title}:\n") for title in GROUPS]
    assert at == sorted(at)
    assert [line.split()[0] for line in shown.splitlines() if re.match(r"  [a-z]", line)] == list(COMMANDS)


def test_the_package_is_a_program() -> None:
    argv = [sys.executable, "-m", "drainwise", "--version"]
    assert subprocess.check_output(argv, env=ENVIRONMENT, text=True) == f"drainwise {drainwise.__version__}\n"


@pytest.mark.parametrize(
    "words", [(), ("nonsense",), ("status", "--nonsense"), ("reclaim",), ("status", "--pool", "x")]
)
def test_wrong_usage_ends_with_2(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match=r"^2$"):
        sys.exit(main(words))
    out, err = capsys.readouterr()
    assert out == ""
    assert "drainwise" in err.splitlines()[-1 if words else 0]


@pytest.mark.parametrize("name", ["features", "shutdown", "pilot"])
def test_commands_of_a_worker_node_need_the_standard_library_alone(name: str) -> None:
    """They run with the system's Python and load nothing of the pool's side."""
    program = (
        f"import sys; sys.path.insert(0, {PLUGINS!r}); sys.dont_write_bytecode = True\n"
        "from drainwise.cli.main import main\n"
        f"try: main([{name!r}, '--help'])\n"
        "except SystemExit as end: code = end.code\n"
        "print(code, *sys.modules, file=sys.stderr)"
    )
    shown = subprocess.run([SYSTEM_PYTHON, "-I", "-c", program], capture_output=True, text=True, check=True)
    code, *modules = shown.stderr.split()
    assert code == "0"
    for pool_side in ("numpy", "htcondor2", "classad2", "jinja2", "drainwise.reclaim", "drainwise.siteconfig"):
        assert pool_side not in modules


@pytest.mark.parametrize(
    ("words", "package", "extras"),
    [
        (("--pool", "slurm"), "numpy.core", ("slurm",)),
        (("--pool=slurm",), "jinja2", ("slurm",)),
        (("--pool", "htcondor"), "numpy", ("htcondor",)),
        ((), "numpy", ("htcondor", "slurm")),
        ((), "htcondor2", ("htcondor",)),
    ],
)
def test_a_missing_package_is_named_with_what_installs_it(
    words: tuple[str, ...],
    package: str,
    extras: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """By the extra of the batch system that was asked for; by either where none was."""
    command(monkeypatch, ModuleNotFoundError(f"No module named '{package}'", name=package))
    assert main(["status", *words]) == 1
    installs = " or ".join(f"pip install 'drainwise[{extra}]'" for extra in extras)
    assert capsys.readouterr().err == f"drainwise: this command needs the Python package {package}: {installs}\n"


def test_a_package_for_another_python_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As numpy says it, in pages: its first line, and for which Python; a fault of ours stays one."""
    command(monkeypatch, ImportError("\n\nIMPORTANT: PLEASE READ THIS\n\nmore\n"))
    assert main(["status"]) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"drainwise: a Python package cannot be loaded by {sys.executable}, Python 3.")
    assert said.endswith(": one of numpy, jinja2, htcondor: IMPORTANT: PLEASE READ THIS: install it for this Python\n")


def test_where_pip_has_not_installed_drainwise_its_extras_are_not_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As after `drainwise install`: the package lies in a directory of its own, and the Python is the system's."""

    def missing(name: str) -> None:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "distribution", missing)
    command(monkeypatch, ModuleNotFoundError("No module named 'htcondor2'", name="htcondor2"))
    assert main(["status"]) == 1
    said = capsys.readouterr().err
    assert "pip install 'drainwise" not in said
    assert said.endswith(f": install htcondor for {sys.executable}, from the distribution or by pip\n")


@pytest.mark.parametrize(
    "fault",
    [
        ModuleNotFoundError("No module named 'drainwise.x'", name="drainwise.x"),
        ImportError("cannot import name", name="drainwise.x"),
        RecursionError("maximum recursion depth exceeded"),
        OverflowError("int too large to convert\nto float"),
        OSError(errno.EMFILE, "Too many open files"),
    ],
)
def test_a_fault_that_nobody_foresaw_is_one_line_that_says_how_to_report_it(
    fault: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No traceback reaches a user who has not asked for it."""
    command(monkeypatch, fault)
    assert main(["status"]) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(f"drainwise: a fault of drainwise itself: {type(fault).__name__}: ")
    assert ", at test_main.py:" in line and "drainwise doctor --bundle" in line
    monkeypatch.setenv("DRAINWISE_TRACEBACK", "1")
    with pytest.raises(type(fault)):
        main(["status"])


def test_a_file_that_cannot_be_used_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command(monkeypatch, PermissionError(errno.EACCES, "Permission denied", "/a\x1bb"))
    assert main(["status"]) == 1
    assert capsys.readouterr().err == "drainwise: '/a\\x1bb': Permission denied\n"


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (errors.PoolUnreachable("a\nb"), 1),
        (errors.ActionRefused("a\x1b b"), 1),
        (errors.ConfigurationError("f", "s", "k", "v", "x"), 2),
    ],
)
def test_an_error_is_one_printable_line_and_its_exit_code(
    fault: errors.DrainwiseError, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """HOSTILE 41: whatever name an error quotes."""
    command(monkeypatch, fault)
    assert main(["status"]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("drainwise: ")
    assert err.endswith("\n")
    assert err[:-1].isprintable()


def test_an_interrupt_ends_with_130(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    command(monkeypatch, KeyboardInterrupt())
    assert main(["status"]) == 130
    assert capsys.readouterr() == ("", "")


def test_a_commands_exit_code_is_the_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    command(monkeypatch, 7)
    assert main(["status"]) == 7


def test_a_reader_that_goes_away_is_no_error() -> None:
    """`drainwise … | head`: no traceback, nothing said."""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as closed:
        program = (
            "import sys, types\nfrom drainwise.cli import main as m\n"
            "from drainwise.cli.command_line.options import Command\n"
            "m.load = lambda name: types.SimpleNamespace(\n"
            "    COMMAND=Command('x', run=lambda args: print('x' * 100000) or 0))\n"
            "sys.exit(m.main(['status']))"
        )
        shown = subprocess.run(
            [sys.executable, "-c", program], env=ENVIRONMENT, stdout=closed, stderr=subprocess.PIPE, check=False
        )
    assert (shown.returncode, shown.stderr) == (141, b"")


@pytest.mark.parametrize("name", PACKAGES)
def test_a_command_whose_package_is_not_there_says_what_to_install(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As where a site has copied the core alone; other commands go on."""
    package = PACKAGES[name]
    monkeypatch.setitem(sys.modules, package, None)
    for module in [one for one in sys.modules if one.startswith(f"{package}.")]:
        monkeypatch.delitem(sys.modules, module)
    assert main([name, "file"]) == 1
    said = f"drainwise: this needs the Python package {package}, which is not in {PLUGINS}: install drainwise whole,"
    assert capsys.readouterr().err == f"{said} from its wheel or by its package drainwise-node\n"
    with pytest.raises(SystemExit, match=r"^0$"):
        main(["plan", "--help"])


@pytest.mark.parametrize("words", [("config", "keys"), ("shutdown", "--file", "/nowhere/at/all"), ("--help",)])
def test_an_output_that_is_full_or_closed_is_one_line_and_1(words: tuple[str, ...]) -> None:
    """No traceback, whatever was to be printed, by a command or by the parser itself."""
    for redirection, why in ((">/dev/full", "No space left on device"), (">&-", "it is closed")):
        line = ["sh", "-c", f'exec "$@" {redirection}', "sh", sys.executable, "-m", "drainwise", *words]
        shown = subprocess.run(line, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True, check=False)
        assert (shown.returncode, shown.stderr) == (1, f"drainwise: standard output cannot be written: {why}\n")


def test_without_standard_error_output_is_what_was_asked_for() -> None:
    """What goes to standard error is not printed among it."""
    line = ["sh", "-c", 'exec "$@" 2>&-', "sh", sys.executable, "-m", "drainwise", "shutdown", "--cancel", "--force"]
    shown = subprocess.run(line, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True, check=False)
    assert (shown.returncode, shown.stdout) == (0, "no shutdown is planned\n")
