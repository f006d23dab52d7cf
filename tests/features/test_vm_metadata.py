"""A virtual machine finds its features by its cloud's metadata, which is asked once."""

from __future__ import annotations

import http.server
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from drainwise.cli.main import main
from drainwise.facts.errors import FeatureError
from drainwise.features.virtual_machine import find_locations
from drainwise.features.write import write_directory

FOUND = {"MACHINEFEATURES": "https://n1:8443/machine", "JOBFEATURES": "https://n1:8443/job"}
PROPERTIES = {"machinefeatures": FOUND["MACHINEFEATURES"], "jobfeatures": FOUND["JOBFEATURES"], "other": "x"}


class Cloud(http.server.ThreadingHTTPServer):
    """Answers what stands in `texts` by path; keeps what it was asked. `session`: the token that EC2 wants."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.asked: list[str] = []
        self.session: str | None = None
        super().__init__(("127.0.0.1", 0), Answers)

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.server_address[1]}"


class Answers(http.server.BaseHTTPRequestHandler):
    server: Cloud

    def do_GET(self) -> None:
        session = self.server.session
        text = self.server.texts.get(self.path)
        if "openstack" in self.path or self.headers.get("X-aws-ec2-metadata-token") == session:
            self.answer(404 if text is None else 200, text or "")
        else:
            self.answer(401, "")

    def do_PUT(self) -> None:
        wanted = self.path == "/latest/api/token" and self.headers.get("X-aws-ec2-metadata-token-ttl-seconds")
        self.answer(200 if wanted and self.server.session else 404, self.server.session or "")

    def answer(self, status: int, text: str) -> None:
        self.server.asked.append(f"{self.command} {self.path}")
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class has this name
        return


@pytest.fixture
def cloud() -> Iterator[Cloud]:
    with Cloud() as cloud:
        thread = threading.Thread(target=cloud.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield cloud
        cloud.shutdown()
        thread.join()


def find(cloud: Cloud, place: Path, number: str = "4711") -> dict[str, str]:
    """Find the locations in a machine of this number."""
    (place / "number").write_text(f"{number}\n")
    return find_locations(cloud.url, str(place / "kept/location"), str(place / "number"))


def openstack(cloud: Cloud, properties: object) -> None:
    cloud.texts["/openstack/latest/meta_data.json"] = json.dumps({"uuid": "1", "meta": properties})


def test_openstack_has_them_among_the_properties(cloud: Cloud, tmp_path: Path) -> None:
    openstack(cloud, PROPERTIES)
    assert find(cloud, tmp_path) == FOUND
    assert cloud.asked == ["GET /openstack/latest/meta_data.json"]


@pytest.mark.parametrize("place", ["", "tags/instance/"])
@pytest.mark.parametrize("session", [None, "SECRET=="])
def test_ec2_has_them_as_keys_or_as_tags(cloud: Cloud, tmp_path: Path, place: str, session: str | None) -> None:
    cloud.session = session
    for key in ("machinefeatures", "jobfeatures"):
        cloud.texts[f"/latest/meta-data/{place}{key}"] = PROPERTIES[key] + "\n"
    assert find(cloud, tmp_path) == FOUND


def test_the_cloud_is_asked_once(cloud: Cloud, tmp_path: Path) -> None:
    """Also where it has nothing; a copy of the disk in another machine asks anew."""
    assert find(cloud, tmp_path) == {}
    asked = len(cloud.asked)
    openstack(cloud, PROPERTIES)
    assert find(cloud, tmp_path) == {}
    assert len(cloud.asked) == asked
    assert find(cloud, tmp_path, "4712") == FOUND
    assert find(cloud, tmp_path, "4712") == FOUND
    assert len(cloud.asked) == asked + 1


def test_what_others_may_have_kept_is_not_believed(cloud: Cloud, tmp_path: Path) -> None:
    openstack(cloud, PROPERTIES)
    find(cloud, tmp_path)
    kept = tmp_path / "kept/location"
    kept.write_text(json.dumps({"machine": "4711", "JOBFEATURES": "/tmp/mine"}))
    assert find(cloud, tmp_path) == {"JOBFEATURES": "/tmp/mine"}
    kept.chmod(0o666)
    assert find(cloud, tmp_path) == FOUND


@pytest.mark.parametrize("text", ["", "[]", "{", '{"meta": 7}', "[" * 99999])
def test_a_cloud_that_answers_something_else_is_an_error(cloud: Cloud, tmp_path: Path, text: str) -> None:
    cloud.texts["/openstack/latest/meta_data.json"] = text
    with pytest.raises(FeatureError, match=r"expected the JSON text|cut off"):
        find(cloud, tmp_path)


@pytest.mark.parametrize("value", ["", "n1:8443/job", "ftp://n1/job", 7])
def test_what_is_no_location_is_an_error_and_not_kept(cloud: Cloud, tmp_path: Path, value: object) -> None:
    openstack(cloud, {"jobfeatures": value})
    with pytest.raises(FeatureError, match="metadata key jobfeatures"):
        find(cloud, tmp_path)
    openstack(cloud, PROPERTIES)
    assert find(cloud, tmp_path) == FOUND


def test_no_cloud_is_an_error_that_is_not_kept(cloud: Cloud, tmp_path: Path) -> None:
    with pytest.raises(FeatureError):
        find_locations("http://127.0.0.1:1", str(tmp_path / "kept/location"), str(tmp_path / "number"))
    openstack(cloud, PROPERTIES)
    assert find(cloud, tmp_path) == FOUND


def test_locate_prints_lines_for_a_shell(cloud: Cloud, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    openstack(cloud, {"jobfeatures": "/srv/job's"})
    words = ["features", "locate", "--metadata", cloud.url, "--kept"]
    assert main([*words, str(tmp_path / "kept")]) == 0
    assert capsys.readouterr().out == "export JOBFEATURES='/srv/job'\"'\"'s'\n"
    openstack(cloud, {})
    assert main([*words, str(tmp_path / "other")]) == 1
    assert capsys.readouterr().out == ""


def test_a_command_finds_its_directories_by_the_metadata(
    cloud: Cloud, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What the environment names counts first."""
    monkeypatch.setattr(
        "drainwise.features.virtual_machine.find_locations.__defaults__",
        ("", str(tmp_path / "kept"), str(tmp_path / "number")),
    )
    write_directory(str(tmp_path / "job"), {"allocated_cpu": "8"})
    write_directory(str(tmp_path / "own"), {"allocated_cpu": "4"})
    openstack(cloud, {"jobfeatures": str(tmp_path / "job")})
    for name in ("MACHINEFEATURES", "JOBFEATURES"):
        monkeypatch.delenv(name, raising=False)
    assert main(["features", "threads"]) == 2
    assert "JOBFEATURES is not set" in capsys.readouterr().err
    assert main(["features", "threads", "--metadata", cloud.url]) == 0
    assert capsys.readouterr().out == "8\n"
    monkeypatch.setenv("JOBFEATURES", str(tmp_path / "own"))
    assert main(["features", "threads", "--metadata", cloud.url]) == 0
    assert capsys.readouterr().out == "4\n"
    assert os.path.exists(tmp_path / "kept")
