"""Host facts from the kernel's files, real ones and prepared ones."""

from __future__ import annotations

import doctest
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import drainwise.features.host
from drainwise.features.host import cores, cpu_list, memory_bytes, scratch_bytes

ABSENT = "/does/not/exist"


def sys_cpu(root: Path, online: str, siblings: dict[int, str], smt: str | None = "1") -> str:
    root.mkdir()
    (root / "online").write_text(online + "\n")
    if smt is not None:
        (root / "smt").mkdir()
        (root / "smt/active").write_text(smt + "\n")
    for cpu, text in siblings.items():
        (root / f"cpu{cpu}/topology").mkdir(parents=True)
        (root / f"cpu{cpu}/topology/thread_siblings_list").write_text(text + "\n")
    return str(root)


def cpuinfo(path: Path, cpus: list[tuple[int, int] | None]) -> str:
    lines = []
    for number, place in enumerate(cpus):
        lines.append(f"processor\t: {number}")
        if place is not None:
            lines += [f"physical id\t: {place[0]}", f"core id\t\t: {place[1]}"]
        lines.append("")
    path.write_text("\n".join(lines))
    return str(path)


def test_hyper_threading_counts_both(tmp_path: Path) -> None:
    where = sys_cpu(tmp_path / "cpu", "0-3", {0: "0,2", 1: "1,3", 2: "0,2", 3: "1,3"})
    assert cores(where, ABSENT) == (2, 4)


def test_performance_and_efficiency_cores_are_counted_one_by_one(tmp_path: Path) -> None:
    where = sys_cpu(tmp_path / "cpu", "0-3", {0: "0-1", 1: "0-1", 2: "2", 3: "3"})
    assert cores(where, ABSENT) == (3, 4)


def test_hyper_threading_off_leaves_zero_logical_cores(tmp_path: Path) -> None:
    assert cores(sys_cpu(tmp_path / "cpu", "0-7", {}, smt="0"), ABSENT) == (8, 0)


def test_without_sys_the_cores_come_from_cpuinfo(tmp_path: Path) -> None:
    info = cpuinfo(tmp_path / "cpuinfo", [(0, 0), (0, 1), (1, 0), (1, 1)] * 2)
    assert cores(ABSENT, info) == (4, 8)


def test_a_sys_tree_with_holes_falls_back_to_cpuinfo(tmp_path: Path) -> None:
    where = sys_cpu(tmp_path / "cpu", "0-3", {0: "0"})
    assert cores(where, cpuinfo(tmp_path / "cpuinfo", [(0, 0), (0, 0)])) == (1, 2)


def test_a_kernel_without_topology_has_as_many_cores_as_processors(tmp_path: Path) -> None:
    assert cores(ABSENT, cpuinfo(tmp_path / "cpuinfo", [None, None])) == (2, 0)


def test_unknown_is_unknown(tmp_path: Path) -> None:
    (tmp_path / "junk").write_bytes(b"\xff\0processor")
    assert cores(ABSENT, ABSENT) == (None, None)
    assert cores(str(tmp_path), str(tmp_path / "junk")) == (None, None)
    assert memory_bytes(ABSENT) is None
    assert memory_bytes(str(tmp_path / "junk")) is None
    assert scratch_bytes(ABSENT) is None


def test_this_host_has_cores_memory_and_scratch(tmp_path: Path) -> None:
    physical, logical = cores()
    assert physical is not None
    assert logical is not None
    assert 1 <= physical <= (logical or physical) <= (os.cpu_count() or 1)
    assert memory_bytes() == pytest.approx(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"), rel=0.01)
    status = os.statvfs(tmp_path)
    assert scratch_bytes(str(tmp_path)) == status.f_blocks * status.f_frsize


@pytest.mark.parametrize("text", ["", "\n", "a", "1-", "-1", "3-x", "0-99999999", "1,,2", "\u0663"])
def test_what_is_no_list_of_cpus_is_none(text: str) -> None:
    assert cpu_list(text) == []


@given(st.sets(st.integers(0, 300), min_size=1))
def test_a_list_of_cpus_is_read_back(cpus: set[int]) -> None:
    assert cpu_list(",".join(map(str, sorted(cpus)))) == sorted(cpus)
    assert cpu_list(f"0-{max(cpus)}") == list(range(max(cpus) + 1))


def test_the_examples_in_the_docstrings_are_true() -> None:
    assert doctest.testmod(drainwise.features.host) == (0, 1)
