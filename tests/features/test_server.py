"""The server gives out keys of the table below its root, and nothing else."""

from __future__ import annotations

import doctest
import http.client
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import drainwise.features.job_token
import drainwise.features.serve
import drainwise.features.served_key
from drainwise.facts.errors import FeatureError
from drainwise.features.facts import BY_NAME
from drainwise.features.job_token import TOKEN_FILE, make_token
from drainwise.features.serve import FeatureServer
from drainwise.features.served_key import path_of
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
        threading.Thread(target=server.serve_forever, daemon=True).start()
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
        "/.hidden/notes",
        "/.../hs06",
        "/~/hs06",
        "/machine/~c0ffee/total_cpu",
        "/machine//total_cpu",
        "/machine/total_cpu/",
        "/machine/total_cpu?x=1",
        "/machine/total_cpu%00",
        "/machine/total_cpu%0d%0aX:1",
        "/a/b/c/d/e/f/g/hs06",
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
    for key in ("hs06", "jobslots", "phys_cores", "log_cores"):
        status, body, headers = ask(server, f"/machine/{key}")
        assert status == 500
        assert b"outside" not in body
        assert len(body) < 200
        assert headers["Cache-Control"] == "no-store"
    assert ask(server, "/up/hs06")[:2] == (404, b"")


def test_a_client_that_says_nothing_does_not_keep_others_waiting(server: FeatureServer) -> None:
    with socket.create_connection(("127.0.0.1", server.server_address[1])) as silent:
        assert ask(server, "/machine/total_cpu")[0] == 200
        silent.setblocking(False)
        with pytest.raises(BlockingIOError):  # it is still waited for
            silent.recv(1)


def test_the_trees_of_the_hooks_are_served(server: FeatureServer) -> None:
    """Their names begin with a point."""
    assert ask(server, "/.hidden/hs06")[:2] == (200, b"1\n")


def test_a_closed_root_is_served_as_it_was_asked_for(server: FeatureServer, root: Path) -> None:
    """Such as the working directory of a job in the local batch system."""
    root.chmod(0o700)
    assert ask(server, "/.hidden/hs06")[:2] == (200, b"1\n")


def test_a_job_s_tree_is_entered_by_its_token_alone(server: FeatureServer, root: Path) -> None:
    """Whoever shows none, another job's or a part of it, learns no more than of a tree that is not there."""
    token, other = make_token(str(root / "slot1_1@node"), None), make_token(str(root / "machine"), None)
    status, body, headers = ask(server, f"/slot1_1@node/~{token}/job/job_id")
    assert (status, body, headers["Cache-Control"]) == (200, b"12.0\n", "private, max-age=3600")
    absent = ask(server, "/absent/job/job_id")
    for shown in ("", f"~{other}/", f"~{token[:-1]}/", f"~{token}0/", f"{token}/", f"~{token}/~{token}/", "~/"):
        refused = ask(server, f"/slot1_1@node/{shown}job/job_id")
        assert (refused[0], refused[1], refused[2]["Cache-Control"]) == (404, b"", absent[2]["Cache-Control"]), shown
    assert ask(server, f"/machine/~{other}/total_cpu")[:2] == (200, b"24\n")
    assert ask(server, f"/~{other}/machine/total_cpu")[0] == 404


@pytest.mark.parametrize("content", [b"", b"\n", b"x" * 65])
def test_a_token_file_that_is_none_opens_nothing(server: FeatureServer, root: Path, content: bytes) -> None:
    (root / "machine" / TOKEN_FILE).write_bytes(content)
    for target in ("/machine/total_cpu", "/machine/~/total_cpu", f"/machine/~{'x' * 65}/total_cpu"):
        assert ask(server, target)[0] == 404


@pytest.mark.parametrize("made", ["link", "fifo", "directory"])
def test_nor_does_what_is_no_file(server: FeatureServer, root: Path, made: str) -> None:
    make_token(str(root), None)
    path = root / "machine" / TOKEN_FILE
    if made == "link":
        path.symlink_to(root / TOKEN_FILE)
    elif made == "fifo":
        os.mkfifo(path)
    else:
        path.mkdir()
    token = (root / TOKEN_FILE).read_text().strip()
    (root / TOKEN_FILE).unlink()
    assert ask(server, "/machine/total_cpu")[0] == 404
    assert ask(server, f"/machine/~{token}/total_cpu")[0] == 404


