"""The check of `[features] url`, on servers that are there, are not, are others', or have no right certificate."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from drainwise.features.serve import FeatureServer, tls_context
from drainwise.install.features_probe import FeatureServerFacts, features_findings, judge_server, server_facts
from drainwise.pool.finding import DANGEROUS, MISSING, OK
from drainwise.siteconfig import FeaturesSection, SiteConfig
from own_certificate import own_certificate

NOW = 1_800_000_000.0


@contextmanager
def served(root: Path, certificate: tuple[str, str] | None = None) -> Iterator[int]:
    context = tls_context(*certificate) if certificate else None
    with FeatureServer(str(root), "127.0.0.1", 0, context) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


def site(url: str | None) -> SiteConfig:
    return replace(SiteConfig(), features=FeaturesSection(url=url))


def found(url: str, facts: FeatureServerFacts) -> list[tuple[str, str, str]]:
    return [(one.severity, one.why, one.line) for one in judge_server(url, facts, NOW)]


def test_one_that_answers(tmp_path: Path) -> None:
    with served(tmp_path) as port:
        [finding] = features_findings(site(f"http://127.0.0.1:{port}"), (), "here")
    assert (finding.severity, finding.machine, finding.why) == (OK, "here", "it answers, as drainwise")


def test_each_node_is_asked_by_its_name(tmp_path: Path) -> None:
    """One of two is there; the name of the other has no address."""
    with served(tmp_path) as port:
        findings = features_findings(site(f"http://%h:{port}"), ("127.0.0.1", "no-such-host.invalid"), "here")
    assert [(one.machine, one.severity) for one in sorted(findings, key=lambda one: one.machine)] == [
        ("127.0.0.1", DANGEROUS),
        ("127.0.0.1", OK),
        ("no-such-host.invalid", MISSING),
    ]
    [absent] = [one for one in findings if one.machine == "no-such-host.invalid"]
    assert "the jobs there find no features" in absent.why and absent.value == f"http://%h:{port}"


def test_nobody_there() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        [finding] = features_findings(site(f"https://127.0.0.1:{taken.getsockname()[1]}"), (), "here")
    assert finding.severity == MISSING and "Connection refused: the jobs there find no features" in finding.why
    assert finding.line.startswith("systemctl enable --now drainwise-features")


def test_a_certificate_of_an_unknown_authority_or_for_another_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And one that is taken, whose end is read."""
    pair = own_certificate(tmp_path)
    with served(tmp_path, pair) as port:
        url = f"https://127.0.0.1:{port}"
        refused = server_facts(url)
        assert "self" in refused.refused and refused.status == 0
        assert "SSL_CERT_FILE" in found(url, refused)[0][2]
        monkeypatch.setenv("SSL_CERT_FILE", pair[0])
        taken = server_facts(url)
        other = server_facts(f"https://localhost:{port}")
    assert (taken.status, taken.program, taken.refused) == (404, "drainwise", "")
    assert taken.ends is not None and taken.ends > time.time()
    assert "localhost" in other.refused and "one for the name" in found(url, other)[0][2]


@pytest.mark.parametrize(
    ("facts", "severities", "said"),
    [
        (FeatureServerFacts(refused="certificate has expired", code=10), [MISSING], "renew it"),
        (FeatureServerFacts(refused="Hostname mismatch", code=62), [MISSING], "one for the name in the URL"),
        (FeatureServerFacts(status=404, ends=NOW + 3 * 86400), [MISSING, OK], "renew it"),
        (FeatureServerFacts(status=404, ends=NOW + 30 * 86400), [OK], ""),
        (FeatureServerFacts(status=502, program="nginx"), [MISSING], "journalctl"),
        (FeatureServerFacts(status=404, program="nginx"), [OK], ""),
        (FeatureServerFacts(unreachable="no answer within 5 s"), [MISSING], "systemctl enable"),
    ],
)
def test_verdicts(facts: FeatureServerFacts, severities: list[str], said: str) -> None:
    findings = found("https://%h:8443", facts)
    assert [severity for severity, _, _ in findings] == severities and said in findings[0][2]


def test_the_end_of_a_certificate_in_days() -> None:
    [soon, _] = found("https://%h:8443", FeatureServerFacts(status=404, ends=NOW + 36 * 3600))
    assert soon[1] == "its certificate ends in 1.5 days"


def test_without_a_url_nobody_is_asked() -> None:
    assert features_findings(site(None), ("127.0.0.1",), "here") == []
