"""Exit codes of all commands, and that whatever cannot be done, read or written is one line: no traceback."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from drainwise.cli.command_line.commands import COMMANDS, GROUPS
from drainwise.cli.main import main, whole_parser

from .conftest import AlicesPool

PAGE = (Path(__file__).parents[2] / "docs" / "commands.md").read_text()
NO_FILE = "/no/such/file"
MISSING = {
    "status": ["--site", NO_FILE],
    "plan": ["--snapshot", NO_FILE],
    "explain": ["1.0", "--journal", NO_FILE],
    "report": ["--journal", NO_FILE],
    "snapshot": ["--site", NO_FILE],
    "reclaim": ["--once", "--site", NO_FILE],
    "drain": ["node1", "--by", "+1h", "--site", NO_FILE],
    "shutdown": ["--settings", "/"],
    "config": ["check", "--site", NO_FILE],
    "install": ["--tree", NO_FILE],
    "check": ["htcondor", "--site", NO_FILE],
    "doctor": ["--site", "/no/such\0", "--json"],
    "local": ["queue", "--directory", NO_FILE],
    "pilot": ["run", "--queue", NO_FILE, "--cores", "1", "--seconds", "9"],
    "features": ["write", "--machine", NO_FILE, "--json", NO_FILE],
    "launch": [NO_FILE],
    "validate": [NO_FILE],
    "estimate": [NO_FILE],
    "simulate": [NO_FILE],
}
"""For each command a file that is not there, or is none."""


def commands(parser: argparse.ArgumentParser, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The words of every command and sub-command."""
    below = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    if words:
        yield words
    for action in below:
        for name, one in action.choices.items():
            yield from commands(one, (*words, name))


def test_the_page_has_the_commands_by_group_and_the_codes() -> None:
    rows = re.findall(r"(?m)^\| ([a-z ]+) \| `([a-z]+)` \| (.+) \|$", PAGE)
    assert rows == [(group, name, text) for group, names in GROUPS.items() for name, text in names.items()]
    assert re.findall(r"(?m)^\| (\d+) \| ", PAGE) == ["0", "1", "2", "130", "141"]


def test_a_wrong_option_is_wrong_usage_everywhere(capsys: pytest.CaptureFixture[str]) -> None:
    """2, nothing on standard output, and the last line names command and option."""
    found = list(commands(whole_parser()))
    assert len(found) > 40 and {words[0] for words in found} == set(COMMANDS)
    for words in found:
        with pytest.raises(SystemExit) as ended:
            main([*words, "--no-such-option"])
        out, err = capsys.readouterr()
        assert (ended.value.code, out) == (2, ""), words
        last = err.splitlines()[-1]
        assert last.startswith(f"drainwise {' '.join(words)}: error: "), words
        assert "--no-such-option" in last or "required" in last, words


@pytest.mark.parametrize("name", COMMANDS)
def test_a_file_that_is_not_there_is_wrong_usage(
    name: str, pool: AlicesPool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line that names it; a command that shows what there is says it there."""
    assert main([name, *MISSING[name]]) == 2
    out, err = capsys.readouterr()
    if name == "doctor":
        assert '"site_fault": "/no/such' in out
        return
    assert out == ""
    assert err.startswith("drainwise: ") and err.count("\n") == 1
    assert MISSING[name][-1] in err or NO_FILE in err


def prints(place: Path) -> dict[str, list[str]]:
    """For each command that prints something without a daemon, how it does."""
    (place / "machine").mkdir()
    (place / "launch.json").write_text('{"jobs": [{"name": "a", "command": ["true"]}]}')
    log = str(Path(__file__).parents[2] / "scripts" / "local_demo" / "lcg-excerpt.swf")
    quick = ["--cores", "64", "--moments", "1", "--replications", "1", "--processes", "1", "--policies", "least-waste"]
    return {
        "status": [],
        "plan": [],
        "explain": ["1.0", "--journal", str(place / "journal")],
        "report": ["--journal", str(place / "journal")],
        "snapshot": [],
        "reclaim": ["--once"],
        "drain": ["--list"],
        "shutdown": ["--file", str(place / "plan")],
        "config": ["example"],
        "doctor": ["--site", NO_FILE],
        "local": ["account", "alice", "--quota", "4", "--directory", str(place / "batch"), "--json"],
        "features": ["show", "--machine", str(place / "machine"), "--job", str(place / "machine")],
        "launch": [str(place / "launch.json")],
        "estimate": ["--swf", log],
        "simulate": [log, *quick],
    }


def run_with(output: int, words: list[str], said: Path) -> int:
    """The exit code of a command whose standard output is this descriptor, in a process of its own."""
    child = os.fork()
    if child == 0:
        code = 99
        try:
            os.dup2(output, 1)
            sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
            sys.stderr = open(said, "w", encoding="utf-8")  # noqa: SIM115
            code = main(words)
            sys.stdout.flush()  # as the interpreter does at its end
        except BaseException as fault:
            said.write_text(repr(fault))
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.daemons
def test_whatever_prints_fails_in_one_line_where_nothing_can_be_written(
    pool: AlicesPool, journal: str, tmp_path: Path
) -> None:
    """A full disk: 1 and the reason. A reader that has gone: 141 and not a word."""
    pool.faults.clear()
    full, (reader, gone) = os.open("/dev/full", os.O_WRONLY), os.pipe()
    os.close(reader)
    said = tmp_path / "said"
    found = {}
    for name, words in prints(tmp_path).items():
        code = run_with(full, [name, *words], said)
        text = said.read_text()
        found[name] = (code, run_with(gone, [name, *words], said)), text, said.read_text()
    os.close(full)
    os.close(gone)
    for name, (codes, text, of_reader) in found.items():
        assert codes == (1, 141), (name, codes, text, of_reader)
        last = text.splitlines()[-1]
        assert re.fullmatch(r"drainwise: (standard output|the result) cannot be written: No space left on device", last)
        assert "Traceback" not in text + of_reader, name
