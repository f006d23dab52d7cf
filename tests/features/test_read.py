"""A pilot reads a value, None, or an error that says which file holds what instead of what; nothing else."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.facts.errors import FeatureError, UsageError
from drainwise.features.facts import HostFacts, JobFacts, job_values, machine_values
from drainwise.features.read import (
    DirectoryReader,
    FeatureReader,
    open_features,
    parse_decimal,
    parse_integer,
    parse_text,
)
from drainwise.features.write import write_directory

if TYPE_CHECKING:
    from tests.features.conftest import Attack


@pytest.fixture
def reader(tmp_path: Path) -> FeatureReader:
    return open_features(str(tmp_path))


def test_what_the_writer_wrote_is_read_back(tmp_path: Path) -> None:
    host = HostFacts(total_cpu=24, hs06=300.5)
    job = JobFacts(allocated_cpu=8, job_id="ap1#12.0", max_rss_bytes=2**62)
    write_directory(str(tmp_path / "mf"), machine_values(host))
    write_directory(str(tmp_path / "jf"), job_values(job, host))
    machine, job_reader = open_features(str(tmp_path / "mf")), open_features(f"{tmp_path}/jf/")
    assert machine.integer("total_cpu") == 24
    assert machine.decimal("hs06") == 300.5
    assert machine.decimal("total_cpu") == 24.0
    assert machine.integer("shutdowntime") is None
    assert job_reader.text("job_id") == "ap1#12.0"
    assert job_reader.integer("max_rss_bytes") == 2**62
    assert job_reader.decimal("hs06_job") == 100.166667
    assert machine.problem() is None


def test_a_dynamic_key_is_seen_when_it_comes_and_when_it_goes(tmp_path: Path, reader: FeatureReader) -> None:
    assert reader.integer("shutdowntime") is None
    (tmp_path / "shutdowntime").write_text("1795249000\n")
    assert reader.integer("shutdowntime") == 1795249000
    (tmp_path / "shutdowntime").unlink()
    assert reader.integer("shutdowntime") is None


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n",
        b"-1\n",
        b"+5\n",
        b"86400.0\n",
        b"1e3\n",
        b"0x10\n",
        b"1_000\n",
        b"1 2\n",
        b"1\n2\n",
        b"nan\n",
        b"9223372036854775808\n",
        b"9" * 4000,
        b"\x00" * 8,
        "١٢\n".encode(),
        b"\xff\n",
        b"True\n",
    ],
)
def test_garbage_is_an_error_naming_file_value_and_expectation(
    tmp_path: Path, reader: FeatureReader, content: bytes
) -> None:
    """HOSTILE 23, 24, 36: a pilot that took any of these for a number would stop now, or never."""
    (tmp_path / "shutdowntime").write_bytes(content)
    with pytest.raises(FeatureError, match="expected") as error:
        reader.integer("shutdowntime")
    message = str(error.value)
    assert f"{tmp_path}/shutdowntime" in message
    assert message.isprintable()
    assert len(message) < len(str(tmp_path)) + 200
    if content.strip() and len(content) < 20:
        assert ascii(content)[1:] in message


@pytest.mark.parametrize("content", [b"24", b"24\n", b"24\r\n", b" 24 \n", b"24\n\n", b"0024\n"])
def test_blanks_and_line_ends_around_a_value_are_forgiven(
    tmp_path: Path, reader: FeatureReader, content: bytes
) -> None:
    (tmp_path / "total_cpu").write_bytes(content)
    assert reader.integer("total_cpu") == 24


@pytest.mark.parametrize("content", [b"1e3\n", b".5\n", b"5.\n", b"1,5\n", b"1.2.3\n", b"-1.0\n", b"inf\n", b"1" * 31])
def test_a_decimal_is_plain_notation(tmp_path: Path, reader: FeatureReader, content: bytes) -> None:
    (tmp_path / "hs06").write_bytes(content)
    with pytest.raises(FeatureError, match="plain notation"):
        reader.decimal("hs06")


@pytest.mark.parametrize("key", ["", ".", "../../etc/passwd", "/etc/passwd", "a b", "a?b", "caf\u00e9", "x" * 65])
def test_a_key_is_a_name_and_no_path(reader: FeatureReader, key: str) -> None:
    with pytest.raises(UsageError, match="feature key"):
        reader.text(key)


@pytest.mark.parametrize("location", ["", "relative", "./x", "ftp://host/x", "file:///etc", "HTTP//x", "/a\0b", "~"])
def test_a_location_is_a_full_path_or_an_http_url(location: str) -> None:
    with pytest.raises(UsageError, match="features location"):
        open_features(location)


def test_a_directory_that_is_none_is_a_problem_and_its_keys_are_absent(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for name, expected in (("absent", "No such file"), ("file", "expected a directory, found not")):
        reader = open_features(str(tmp_path / name))
        assert reader.text("hs06") is None
        assert expected.partition(", found")[0] in (reader.problem() or "")
        assert isinstance(reader, DirectoryReader)
        with pytest.raises(FeatureError):
            reader.names()


def test_strange_files_are_errors_at_once(tmp_path: Path, reader: FeatureReader) -> None:
    """HOSTILE 1, 5, 6, 8, 19: nothing is followed, nothing is waited for, nothing large is read."""
    (tmp_path / "hs06").symlink_to("/etc/passwd")
    os.mkfifo(tmp_path / "total_cpu")
    (tmp_path / "jobslots").mkdir()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "grace_secs"))
    with open(tmp_path / "job_id", "wb") as file:
        file.truncate(2**40)
    for key in ("hs06", "total_cpu", "jobslots", "grace_secs", "job_id"):
        with pytest.raises(FeatureError, match=f"{tmp_path}: {key}: ") as error:
            reader.text(key)
        assert "root" not in str(error.value).replace(str(tmp_path), "")


def test_a_file_that_may_not_be_read_is_an_error_not_an_absent_key(sandbox: Path, attack: Attack) -> None:
    """HOSTILE 10: absent would mean that no shutdown is planned."""
    sandbox.chmod(0o755)
    (sandbox / "shutdowntime").write_text("1795249000\n")
    (sandbox / "shutdowntime").chmod(0)

    def read() -> str:
        with pytest.raises(FeatureError) as error:
            open_features(str(sandbox)).integer("shutdowntime")
        return str(error.value)

    assert "Permission denied" in attack.run_as(attack.user, read)


def test_a_directory_removed_and_made_again_is_an_absent_key_in_between(tmp_path: Path, attack: Attack) -> None:
    """HOSTILE 16."""
    place, aside = tmp_path / "mf", tmp_path / "aside"
    write_directory(str(place), {"total_cpu": "24"})
    reader = DirectoryReader(str(place))

    def move(count: int) -> None:
        os.rename(*((place, aside) if count % 2 == 0 else (aside, place)))

    seen: set[int | None] = set()
    with attack.looping(move):
        while len(seen) < 2:
            seen.add(reader.integer("total_cpu"))
    assert seen == {24, None}


def test_names_lists_strangers_too(tmp_path: Path, reader: FeatureReader) -> None:
    (tmp_path / "hs06").write_text("1\n")
    (tmp_path / "notes").write_text("1\n")
    assert isinstance(reader, DirectoryReader)
    assert reader.names() == ["hs06", "notes"]


@given(st.integers(0, 2**63 - 1))
def test_every_integer_that_can_be_written_is_read(number: int) -> None:
    assert parse_integer(b"%d\n" % number, "place") == number
    assert parse_decimal(b"%d\n" % number, "place") == float(number)
    assert parse_decimal(b"%030d\n" % number, "place") == float(number)


@given(st.binary(max_size=64))
def test_bytes_are_a_value_or_a_printable_error(content: bytes) -> None:
    for parse in (parse_text, parse_integer, parse_decimal):
        try:
            value = parse(content, "place")
        except FeatureError as error:
            assert str(error).isprintable()
            assert len(str(error)) <= 300
        else:
            assert value or value == 0
