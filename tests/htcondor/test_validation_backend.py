"""HTCondor as a validation's backend, without a pool: what is submitted, what an ad says, a schedd that is silent."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import htcondor2
import pytest

from drainwise.errors import UsageError
from drainwise.estimate.validation_backend import REPORT, VANISHED, Run
from drainwise.htcondor import validation_backend as module
from drainwise.htcondor.validation_backend import HTCondorValidationBackend, description, how_it_ended

pytestmark = pytest.mark.daemons  # it waits for what never answers

RUN = Run("made-up-1c-1", 2, 1000, 10, 600, ("sim", "a b", "$(x)"), {"A": "'"})


def test_a_description_is_one_that_htcondor_takes() -> None:
    """Nothing of the user's stands in it but the account; memory is in MiB, rounded up; time goes beyond the limit."""
    words = description(RUN, "group_physics.production")
    assert (words["request_cpus"], words["request_memory"]) == ("2", "954")
    assert int(words["allowed_execute_duration"]) > 600
    assert words["accounting_group"] == "group_physics.production"
    assert "sim" not in "".join(words.values()) and "accounting_group" not in description(RUN, None)
    htcondor2.Submit(words)


@pytest.mark.parametrize(
    ("ad", "expected"),
    [
        ({"JobStatus": 4, "ExitCode": 0, "ExitBySignal": False}, (0, "")),
        ({"JobStatus": 4, "ExitCode": 3, "ExitBySignal": False}, (3, "")),
        ({"JobStatus": 4, "ExitBySignal": True, "ExitSignal": 9}, (None, "ended by signal 9")),
        ({"JobStatus": 4}, (None, "ended by signal of unknown number")),
        ({"JobStatus": 5, "HoldReason": "no\x1b[31m\nsuch disk"}, (None, "held: no[31m such disk")),
        ({"JobStatus": 5}, (None, "held: nobody says why")),
        ({"JobStatus": 3, "RemoveReason": "via condor_rm"}, (None, "removed: via condor_rm")),
    ],
)
def test_how_a_job_ended(ad: dict[str, object], expected: tuple[int | None, str]) -> None:
    """A code of its own, a signal, a hold, a removal; HTCondor's words are fit for a terminal (HOSTILE 41)."""
    assert how_it_ended(ad) == expected


@pytest.mark.parametrize("account", ["", "a b", "a\nqueue 100", "$(HOME)", "-x"])
def test_an_account_that_is_no_group_is_refused(account: str) -> None:
    """It is the one word of the user's that stands in a submit description."""
    with pytest.raises(UsageError, match="expected an accounting group"):
        HTCondorValidationBackend("/nowhere", account)


def test_a_handle_that_is_none_has_vanished() -> None:
    """Of another batch system, or of a state that somebody wrote: nobody is asked, nothing is removed."""
    backend = HTCondorValidationBackend("/nowhere", None)
    for handle in ("", "17", "1.2.3", "-1.0", "1.x", "9" * 30 + ".0"):
        assert backend.poll(handle, "r").state == VANISHED
        backend.kill(handle, "r")


def test_no_place_for_a_run_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file where its directory should be; what lies there of another start is replaced, links are not followed."""
    (tmp_path / "runs").write_text("")
    with pytest.raises(UsageError, match="no place for a run"):
        HTCondorValidationBackend(str(tmp_path / "runs"), None).start(RUN)
    kept = tmp_path / "kept"
    kept.write_text("kept")
    os.makedirs(tmp_path / "r" / RUN.name)
    os.symlink(kept, tmp_path / "r" / RUN.name / REPORT)
    monkeypatch.setattr(module, "_submit", lambda *_: (7, 0))
    assert HTCondorValidationBackend(str(tmp_path / "r"), None).start(RUN) == "7.0"
    assert kept.read_text() == "kept" and (tmp_path / "r" / RUN.name / REPORT).read_bytes() == b""


def test_a_pool_that_never_answers_is_given_up(
    in_a_silent_pool: Callable[[str], subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    """HOSTILE 54: the real bindings against a real socket that takes connections and says nothing."""
    began = time.monotonic()
    ran = in_a_silent_pool(
        "from drainwise.htcondor.validation_backend import HTCondorValidationBackend as B\n"
        "from drainwise.estimate.validation_backend import Run\n"
        "from drainwise.errors import PoolUnreachable\n"
        "run = Run('r', 1, 1, 1, 1, ())\n"
        f"backend = B('{tmp_path}/runs', None, 0.5)\n"
        "for ask in (lambda: backend.refusal(run), lambda: backend.find('r'), lambda: backend.start(run),\n"
        "            lambda: backend.poll('1.0', 'r'), lambda: backend.kill('1.0', 'r')):\n"
        "    try:\n        ask()\n        print('answered')\n"
        "    except PoolUnreachable as fault:\n        print(fault)\n"
    )
    assert ran.stdout.splitlines() == [
        "the collector did not answer within 0.5 s",
        *["the schedd did not answer within 0.5 s"] * 4,
    ], ran.stderr
    assert time.monotonic() - began < 20
