"""What HTCondor's commands print becomes the nodes and pilots that a doctor sees."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pytest_mock import MockerFixture

from drainwise.doctor.facts import SeenNode
from drainwise.htcondor.setup.machine_facts import _findings, batch_facts, nodes_in, standings_in
from drainwise.siteconfig import SiteConfig

ROWS = """\
wn1\t0.2.0\t1000\t1030\tundefined\tUnclaimed\ttrue\t1030\t/l/b /l/a
wn1\t0.2.0\t1000\t1020\tfresh\tClaimed\tfalse\t1020\t/l/b /l/a
wn1\tundefined\tundefined\t1020\tundefined\tClaimed\tfalse\t1020\t/l/b /l/a
wn2\tundefined\t400\t1030\tundefined\tUnclaimed\ttrue\t430\t
wn3\tundefined\tundefined\t1030\tundefined\tUnclaimed\tundefined\t1030\tundefined
a line of another kind
"""


def test_a_node_is_as_fresh_as_its_freshest_slot() -> None:
    """A node that was never heard of by drainwise has no version and no silence."""
    assert list(nodes_in(ROWS)) == [SeenNode("wn1", "0.2.0", 20), SeenNode("wn2", "", 630), SeenNode("wn3")]


def test_slots_in_use_count_by_their_standing() -> None:
    assert standings_in(ROWS) == {"fresh": 1, "silent": 1}


def test_a_nodes_time_is_compared_with_the_collectors() -> None:
    [found] = _findings(ROWS, {}, "wn1", is_node=False)
    assert (found.what, found.machine, found.line) == ("clock", "wn2", "timedatectl set-ntp true   # on wn2")
    assert "600 s ahead" in found.why


def test_files_that_another_node_cannot_use_are_named() -> None:
    """By its last update; on the node itself they are looked at."""
    named = [one for one in _findings(ROWS, {}, "cm", is_node=False) if one.what != "clock"]
    assert [(one.machine, one.value, one.line) for one in named] == [
        ("wn1", "/l/a /l/b", "drainwise doctor   # on wn1")
    ]


def commands(place: Path, daemons: str, knobs: dict[str, str]) -> None:
    """HTCondor's commands, as far as they are asked here."""
    values = {"DAEMON_LIST": daemons, "FULL_HOSTNAME": "wn1", "CONDOR_VERSION": "25.4.0", **knobs}
    cases = "".join(f"{name}) echo '{value}';; " for name, value in values.items())
    asked = f'#!/bin/sh\ncase $1 in {cases}*) echo "Not defined: $1" >&2; exit 1;; esac\n'
    for name, text in (("condor_config_val", asked), ("condor_status", f"#!/bin/sh\ncat <<'X'\n{ROWS}X\n")):
        (place / name).write_text(text)
        (place / name).chmod(0o755)


@pytest.mark.parametrize(
    ("daemons", "knobs", "roles", "in_force", "whole"),
    [
        ("MASTER, STARTD", {"DRAINWISE_RUN": "x"}, ("execute",), True, False),
        ("MASTER STARTD", {}, ("execute",), False, False),
        ("MASTER SCHEDD", {}, ("access",), None, False),
        ("MASTER COLLECTOR NEGOTIATOR", {"DRAINWISE_WASTE": "x"}, ("central",), None, True),
    ],
)
def test_the_roles_follow_from_the_daemons(
    daemons: str,
    knobs: dict[str, str],
    roles: tuple[str, ...],
    in_force: bool | None,
    whole: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    mocker: MockerFixture,
) -> None:
    commands(tmp_path, daemons, knobs)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    mocker.patch("drainwise.htcondor.setup.machine_facts._rights", autospec=True, return_value=None)
    found = batch_facts(SiteConfig())
    assert found is not None
    assert (found.roles, found.in_force, found.whole, found.agent_here) == (roles, in_force, whole, whole)
    assert (len(found.nodes) > 0) == (roles != ("access",))


def test_a_machine_without_htcondor_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands(tmp_path, "MASTER", {})
    (tmp_path / "condor_config_val").write_text("#!/bin/sh\nexit 1\n")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert batch_facts(SiteConfig()) is None
