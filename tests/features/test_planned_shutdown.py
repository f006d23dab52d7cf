"""The administrator's plan: refused when it cannot be kept, read with care, gone when its time has come."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from drainwise.facts.errors import FeatureError, UsageError
from drainwise.features.planned_shutdown import cancel, expire, plan, read

if TYPE_CHECKING:
    from tests.features.conftest import Attack

NOW = 1795249000


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "shutdowntime")


def test_a_plan_is_read_back_and_readable_by_all(path: str, attack: Attack) -> None:
    def set_it() -> None:
        os.umask(0o777)
        plan(path, NOW + 7200, NOW, grace_secs=3600)

    attack.run_as(None, set_it)
    assert Path(path).read_bytes() == b"1795256200\n"
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o644
    assert read(path, NOW) == (NOW + 7200, None)


def test_no_file_is_no_plan_and_no_remark(path: str) -> None:
    assert read(path, NOW) == (None, None)
    assert cancel(path) is False
    assert expire(path, NOW) is False


@pytest.mark.parametrize("ahead", [0, -1, -NOW])
@pytest.mark.parametrize("force", [False, True])
def test_a_past_time_is_refused_even_when_forced(path: str, ahead: int, force: bool) -> None:
    with pytest.raises(UsageError, match="not in the future"):
        plan(path, NOW + ahead, NOW, 0, force)
    assert not os.path.exists(path)


def test_a_time_nearer_than_the_grace_is_refused_unless_forced(path: str) -> None:
    with pytest.raises(UsageError, match="nearer than the grace of 3600 s"):
        plan(path, NOW + 3599, NOW, 3600)
    assert not os.path.exists(path)
    plan(path, NOW + 3600, NOW, 3600)
    with pytest.raises(UsageError):
        plan(path, NOW + 3599, NOW, 3600)
    assert read(path, NOW) == (NOW + 3600, None)
    plan(path, NOW + 60, NOW, 3600, force=True)
    assert read(path, NOW) == (NOW + 60, None)


def test_milliseconds_are_refused(path: str) -> None:
    """HOSTILE 37."""
    with pytest.raises(UsageError, match="milliseconds"):
        plan(path, NOW * 1000, NOW, 3600, force=True)


def test_cancel_removes_the_plan_whatever_it_holds(path: str) -> None:
    plan(path, NOW + 7200, NOW, 3600)
    assert cancel(path) is True
    Path(path).write_text("garbage")
    assert cancel(path) is True
    assert not os.path.lexists(path)


def test_a_time_that_has_come_is_no_plan_and_is_removed_by_whoever_may(path: str) -> None:
    plan(path, NOW + 10, NOW, 0)
    assert read(path, NOW + 9) == (NOW + 10, None)
    assert expire(path, NOW + 9) is False
    assert read(path, NOW + 10) == (None, None)
    assert expire(path, NOW + 10) is True
    assert not os.path.exists(path)


def test_a_job_may_read_but_neither_remove_nor_change_the_plan(sandbox: Path, attack: Attack) -> None:
    attack.need_root()
    os.chown(sandbox, 0, 0)
    sandbox.chmod(0o755)
    path = str(sandbox / "shutdowntime")
    plan(path, NOW + 10, NOW, 0)

    def as_job() -> tuple[object, bool]:
        with pytest.raises(FeatureError, match="cannot be removed: Permission denied"):
            cancel(path)
        with pytest.raises(FeatureError, match="cannot be written: Permission denied"):
            plan(path, NOW + 20, NOW, 0)
        return read(path, NOW), expire(path, NOW + 10)

    assert attack.run_as(attack.user, as_job) == ((NOW + 10, None), False)
    assert read(path, NOW) == (NOW + 10, None)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n",
        b"-1",
        b"1e9",
        b"1795249000.5",
        b" 1795256200",
        b"1795256200\n\n",
        b"0x10",
        b"1_000",
        b"\x00" * 10,
        b"9" * 11,
        b"9" * 64,
        b"9" * 5000,
        "١٢".encode(),
        b"soon\x1b[31m\n",
    ],
)
def test_garbage_is_ignored_with_a_remark_and_never_removed(path: str, content: bytes) -> None:
    """HOSTILE 23, 24, 36, 41."""
    Path(path).write_bytes(content)
    planned, remark = read(path, NOW)
    assert planned is None
    assert remark is not None
    assert remark.startswith("planned shutdown ignored: shutdowntime: ")
    assert remark.isprintable()
    assert len(remark) <= 200
    assert expire(path, NOW) is False
    assert os.path.exists(path)


def test_other_kinds_of_files_are_ignored_at_once(path: str) -> None:
    """HOSTILE 1, 5, 6, 8."""

    def link() -> None:
        Path(path + ".target").write_text(f"{NOW + 7200}\n")
        os.symlink(path + ".target", path)

    def listen() -> None:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path)

    kinds: list[Callable[[], object]] = [link, lambda: os.mkfifo(path), lambda: os.mkdir(path), listen]
    for make in kinds:
        make()
        planned, remark = read(path, NOW)
        assert planned is None
        assert remark is not None
        assert "expected a regular file" in remark
        (os.rmdir if os.path.isdir(path) else os.unlink)(path)


def test_a_plan_that_everybody_may_write_is_nobodys_plan(path: str) -> None:
    """HOSTILE 38: any job could drain the whole machine."""
    plan(path, NOW + 7200, NOW, 0)
    os.chmod(path, 0o666)
    planned, remark = read(path, NOW)
    assert planned is None
    assert remark is not None
    assert "everybody may write" in remark


def test_a_link_under_the_name_is_replaced_not_followed(path: str, tmp_path: Path) -> None:
    """HOSTILE 1, 47."""
    (tmp_path / "victim").write_text("precious")
    os.symlink(tmp_path / "victim", path)
    plan(path, NOW + 7200, NOW, 0)
    assert (tmp_path / "victim").read_text() == "precious"
    assert read(path, NOW) == (NOW + 7200, None)


def test_a_missing_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(FeatureError, match=r"absent/shutdowntime: cannot be written: No such file or directory"):
        plan(str(tmp_path / "absent/shutdowntime"), NOW + 7200, NOW, 0)


def test_a_reader_never_sees_a_torn_plan(path: str, attack: Attack) -> None:
    """HOSTILE 17, 51."""
    plan(path, NOW + 1, NOW, 0)
    seen: set[int | None] = set()
    with attack.looping(lambda count: plan(path, NOW + 1 + count % 2, NOW, 0)):
        while len(seen) < 2:
            planned, remark = read(path, NOW)
            assert remark is None
            seen.add(planned)
    assert seen == {NOW + 1, NOW + 2}
