"""What is no number on the command line is refused with what was expected, and never with the name of a function."""

from __future__ import annotations

import pytest

from drainwise.cli.main import main


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("report", "--days", "many"), "--days: 'many': expected a whole number from 1 to 3650"),
        (("report", "--days", "0"), "--days: '0': expected a whole number from 1 to 3650"),
        (("status", "--watch", "1h"), "--watch: '1h': expected a number from 0.1 to 86400"),
        (("status", "--watch", "nan"), "--watch: 'nan': expected a number from 0.1 to 86400"),
        (("plan", "--cores", "-1"), "--cores: '-1': expected a whole number from 1 to 999999999"),
        (("plan", "--horizon", "soon"), "--horizon: 'soon': expected seconds, or a duration such as 30m or 2h"),
        (("shutdown", "--grace", "1h"), "--grace: '1h': expected a whole number"),
        (("features", "serve", "--port", "http"), "--port: 'http': expected a whole number from 0 to 65535"),
        (("pilot", "run", "--margin", "1h"), "--margin: '1h': expected a number"),
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
