"""The agent over HTTP, on this machine alone: metrics for Prometheus, and whether it lives."""

from __future__ import annotations

import dataclasses
import socket
import urllib.request
from pathlib import Path

import pytest

from drainwise.agent.cycle import Cycle
from drainwise.agent.export.observers import SLACK, AgentAnswers, observers_of
from drainwise.agent.settings import AgentSettings
from drainwise.facts.errors import ConfigurationError
from drainwise.requests.request import RequestFiles
from drainwise.siteconfig import SiteConfig, load
from drainwise.siteconfig.schema import MetricsSection

from .memory_pool import SETTINGS, AlicesPool
from .test_page_export import after

SETUP = AgentSettings(AlicesPool(), SETTINGS, True, 60.0, "/no/switch", RequestFiles("/no/requests"))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def metrics_for(accept: str) -> tuple[bytes, str]:
    return b"metrics of " + accept.encode(), "text/plain"


def answered(answers: AgentAnswers, path: str, *headers: str, method: str = "GET") -> tuple[int, str]:
    """Status and the rest of an answer."""
    head = "\r\n".join([f"{method} {path} HTTP/1.1", "Host: x", *headers]).encode("latin-1")
    line, _, rest = answers.answer(head).decode().partition("\r\n")
    return int(line.split()[1]), rest


def ended(**more: object) -> Cycle:
    return dataclasses.replace(after(AlicesPool()), **more)  # type: ignore[arg-type]


def test_health_tells_an_agent_that_hangs_and_readiness_one_that_decides_nothing() -> None:
    time = [100.0]
    answers = AgentAnswers(metrics_for, lambda: time[0])
    answers.cycle_ended(ended())
    assert answered(answers, "/healthz")[0] == answered(answers, "/readyz?x=1")[0] == 200
    answers.cycle_ended(ended(plan=None, fault="no answer", state="backing off"))
    assert answered(answers, "/healthz")[0] == 200
    status, text = answered(answers, "/readyz")
    assert status == 503 and text.endswith("\r\n\r\nbacking off\n")
    time[0] += 60 + SLACK + 1
    assert answered(answers, "/healthz")[0] == 503


def test_it_answers_what_there_is_and_no_more() -> None:
    answers = AgentAnswers(metrics_for)
    status, text = answered(answers, "/metrics", "Accept: a, b")
    assert status == 200 and text.endswith("metrics of a, b")
    assert "Cache-Control: no-store" in text and "X-Frame-Options: DENY" in text
    for path in ("/", "/status.json", "/../etc/passwd"):
        assert answered(answers, path) == (404, answered(answers, "/no")[1])
    assert answered(answers, "/metrics", method="POST")[0] == 501
    assert not answered(answers, "/metrics", method="HEAD")[1].endswith("metrics of ")


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("[metrics]\nport = 9877\naddress = 0.0.0.0\n", "a loopback address"),
        ("[metrics]\nport = 9877\naddress = ::\npasswords = /x\ncertificate = /x\n", "a loopback address"),
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
    site.write_text("[metrics]\nport = 9877\naddress = ::1\n")
    assert load(str(site)).metrics.address == "::1"


def test_metrics_are_served_and_keys_that_went_are_said(tmp_path: Path) -> None:
    port, lines = free_port(), list[str]()
    site = tmp_path / "site.ini"
    site.write_text(f"[metrics]\nport = {port}\npasswords = /x\n[page]\nserved = yes\n")
    observers = observers_of(load(str(site)), SETUP, "pool", lines.append)
    assert [line.partition(": ")[2].partition(" is read no more")[0] for line in lines] == [
        "[metrics] passwords",
        "[page] served",
    ]
    lines.clear()
    [observe] = observers
    observe(ended())
    for path, expected in (("/metrics", b"drainwise_deficit"), ("/healthz", b"ok\n")):
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
            assert expected in answer.read()
    assert lines == [] and observers_of(SiteConfig(metrics=MetricsSection()), SETUP, "pool", pytest.fail) == ()
