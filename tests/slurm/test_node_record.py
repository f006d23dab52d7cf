"""What the agent records of its node for the prologs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from drainwise.slurm.node.facts import RECORD, NodeRecord, read_record, write_record


@pytest.mark.parametrize(
    "record", [NodeRecord(60, 32, 64, 1 << 50, ("fast", "rack1")), NodeRecord(60), NodeRecord(None, 2, 0), NodeRecord()]
)
def test_what_is_written_is_read(tmp_path: Path, record: NodeRecord) -> None:
    """Also a second time, over the first."""
    node = os.open(tmp_path, os.O_RDONLY)
    try:
        write_record(node, NodeRecord(1, 1, 1))
        write_record(node, record)
        assert read_record(node) == record
    finally:
        os.close(node)


@pytest.mark.parametrize(
    "content", [b"", b"\0\xff", b"total_cpu = x\n", b"total_cpu = -4\nphys_cores = 1e9\n", b"=" * 9999]
)
def test_a_broken_record_says_nothing(tmp_path: Path, content: bytes) -> None:
    """A prolog goes on with what it can count itself."""
    (tmp_path / RECORD).write_bytes(content)
    node = os.open(tmp_path, os.O_RDONLY)
    try:
        assert read_record(node) == NodeRecord()
    finally:
        os.close(node)


def test_no_record(tmp_path: Path) -> None:
    """Before the agent's first round."""
    node = os.open(tmp_path, os.O_RDONLY)
    try:
        assert read_record(node) == NodeRecord()
    finally:
        os.close(node)