def test_without_a_token_only_what_everybody_may_read_is_given(server: FeatureServer, root: Path) -> None:
    """A job's directory is closed to others on its machine; the server opens it to nobody."""
    assert ask(server, "/slot1_1@node/job/job_id")[0] == 200
    (root / "slot1_1@node").chmod(0o710)
    assert ask(server, "/slot1_1@node/job/job_id")[0] == 404
    token = make_token(str(root / "slot1_1@node"), None)
    assert ask(server, f"/slot1_1@node/~{token}/job/job_id")[0] == 200
    (root / "machine/total_cpu").chmod(0o640)
    assert ask(server, "/machine/total_cpu")[0] in {404, 500}


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: two users")
def test_a_user_s_tree_gives_no_other_user_s_file(server: FeatureServer, root: Path) -> None:
    """Hard links to another user's keys, and a directory of another's, with the own token."""
    own = root / "own"
    write_directory(str(own), {"hs06": "7"})
    os.link(root / "slot1_1@node/job/job_id", own / "job_id")
    write_directory(str(own / "more"), {"hs06": "8"})
    for path in (own, own / "hs06"):
        os.chown(path, 4711, 4711)
    token = make_token(str(own), None)
    assert ask(server, f"/own/~{token}/hs06")[:2] == (200, b"7\n")
    assert ask(server, f"/own/~{token}/job_id")[0] == 404
    assert ask(server, f"/own/~{token}/more/hs06")[0] == 404


def test_a_token_belongs_to_its_job_alone(root: Path) -> None:
    """Root makes it for the job's user; made again it is another one."""
    first = make_token(str(root), (os.geteuid(), os.getegid()))
    assert (root / TOKEN_FILE).stat().st_mode & 0o777 == 0o400
    assert len(first) == 32
    assert make_token(str(root), None) != first
    assert (root / TOKEN_FILE).stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("said", [b"\r\n\r\n", b"GET /\r\n\r\n", b"GET / FTP/1.0\r\n\r\n", b"\xff\x00\r\n\r\n"])
def test_what_is_no_http_is_refused(server: FeatureServer, said: bytes) -> None:
    with socket.create_connection(("127.0.0.1", server.server_address[1]), timeout=5) as connection:
        connection.sendall(said)
        assert connection.recv(4096).startswith(b"HTTP/1.1 400 ")


def test_a_request_has_an_end(server: FeatureServer) -> None:
    with socket.create_connection(("127.0.0.1", server.server_address[1]), timeout=5) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nX: " + b"x" * 8192)
        assert connection.recv(4096).startswith(b"HTTP/1.1 431 ")


def test_when_all_places_are_taken_the_longest_silent_one_goes(
    server: FeatureServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that has begun to ask stays."""
    monkeypatch.setitem(drainwise.features.serve.FAIR_SECS, False, 0.05)
    monkeypatch.setattr(server, "_most", 3)
    port = server.server_address[1]
    asking, first, second = (socket.create_connection(("127.0.0.1", port), timeout=5) for _ in range(3))
    asking.sendall(b"GET /machine/total_cpu HTTP/1.1\r\n")
    assert ask(server, "/machine/total_cpu")[0] == 200
    assert first.recv(1) == b""
    asking.sendall(b"\r\n")
    assert asking.recv(4096).startswith(b"HTTP/1.1 200 ")
    for one in (asking, first, second):
        one.close()


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
    assert doctest.testmod(drainwise.features.served_key) == (0, 1)
    assert doctest.testmod(drainwise.features.job_token) == (0, 1)


@given(
    st.text(alphabet="ab.%/\\@-_ \0\n?#\u00e9", max_size=20)
    | st.lists(st.sampled_from(["a", "b-1", "~c0ffee", ".b", "a", "b", "..", "%2e"]), max_size=3).map("/".join)
)
def test_whatever_is_asked_a_path_is_plain_names_and_a_key(target: str) -> None:
    path = path_of(f"/{target}/hs06" if target else "/hs06")
    if path is not None:
        *directories, key = path
        assert key in BY_NAME
        assert all(name.strip("~.") and "/" not in name and name.isprintable() for name in directories)
