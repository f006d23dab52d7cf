"""docs/pilot.md is true: its Python runs, its payload parses; the options have the defaults that commands.md says."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import pytest

from drainwise.cli import pilot as command
from drainwise.cli.command_line.options import build
from drainwise.pilot.decide.payload import parse_payload

DOCS = Path(__file__).parents[2] / "docs"
DOCUMENT = (DOCS / "pilot.md").read_text()
OTHERS = {"run", "refuse", "action", "metadata"}


def fences(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", DOCUMENT, re.DOTALL)


def test_the_library_is_used_as_documented(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The examples run one after the other; the first already makes a report."""
    monkeypatch.chdir(tmp_path)
    for variable in ("JOBFEATURES", "MACHINEFEATURES", "JOBSTATUS"):
        monkeypatch.delenv(variable, raising=False)
    first, *rest = fences("python")
    names: dict[str, object] = {}
    exec(first, names)
    assert "USED_FRACTION1k = 512\n" in (tmp_path / ".pilot.ad").read_text()
    for code in rest:
        exec(code, names)
    assert "USED_FRACTION1k = 0\n" in (tmp_path / ".pilot.ad").read_text()


def test_the_payload_parses() -> None:
    """Every key of a payload is shown and named in the table."""
    [example] = fences("json")
    payload = parse_payload(example)
    assert (payload.name, payload.cores, payload.priority, payload.task) == ("fit-17", 4, 2.0, "fit")
    for key in ("name", "cores", "command", "expected", "maximum", "priority", "task", "events"):
        assert f'"{key}"' in example and f"\n| `{key}` |" in DOCUMENT


def test_every_option_is_on_the_page_of_commands_with_its_default() -> None:
    """The table has the options of the command but those of several commands, and the defaults that it has."""
    parser = argparse.ArgumentParser()
    build(parser.add_subparsers(), "pilot", command.COMMAND)
    page = (DOCS / "commands.md").read_text().partition("\n### drainwise pilot run\n")[2].partition("\n## ")[0]
    rows = dict(re.findall(r"(?m)^\| `(--[a-z-]+)[^`]*` \| (.*) \|$", page))
    args = vars(parser.parse_args(["pilot", "run", "--queue", "x"]))
    options = {f"--{name.replace('_', '-')}": value for name, value in args.items() if name not in OTHERS}
    assert set(rows) == set(options)
    for option, default in options.items():
        if isinstance(default, float):
            assert f"(default: {default:g})" in rows[option], option
