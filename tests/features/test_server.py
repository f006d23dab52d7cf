"""The server gives out keys of the table below its root, and nothing else."""

from __future__ import annotations

import doctest
import http.client
import os
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import drainwise.features.server
from drainwise.facts.errors import FeatureError
from drainwise.features.keys import BY_NAME
from drainwise.features.server import FeatureServer, path_of
from drainwise.features.write import write_directory


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    root.mkdir()
    (root / "slot1_1@node").mkdir()
    write_directory(str(root / "slot1_1@node/job"), {"job_id": "12.0", "shutdowntime_job": "1795249000"})
    write_directory(str(root / "machine"), {"total_cpu": "24"})
    write_directory(str(root / ".hidden"), {"hs06": "1"})
    (root / "machine/notes").write_text("not a key\n")
    (tmp_path / "hs06").write_text("outside\n")
    return root


@pytest.fixture
def server(root: Path) -> Iterator[FeatureServer]:
    with FeatureServer(str(root)) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield server
        server.shutdown()


def ask(
    server: FeatureServer, target: str, method: str = "GET", headers: dict[str, str] | None = None
) -> tuple[int, bytes, dict[str, str]]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=5)
    try:
        connection.putrequest(method, target, skip_host=False)
        for name, value in (headers or {}).items():
            connection.putheader(name, value)
        connection.endheaders()
        response = connection.getresponse()
        return response.status, response.read(), dict(response.getheaders())
    finally:
        connection.close()


def test_a_key_is_sent_as_it_stands_in_its_file(server: FeatureServer) -> None:
    status, body, headers = ask(server, "/machine/total_cpu")
    assert (status, body) == (200, b"24\n")
    assert headers["Cache-Control"] == "max-age=3600"
    assert headers["Content-Type"].startswith("text/plain")
    assert ask(server, "/slot1_1@node/job/job_id")[:2] == (200, b"12.0\n")


def test_a_dynamic_key_and_an_absent_one_hold_for_seconds_only(server: FeatureServer) -> None:
    assert ask(server, "/slot1_1@node/job/shutdowntime_job")[2]["Cache-Control"] == "max-age=10"
    status, _, headers = ask(server, "/machine/shutdowntime")
    assert (status, headers["Cache-Control"]) == (404, "max-age=10")


def test_a_tag_saves_the_body_until_the_value_changes(server: FeatureServer, root: Path) -> None:
    tag = ask(server, "/machine/total_cpu")[2]["ETag"]
    for given_tags in (tag, f'"other", {tag}'):
        status, body, headers = ask(server, "/machine/total_cpu", headers={"If-None-Match": given_tags})
        assert (status, body, headers["ETag"]) == (304, b"", tag)
    write_directory(str(root / "machine"), {"total_cpu": "12"})
    assert ask(server, "/machine/total_cpu", headers={"If-None-Match": tag})[:2] == (200, b"12\n")


def test_head_tells_the_length_and_sends_nothing(server: FeatureServer) -> None:
    status, body, headers = ask(server, "/machine/total_cpu", "HEAD")
    assert (status, body, headers["Content-Length"]) == (200, b"", "3")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "X"])
def test_nothing_can_be_changed(server: FeatureServer, method: str, root: Path) -> None:
    assert ask(server, "/machine/total_cpu", method)[0] == 501
    assert (root / "machine/total_cpu").read_text() == "24\n"


@pytest.mark.parametrize(
    "target",
    [
        "/",
        "/machine",
        "/machine/",
        "/machine/notes",
        "/../hs06",
        "/machine/../../hs06",
        "/%2e%2e/hs06",
        "/..%2fhs06",
        "//hs06",
        "/./hs06",
        "/.hidden/hs06",
        "/machine//total_cpu",
        "/machine/total_cpu/",
        "/machine/total_cpu?x=1",
        "/machine/total_cpu%00",
        "/machine/total_cpu%0d%0aX:1",
        "/a/b/c/d/e/hs06",
        "machine/total_cpu",
        "http://127.0.0.1/machine/total_cpu",
        "/absent/total_cpu",
        "/machine/total_cpu/total_cpu",
    ],
)
def test_every_other_path_is_not_found(server: FeatureServer, target: str) -> None:
    """HOSTILE 15: no way up, no other name, no listing."""
    status, body, _ = ask(server, target)
    assert (status, body) == (404, b"")


def test_links_and_strange_files_give_nothing_away(server: FeatureServer, root: Path, tmp_path: Path) -> None:
    """HOSTILE 1, 5, 8, 19."""
    (root / "machine/hs06").symlink_to(tmp_path / "hs06")
    (root / "up").symlink_to(tmp_path)
    os.mkfifo(root / "machine/jobslots")
    (root / "machine/phys_cores").mkdir()
    with open(root / "machine/log_cores", "wb") as file:
        file.truncate(2**40)
    started = time.monotonic()
    for key in ("hs06", "jobslots", "phys_cores", "log_cores"):
        status, body, headers = ask(server, f"/machine/{key}")
        assert status == 500
        assert b"outside" not in body
        assert len(body) < 200
        assert headers["Cache-Control"] == "no-store"
    assert ask(server, "/up/hs06")[:2] == (404, b"")
    assert time.monotonic() - started < 2


def test_a_client_that_says_nothing_does_not_keep_others_waiting(server: FeatureServer) -> None:
    with socket.create_connection(("127.0.0.1", server.server_address[1])):
        started = time.monotonic()
        assert ask(server, "/machine/total_cpu")[0] == 200
        assert time.monotonic() - started < 2


def test_it_listens_on_loopback_unless_told_otherwise(server: FeatureServer) -> None:
    assert server.server_address[0] == "127.0.0.1"
    assert server.url == f"http://127.0.0.1:{server.server_address[1]}"


def test_a_root_or_port_that_cannot_be_is_a_clear_error(tmp_path: Path, server: FeatureServer) -> None:
    with pytest.raises(FeatureError, match="expected a directory"):
        FeatureServer(str(tmp_path / "absent"))
    with pytest.raises(FeatureError, match=r"cannot listen on 127.0.0.1 port"):
        FeatureServer(str(tmp_path), port=int(server.server_address[1]))
    with pytest.raises(FeatureError, match=r"cannot listen on 127.0.0.1 port 99999"):
        FeatureServer(str(tmp_path), port=99999)


def test_the_examples_in_the_docstrings_are_true() -> None:
    assert doctest.testmod(drainwise.features.server) == (0, 1)


@given(st.text(alphabet="ab.%/\\@-_ \0\n?#\u00e9", max_size=20))
def test_whatever_is_asked_a_path_is_plain_names_and_a_key(target: str) -> None:
    path = path_of(f"/{target}/hs06")
    if path is not None:
        *directories, key = path
        assert key in BY_NAME
        assert all(name and not name.startswith(".") and "/" not in name and name.isprintable() for name in directories)
