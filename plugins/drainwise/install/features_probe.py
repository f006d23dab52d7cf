"""Whether the servers of `[features] url` answer as jobs would ask them: reachable, certificate, who answers."""

from __future__ import annotations

import errno
import socket
import ssl
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from urllib.parse import urlsplit

from drainwise.common.bounded_call import each_within
from drainwise.facts.errors import FeatureError, PoolError
from drainwise.features.read_http import ask
from drainwise.install.templates import HOST, LOOPBACK
from drainwise.pool.finding import DANGEROUS, MISSING, OK, Finding, judged
from drainwise.siteconfig.schema import SiteConfig

WHAT = "[features] url"

_SECONDS = 5.0
_START = "systemctl enable --now drainwise-features   (see docs/features.md)"
_SOON = 14 * 86400
_EXPIRED, _OTHER_NAME = 10, 62  # X509_V_ERR_CERT_HAS_EXPIRED, X509_V_ERR_HOSTNAME_MISMATCH


@dataclass(frozen=True)
class FeatureServerFacts:
    """What a server answered. `unreachable`, `refused`: why there is no answer, and why its certificate is none to us.

    code: the verification's error. ends: when the certificate does, UNIX s. status: of http. program: who answered.
    """

    unreachable: str = ""
    refused: str = ""
    code: int = 0
    ends: float | None = None
    status: int = 0
    program: str = ""


def features_findings(site: SiteConfig, nodes: Sequence[str], here: str) -> list[Finding]:
    """Ask the server of each of `nodes`, or the one that the URL names; none where the site has no URL.

    here: the name of this machine.
    """
    url = site.features.url
    if url is None:
        return []
    machines = list(nodes) if HOST in url else [here]
    calls = [partial(server_facts, url.replace(HOST, machine)) for machine in machines]
    findings: list[Finding] = []
    for place, answer in each_within(_SECONDS, calls, "the server"):
        facts = FeatureServerFacts(unreachable=str(answer)) if isinstance(answer, PoolError) else answer
        findings += judged(machines[place], (judge_server,), url, facts, time.time())
    return findings


def server_facts(url: str) -> FeatureServerFacts:
    """Ask the server at `url` once, as a job would."""
    parts, ends = urlsplit(url), None
    try:
        if parts.scheme == "https":
            ends = _end_of_certificate(parts.hostname or "", parts.port or 443)
        answer = ask(url, {}, _SECONDS)
    except ssl.SSLCertVerificationError as fault:
        return FeatureServerFacts(refused=fault.verify_message, code=fault.verify_code)
    except socket.gaierror as fault:
        return FeatureServerFacts(unreachable=f"no address: {fault.strerror}")
    except FeatureError as fault:
        return FeatureServerFacts(unreachable=str(fault).partition(": ")[2])
    except OSError as fault:
        known = fault.strerror if fault.errno != errno.ETIMEDOUT else None
        return FeatureServerFacts(unreachable=known or f"no answer within {_SECONDS:g} s")
    return FeatureServerFacts(ends=ends, status=answer.status, program=answer.headers.get("Server", ""))


def _end_of_certificate(host: str, port: int) -> float | None:
    """Return when the server's certificate ends, UNIX s. Raises OSError, SSLCertVerificationError where it is none."""
    context = ssl.create_default_context()
    plain = socket.create_connection((host, port), _SECONDS)
    with plain, context.wrap_socket(plain, server_hostname=host) as connection:
        ends = (connection.getpeercert() or {}).get("notAfter")
    return ssl.cert_time_to_seconds(ends) if isinstance(ends, str) else None


def judge_server(url: str, facts: FeatureServerFacts, now: float) -> Iterator[Finding]:
    """Yield the verdicts on one server at `now`, UNIX s. url: as the site file has it."""
    if facts.unreachable:
        line = "a name in DNS" if facts.unreachable.startswith("no address") else _START
        why = f"{facts.unreachable}: the jobs there find no features"
        yield Finding(MISSING, WHAT, why, line, url)
        return
    if facts.refused:
        why = f"its certificate is not accepted here: {facts.refused}; the jobs' programs do as this one"
        yield Finding(MISSING, WHAT, why, _mended(facts.code), url)
        return
    if facts.status >= 500:
        yield Finding(MISSING, WHAT, f"it answers {facts.status}", "journalctl -u drainwise-features", url)
        return
    if facts.ends is not None and facts.ends - now < _SOON:
        why = f"its certificate ends in {max(0.0, facts.ends - now) / 86400:.1f} days"
        yield Finding(MISSING, WHAT, why, "renew it; systemctl restart drainwise-features", url)
    parts = urlsplit(url.replace(HOST, "node"))
    if parts.scheme == "http" and parts.hostname not in LOOPBACK:
        why = "without https whoever sees the packets can read the jobs' tokens"
        yield Finding(DANGEROUS, WHAT, why, f"url = https{url[len('http') :]}", url)
    yield Finding(OK, WHAT, f"it answers, as {facts.program}" if facts.program else "it answers", value=url)


def _mended(code: int) -> str:
    if code == _EXPIRED:
        return "renew it; systemctl restart drainwise-features"
    if code == _OTHER_NAME:
        return "[features] certificate: one for the name in the URL"
    return "SSL_CERT_FILE or SSL_CERT_DIR with its authority, here and in the jobs' environment"
