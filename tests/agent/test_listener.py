"""The agent over HTTP: who is admitted, what each path says, over https, and never the page beyond loopback for all."""

from __future__ import annotations

import base64
import dataclasses
import socket
import ssl
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from drainwise.agent.cycle import Cycle
from drainwise.agent.export.listener import SLACK, AgentAnswers
from drainwise.agent.export.observers import observers_of
from drainwise.agent.export.passwords import read_passwords
from drainwise.agent.settings import AgentSettings
from drainwise.facts.errors import ConfigurationError
from drainwise.requests.request import RequestFiles
from drainwise.siteconfig import SiteConfig, load
from drainwise.siteconfig.export_sections import MetricsSection, PageSection
from own_certificate import own_certificate

from .memory_pool import SETTINGS, AlicesPool
from .test_page_export import after

SECRET = "correct:horse"
SETUP = AgentSettings(AlicesPool(), SETTINGS, True, 60.0, 600.0, "/no/switch", RequestFiles("/no/requests"))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def passwords(tmp_path: Path) -> Path:
    file = tmp_path / "passwords"
    file.write_text(f"# who may look\nadmin:{SECRET}\n")
    file.chmod(0o600)
    return file


def basic(name: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()


def answered(answers: AgentAnswers, path: str, *headers: str, method: str = "GET") -> tuple[int, str]:
    """Status and the rest of an answer."""
    head = "\r\n".join([f"{method} {path} HTTP/1.1", "Host: x", *headers]).encode("latin-1")
    line, _, rest = answers.answer(head).decode().partition("\r\n")
    return int(line.split()[1]), rest


def ended(**more: object) -> Cycle:
    return dataclasses.replace(after(AlicesPool()), **more)  # type: ignore[arg-type]


def test_health_tells_an_agent_that_hangs_and_readiness_one_that_decides_nothing() -> None:
    """Without a password, since they say nothing of anybody."""
    time = [100.0]
    answers = AgentAnswers(None, lambda: time[0])
    answers.cycle_ended(ended())
    assert answered(answers, "/healthz")[0] == answered(answers, "/readyz?x=1")[0] == 200
    answers.cycle_ended(ended(plan=None, fault="no answer", state="backing off"))
    assert answered(answers, "/healthz")[0] == 200
    status, text = answered(answers, "/readyz")
    assert status == 503 and text.endswith("\r\n\r\nbacking off\n")
    time[0] += 60 + SLACK + 1
    assert answered(answers, "/healthz")[0] == 503


def test_a_password_is_wanted_for_all_but_health(passwords: Path) -> None:
    answers = AgentAnswers(read_passwords(str(passwords), "site.ini"))
    answers.exposition = lambda accept: (b"metrics of " + accept.encode(), "text/plain")
    answers.show("<html>", "{}")
    for path in ("/", "/status.json", "/metrics", "/other"):
        status, text = answered(answers, path)
        assert status == 401 and 'WWW-Authenticate: Basic realm="drainwise"' in text
    wrong = (basic("admin", "wrong"), basic("", ""), basic("other", SECRET), "Basic ?", "Bearer x", basic("admin", ""))
    for one in wrong:
        assert answered(answers, "/", f"Authorization: {one}")[0] == 401
    right = f"authorization: {basic('admin', SECRET)}"
    assert answered(answers, "/healthz")[0] in {200, 503}
    status, text = answered(answers, "/", right)
    assert status == 200 and text.endswith("<html>") and "Content-Type: text/html" in text
    assert "Cache-Control: no-store" in text and "X-Frame-Options: DENY" in text
    assert answered(answers, "/status.json", right)[1].endswith("{}")
    assert answered(answers, "/metrics", right, "Accept: a, b")[1].endswith("metrics of a, b")
    assert answered(answers, "/../etc/passwd", right)[0] == 404
    assert answered(answers, "/", right, method="POST")[0] == 501
    assert not answered(answers, "/", right, method="HEAD")[1].endswith("<html>")


@pytest.mark.parametrize(
    ("text", "mode", "expected"),
    [
        ("admin:longenough", 0o644, "mode 0644"),
        ("admin:short", 0o600, "line 1"),
        ("admin", 0o600, "line 1"),
        ("", 0o600, "it has none"),
    ],
)
def test_a_file_of_passwords_that_is_open_or_wrong_is_refused(
    tmp_path: Path, text: str, mode: int, expected: str
) -> None:
    file = tmp_path / "passwords"
    file.write_text(text)
    file.chmod(mode)
    with pytest.raises(ConfigurationError) as fault:
        read_passwords(str(file), "site.ini")
    assert expected in str(fault.value) and "[metrics] passwords = " in str(fault.value)
    assert "short" not in str(fault.value) and "longenough" not in str(fault.value)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("[metrics]\nport = 9877\naddress = 0.0.0.0\n[page]\nserved = yes\n", "passwords and certificate"),
        ("[metrics]\nport = 9877\naddress = ::\npasswords = /x\n", "keys certificate as well"),
        ("[metrics]\nport = 9877\ncertificate = /x\n", "certificate and certificate_key together"),
        ("[page]\nserved = yes\n", "[metrics] port as well"),
        ("[metrics]\naddress = localhost\n", "an IP address"),
    ],
)
def test_what_would_show_it_to_everybody_is_refused_when_the_site_file_is_read(
    tmp_path: Path, text: str, key: str
) -> None:
    site = tmp_path / "site.ini"
    site.write_text(text)
    with pytest.raises(ConfigurationError) as fault:
        load(str(site))
    assert key in fault.value.expected
    site.write_text("[metrics]\nport = 9877\naddress = ::1\n[page]\nserved = yes\n")
    assert load(str(site)).page.served == "yes"


def test_over_https_with_a_password_it_serves_page_and_metrics(tmp_path: Path, passwords: Path) -> None:
    """A certificate that is renewed is served from the next cycle on."""
    port, lines = free_port(), list[str]()
    certificate, key = own_certificate(tmp_path)
    section = MetricsSection(port=port, certificate=certificate, certificate_key=key, passwords=str(passwords))
    site = SiteConfig(metrics=section, page=PageSection(served="yes"))
    observers = observers_of(site, SETUP, "pool", lines.append)
    assert len(observers) == 2
    for observe in observers:
        observe(ended())

    def got(path: str, name: str) -> bytes:
        context = ssl.create_default_context(cafile=certificate)
        request = urllib.request.Request(f"https://127.0.0.1:{port}{path}", headers={"Authorization": name})
        with urllib.request.urlopen(request, timeout=10, context=context) as answer:
            found: bytes = answer.read()
            return found

    assert b"</html>" in got("/", basic("admin", SECRET)) and b"drainwise_deficit" in got(
        "/metrics", basic("admin", SECRET)
    )
    with pytest.raises(urllib.error.HTTPError, match="401"):
        got("/", basic("admin", "wrong"))
    (tmp_path / "new").mkdir()
    for old, new in zip((certificate, key), own_certificate(tmp_path / "new")):
        Path(new).replace(old)
    for observe in observers:
        observe(ended())
    assert got("/healthz", "") == b"ok\n", "only the new certificate is trusted now"
    assert lines == []


def test_a_certificate_that_cannot_be_read_is_refused_at_the_start() -> None:
    section = MetricsSection(port=9877, certificate="/no/cert", certificate_key="/no/key")
    with pytest.raises(ConfigurationError, match=r"\[metrics\] certificate = '/no/cert'"):
        observers_of(SiteConfig(metrics=section), SETUP, "pool", pytest.fail)
