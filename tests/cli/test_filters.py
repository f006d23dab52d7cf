"""The filters of `status`, `plan` and `reclaim --once` are alike: what they show, what they refuse, and how."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from drainwise.cli.main import main
from drainwise.pilotad.report import PilotReport
from drainwise.pool.facts import Account

from .conftest import pilot

if TYPE_CHECKING:
    from .conftest import AlicesPool

AGENT_PAGE = (Path(__file__).parents[2] / "docs" / "agent.md").read_text()
COMMANDS = (["status"], ["plan"], ["reclaim", "--once"])


@pytest.fixture
def nodes(pool: AlicesPool, monkeypatch: pytest.MonkeyPatch) -> AlicesPool:
    """Beside alice's four pilots on node1 one of carol's, of another account, that drains on wn002."""
    whole = pool.snapshot(pool.now)
    one = replace(pilot(9, pool.now, pool.now, 4.0), node="wn002.site.org", name="slot1_9@wn002.site.org")
    assert one.report is not None
    values = {name: getattr(one.report, name) for name in PilotReport.__match_args__}
    report = PilotReport(**{**values, "can_postpone_last_job": False})
    carols = replace(one, user="carol@pool", account="group_c", report=report)
    accounts = (*whole.accounts, Account("group_c", 8.0, 8.0, 0.0, 100.0))
    monkeypatch.setattr(pool, "snapshot", lambda _: replace(whole, pilots=(*whole.pilots, carols), accounts=accounts))
    return pool


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--user", "alic"], "no user with pilots is called 'alic'; there is alice@pool, carol@pool"),
        (["--user", "alice", "--user", "x"], "no user with pilots is called 'x'"),
        (["--account", "group_d"], "no account is called 'group_d'; there is group_a, group_b, group_c"),
        (["--node", "node2"], "no node with pilots is called 'node2'; there is node1, wn002.site.org"),
        (["--node", "rack*"], "no node with pilots is called 'rack*'"),
        (["--state", "gone"], "'gone': expected one of running"),
        (["--limit", "0"], "'0': expected a whole number from 1"),
    ],
)
def test_an_unknown_name_is_refused_with_the_known_ones(
    command: list[str], words: list[str], said: str, nodes: AlicesPool, capsys: pytest.CaptureFixture[str]
) -> None:
    """By exit code 2, on standard error, and nothing is shown."""
    try:
        code = main([*command, *words])
    except SystemExit as left:
        code = int(left.code or 0)
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    assert said in err
    assert nodes.orders == []


@pytest.mark.parametrize(
    ("words", "there", "planned"),
    [
        ([], 5, 4),
        (["--user", "alice"], 4, 4),
        (["--user", "carol"], 1, 0),
        (["--account", "group_c"], 1, 0),
        (["--account", "group_b"], 0, 0),
        (["--node", "wn002"], 1, 0),
        (["--node", "NODE[1-2]"], 4, 4),
        (["--node", "wn*", "--state", "draining"], 1, 0),
        (["--state", "running", "--state", "ordered"], 4, 4),
        (["--limit", "2"], 2, 2),
        (["--user", "alice", "--limit", "3"], 3, 3),
    ],
)
def test_a_filter_shows_the_same_pilots_in_text_and_json(
    words: list[str], there: int, planned: int, nodes: AlicesPool, capsys: pytest.CaptureFixture[str]
) -> None:
    """`status` shows those that are there, a plan those of users who give back; its sums stay whole."""
    for command in COMMANDS:
        is_plan = command != ["status"]
        assert main([*command, *words]) == 0
        out = capsys.readouterr().out
        assert sum(line.startswith("slot1_") for line in out.splitlines()) == (planned if is_plan else there)
        assert any(told in out for told in ("by the filters", "a higher --limit")) == bool(words)
        assert ("2 pilots give back 16 of 16 cores" in out) == is_plan
        assert main([*command, "--json", *words]) == 0
        shown = json.loads(capsys.readouterr().out)
        found = [one for user in shown.get("users", ()) for one in (*user["orders"], *user["spared"])]
        assert len(found if is_plan else shown["pilots"]) == (planned if is_plan else there)


@pytest.mark.parametrize(
    "command",
    [
        "drainwise status --account group_a --state ordered",
        "drainwise plan --node 'wn[001-120]' --limit 20",
        "drainwise reclaim --once --user alice",
    ],
)
def test_the_commands_of_the_page(command: str, nodes: AlicesPool, capsys: pytest.CaptureFixture[str]) -> None:
    assert f"\n{command}" in AGENT_PAGE
    assert main(shlex.split(command)[1:]) == 0
    assert capsys.readouterr().err == ""


def test_the_rest_beyond_a_limit_is_counted(nodes: AlicesPool, capsys: pytest.CaptureFixture[str]) -> None:
    """Pilots with an order come first; of more of these than the limit the sentence says so."""
    assert main(["plan", "--limit", "3"]) == 0
    assert "and 1 more that are spared; a higher --limit shows them" in capsys.readouterr().out
    assert main(["plan", "--limit", "1"]) == 0
    out = capsys.readouterr().out
    assert "and 3 more with and without an order; a higher --limit shows them" in out
    assert "slot1_1@node1" in out and "slot1_2@node1" not in out
    assert main(["status", "--limit", "2"]) == 0
    assert "2 of 5 pilots; a higher --limit shows more" in capsys.readouterr().out


def test_a_user_is_a_filter_and_with_cores_whose_cores_are_wanted(
    nodes: AlicesPool, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", "--user", "carol"]) == 0
    assert "no pilot is shown" in capsys.readouterr().out
    assert main(["plan", "--user", "alice", "--cores", "8", "--json"]) == 0
    [user] = json.loads(capsys.readouterr().out)["users"]
    assert (user["user"], user["cores"]) == ("alice@pool", 8)


@pytest.mark.parametrize("width", [40, 80, 120, 200])
@pytest.mark.parametrize("command", COMMANDS)
def test_no_line_is_wider_than_the_window_and_no_number_is_cut(
    command: list[str],
    width: int,
    pool: AlicesPool,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """At 80 columns the way, the deadline, the horizon and the waste are there."""
    pool.user = "alice-" + "x" * 100 + "@pool"
    monkeypatch.setenv("COLUMNS", str(width))
    assert main(command) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= width
    assert not [word for line in lines for word in line.split() if word[0].isdigit() and word.endswith("~")]
    if command != ["status"] and width >= 80:
        [heading] = {line for line in lines if line.startswith("pilot ")}
        for column in ("way", "deadline", "cores back", "horizon", "would waste"):
            assert column in heading
    if width == 80:
        assert any(line.startswith("(left out") for line in lines)
