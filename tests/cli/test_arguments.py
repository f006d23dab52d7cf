"""What is no number on the command line is refused with what was expected, and never with the name of a function."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

import pytest

from drainwise.cli.arguments import fine_seconds, number, seconds, whole
from drainwise.cli.main import main, whole_parser

if TYPE_CHECKING:
    from collections.abc import Iterator

TIMES = "expected seconds, or a time such as 90s, 30m, 2h or 1d12h"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("report", "--days", "many"), "--days: 'many': expected a whole number from 1 to 3650"),
        (("report", "--days", "0"), "--days: '0': expected a whole number from 1 to 3650"),
        (("status", "--watch", "2d"), f"--watch: '2d': {TIMES}, from 0.1s to 1d"),
        (("status", "--watch", "nan"), f"--watch: 'nan': {TIMES}, from 0.1s to 1d"),
        (("plan", "--cores", "-1"), "--cores: '-1': expected a whole number from 1 to 999999999"),
        (("plan", "--horizon", "soon"), f"--horizon: 'soon': {TIMES}, from 0s to 3650d in whole seconds"),
        (("shutdown", "--grace", "1.5h"), f"--grace: '1.5h': {TIMES}, from 0s to 3650d in whole seconds"),
        (("features", "serve", "--port", "http"), "--port: 'http': expected a whole number from 0 to 65535"),
        (("pilot", "run", "--margin", "1w"), f"--margin: '1w': {TIMES}, from 0s to 3650d"),
        (("reclaim", "--loop", "--period", "0"), f"--period: '0': {TIMES}, from 1s to 1d in whole seconds"),
        (("simulate", "x", "--lease", "0"), f"--lease: '0': {TIMES}, from 1s to 3650d in whole seconds"),
        (("local", "wait", "--timeout", "1e400"), f"--timeout: '1e400': {TIMES}, from 0s to 3650d in whole seconds"),
        (("pilot", "run", "--cores", "0x8"), "--cores: '0x8': expected a whole number"),
        (("local", "submit", "--cores", "٣"), "--cores: '٣': expected a whole number"),
    ],
)
def test_the_refusal_says_what_was_expected(
    words: tuple[str, ...], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    assert capsys.readouterr().err.endswith(f"error: argument {expected}\n")


def options(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.Action]]:
    """Every option and argument of a command and of those below it, with the command."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for one in action.choices.values():
                yield from options(one)
        else:
            yield parser.prog, action


@pytest.mark.parametrize("text", ["2h", "90m", "5400", "1d12h"])
def test_every_option_that_takes_a_time_takes_it_in_each_form(text: str) -> None:
    """One syntax of durations: what an option calls DURATION, whichever command has it."""
    found = [(prog, action) for prog, action in options(whole_parser()) if action.metavar == "DURATION"]
    assert len(found) >= 20
    for prog, action in found:
        assert callable(action.type), (prog, action.option_strings)
        if (prog, action.dest, text) in {
            ("drainwise reclaim", "period", "1d12h"),
            ("drainwise status", "watch", "1d12h"),
        }:
            continue  # a day at most
        assert action.type(text) == {"2h": 7200, "90m": 5400, "5400": 5400, "1d12h": 129600}[text], prog


def test_no_option_answers_with_the_name_of_a_function() -> None:
    """Each type refuses by a message of its own, which argparse shows behind the option."""
    for prog, action in options(whole_parser()):
        if action.type is not None:
            assert callable(action.type)
            with pytest.raises(argparse.ArgumentTypeError, match=r"expected|there are"):
                raise AssertionError((prog, action.option_strings, action.type("\x1b nonsense")))


@pytest.mark.parametrize("text", ["", " ", "-1", "1h30", "30m1h", "1.5h", "nan", "inf", "1_0", "٣", "٣s", "9" * 400])
def test_what_is_no_time_is_refused(text: str) -> None:
    for kind in (seconds(), fine_seconds(), seconds(1, 60), fine_seconds(0.1, 60)):
        with pytest.raises(argparse.ArgumentTypeError, match="expected"):
            kind(text)


def test_seconds_may_have_a_fraction_where_they_need_one() -> None:
    assert fine_seconds()("0.25") == 0.25
    with pytest.raises(argparse.ArgumentTypeError, match="whole seconds"):
        seconds()("0.25")
    assert (whole()("-3"), number()("-0.5")) == (-3, -0.5)
