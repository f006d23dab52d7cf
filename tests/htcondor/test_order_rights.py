"""As whom a startd is asked: root shows the machine's tokens, unless others are configured or these are refused."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from pytest_mock import MockerFixture

from drainwise.htcondor.ads.query import htcondor2
from drainwise.htcondor.pool import collector
from drainwise.htcondor.pool.collector import OrderRights, rights_at
from drainwise.htcondor.pool.knobs import TRIAL_KNOB

OWN, MACHINES = "SEC_TOKEN_DIRECTORY", "SEC_TOKEN_SYSTEM_DIRECTORY"


@pytest.mark.parametrize(
    ("uid", "own", "names", "granted", "shown", "stands"),
    [
        (0, None, ["token"], True, ["machine"], "machine"),
        (0, None, ["token"], False, ["machine", ""], ""),
        (0, None, [".hidden"], True, [None], None),
        (0, "/own", ["token"], True, ["/own"], "/own"),
        (1001, None, ["token"], True, [None], None),
    ],
)
def test_which_tokens_are_shown(
    tmp_path: Path,
    mocker: MockerFixture,
    monkeypatch: pytest.MonkeyPatch,
    uid: int,
    own: str | None,
    names: list[str],
    granted: bool,
    shown: list[str | None],
    stands: str | None,
) -> None:
    """Each is asked about the order and its level; what was refused is shown no more."""
    for name in names:
        (tmp_path / name).touch()
    param: dict[str, str | None] = {MACHINES: str(tmp_path), OWN: own}
    monkeypatch.setattr(htcondor2, "param", param)
    mocker.patch("os.geteuid", autospec=True, return_value=uid)
    asked: list[tuple[str, str | None]] = []

    def ping(address: str, what: str) -> Mapping[str, object]:
        asked.append((what, param[OWN]))
        if not granted:
            raise htcondor2.HTCondorException(address)
        return {"MyRemoteUserName": "condor@pool"}

    mocker.patch.object(collector, "_ping", autospec=True, side_effect=ping)
    found = rights_at("<node>")
    assert found == (OrderRights("condor@pool", allowed=True) if granted else OrderRights("", allowed=False))
    tokens = [str(tmp_path) if one == "machine" else one for one in shown]
    assert asked == [(what, one) for one in tokens for what in ("DC_CONFIG_RUNTIME", "ADMINISTRATOR")]
    assert param[OWN] == (str(tmp_path) if stands == "machine" else stands)


def test_a_startd_that_takes_a_trial_takes_orders(mocker: MockerFixture) -> None:
    """It is a value of a knob that nothing reads."""
    written: dict[str, str] = {}
    asked = mocker.patch("htcondor2.RemoteParam", autospec=True, return_value=written)
    assert collector.is_order_taken("<n1>")
    assert asked.call_args.args[0]["MyAddress"] == "<n1>" and written == {TRIAL_KNOB: "True"}
    asked.side_effect = htcondor2.HTCondorException("denied")
    assert not collector.is_order_taken("<n1>")
