"""Reservations for requests: made once, deleted when the request is gone, and nobody else's is touched."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from drainwise.facts.errors import PoolUnreachable, RightsRefused
from drainwise.pool.abilities import Closing
from drainwise.slurm.jobs.commands import SlurmCommands
from drainwise.slurm.pool.pool import SlurmClosings

BY = 1_795_252_600
# Its reservations are files of one directory.
SCONTROL = """\
#!/bin/sh
echo "$*" >> {0}/calls
case "$*" in
"--oneliner show reservation")
    ls {0}/made | sed 's/.*/ReservationName=& StartTime=1 Nodes=n1 Users=root/'
    [ "$(ls {0}/made)" ] || echo "No reservations in the system" ;;
create*) [ ! -e {0}/refuse ] || {{ echo "Error creating the reservation: Invalid user id" >&2; exit 1; }}
    touch "{0}/made/${{3#*=}}" ;;
delete*) rm "{0}/made/${{2#*=}}" ;;
esac
"""
CLOSING = Closing("r1", frozenset({"n2", "n1"}), BY, "request r1: new disks")


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "upgrade").touch()
    program = tmp_path / "scontrol"
    program.write_text(SCONTROL.format(tmp_path))
    program.chmod(0o755)
    return tmp_path


def made(cluster: Path) -> list[str]:
    return sorted(path.name for path in (cluster / "made").iterdir())


def calls(cluster: Path) -> list[str]:
    path = cluster / "calls"
    found = path.read_text().splitlines() if path.exists() else []
    path.write_text("")
    return found


def test_it_is_made_once_deleted_with_its_request_and_then_nobody_is_asked(cluster: Path) -> None:
    closings = SlurmClosings(SlurmCommands(str(cluster)))
    [done] = closings.close_nodes([CLOSING])
    assert done.startswith("reservation drainwise-r1 is made: ")
    assert calls(cluster)[1] == (
        f"create reservation ReservationName=drainwise-r1 StartTime=uts{BY} Duration=infinite Nodes=n1,n2 Users=root"
        " Flags=maint,ignore_jobs"
    )
    assert SlurmClosings(SlurmCommands(str(cluster))).close_nodes([CLOSING]) == [], "another process finds it"
    assert closings.close_nodes([]) == ["reservation drainwise-r1 is deleted"]
    assert made(cluster) == ["upgrade"]
    assert closings.close_nodes([]) == []
    calls(cluster)
    assert closings.close_nodes([]) == []
    assert calls(cluster) == []
    assert len(closings.close_nodes([CLOSING])) == 1, "the next request is carried out"
    assert closings.close_nodes([]) == ["reservation drainwise-r1 is deleted"]


def test_its_name_is_one_that_slurm_takes(cluster: Path) -> None:
    closings = SlurmClosings(SlurmCommands(str(cluster)))
    closings.close_nodes([replace(CLOSING, name="new disks/2, n_1")])
    assert made(cluster) == ["drainwise-new-disks-2--n_1", "upgrade"]
    assert closings.close_nodes([replace(CLOSING, name="new disks/2, n_1")]) == []


def test_one_that_somebody_deleted_is_made_again(cluster: Path) -> None:
    closings = SlurmClosings(SlurmCommands(str(cluster)))
    closings.close_nodes([CLOSING])
    (cluster / "made" / "drainwise-r1").unlink()
    assert len(closings.close_nodes([CLOSING])) == 1


def test_rights_that_are_missing_are_a_fault_each_time_and_what_can_be_done_is_done(cluster: Path) -> None:
    (cluster / "refuse").touch()
    (cluster / "made" / "drainwise-r0").touch()
    closings = SlurmClosings(SlurmCommands(str(cluster)))
    assert closings.close_nodes([CLOSING]) == ["reservation drainwise-r0 is deleted"]
    for _ in range(2):
        with pytest.raises(RightsRefused, match="Invalid user id: orders need root or SlurmUser"):
            closings.close_nodes([CLOSING])
    (cluster / "refuse").unlink()
    assert len(closings.close_nodes([CLOSING])) == 1


def test_no_answer_is_no_reservation_that_is_gone(tmp_path: Path) -> None:
    with pytest.raises(PoolUnreachable):
        SlurmClosings(SlurmCommands(str(tmp_path))).close_nodes([CLOSING])
