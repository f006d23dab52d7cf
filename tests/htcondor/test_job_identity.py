"""Who sent a job of HTCondor: by which attributes, asked how often, and what a user's values cannot do."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping

import classad2
import pytest

from drainwise.facts.errors import PoolUnreachable
from drainwise.htcondor.ads.packed_ads import literals
from drainwise.htcondor.identity import asked
from drainwise.htcondor.identity.asked import Identities
from drainwise.htcondor.identity.attributes import JOB_ATTRIBUTES, identity_in, job_attributes
from drainwise.htcondor.setup.render import drop_in_path, render
from drainwise.identity.identity import PilotIdentity
from drainwise.identity.rules import IdentityRules, rule_of
from drainwise.pool.facts import Pilot, Snapshot
from drainwise.siteconfig import SiteConfig
from drainwise.siteconfig.identity_section import IdentitySection

RULES = IdentityRules()
NOW = int(time.time())
PROXY = {
    "x509UserProxyVOName": "cms",
    "x509UserProxyFirstFQAN": "/cms/Role=pilot/Capability=NULL",
    "x509userproxysubject": "/DC=ch/DC=cern/CN=cmspilot",
    "RoutedFromJobId": "4711.0",
    "GlideinFactory": "OSGGOC",
    "GlideinEntryName": "CMSHTPC_T2_X",
}
TOKEN = {
    "orig_AuthTokenSubject": "7dee38a3",
    "orig_AuthTokenIssuer": "https://atlas-auth.cern.ch/",
    "AuthTokenSubject": "condor@ce",
    "AuthTokenIssuer": "ce",
    "RoutedFromJobId": "12.3",
    "harvesterID": "CERN_central_A",
    "harvesterWorkerID": 991,
}


@pytest.mark.parametrize(
    ("ad", "found"),
    [
        (
            PROXY,
            PilotIdentity(
                "cms",
                "/cms/Role=pilot/Capability=NULL",
                "/DC=ch/DC=cern/CN=cmspilot",
                "",
                "4711.0",
                "OSGGOC",
                "CMSHTPC_T2_X",
            ),
        ),
        (
            TOKEN,
            PilotIdentity(
                "", "", "7dee38a3", "https://atlas-auth.cern.ch/", "12.3", "CERN_central_A", "991"
            ),
        ),
        ({"AuthTokenSubject": "alice", "AuthTokenIssuer": "ap"}, PilotIdentity(subject="alice", issuer="ap")),
        ({"orig_AuthTokenGroups": "/lhcb/pilot,/lhcb"}, PilotIdentity("lhcb", "/lhcb/pilot")),
        ({"orig_AuthTokenGroups": "lhcb"}, PilotIdentity("", "lhcb")),
        ({"orig_AuthTokenGroups": "/"}, PilotIdentity("", "/")),
        ({"harvesterID": 2.5, "RoutedFromJobId": True, "x509UserProxyVOName": ["cms"]}, None),
        ({"harvesterWorkerID": 10**400}, None),
        ({}, None),
    ],
)  # fmt: skip
def test_what_the_attributes_say(ad: dict[str, object], found: PilotIdentity | None) -> None:
    """What the CE kept of a token counts before the access point's own."""
    assert identity_in(ad, RULES) == found


def test_a_rule_says_the_vo_of_a_token() -> None:
    rules = IdentityRules(issuer=rule_of("https://{vo}-auth.cern.ch/{}"))
    found = identity_in(TOKEN, rules)
    assert found is not None and found.vo == "atlas"


def test_without_subjects_none_is_asked_for_or_published() -> None:
    """Neither by nodes nor by the agent, whatever a slot still shows."""
    rules = IdentityRules(with_subject=False)
    assert {name for name in JOB_ATTRIBUTES if "subject" in name.lower()} == set(JOB_ATTRIBUTES) - {
        *job_attributes(rules)
    }
    found = identity_in(PROXY, rules)
    assert found is not None and found.subject == ""
    for subject in ("yes", "no"):
        site = SiteConfig(identity=IdentitySection(subject=subject))
        [text] = [file.text for file in render(site, "execute") if file.path == drop_in_path("execute")]
        [line] = [line for line in text.splitlines() if line.startswith("STARTD_JOB_ATTRS = ")]
        assert line.split()[2] == "$(STARTD_JOB_ATTRS)"
        assert ("Subject" in line or "subject" in line) is (subject == "yes") and "RoutedFromJobId" in line


def test_no_expression_of_a_user_is_evaluated() -> None:
    """One that doubles itself forty times, or is no number of ours, says nothing; the others still do."""
    doubling = "\n".join(f"A{n} = strcat(A{n - 1}, A{n - 1})" for n in range(1, 41))
    ad = classad2.parseOne(
        f'A0 = "x"\n{doubling}\nGlideinFactory = A40\nGlideinEntryName = strcat("a", "b")\nRoutedFromJobId = "1.0"\n'
        'x509UserProxyVOName = "\\/Expr(GlobalJobId)\\/"\nJobStart = 1795249000\n'
    )
    begin = time.process_time()
    found = literals(ad, ("JobStart", *JOB_ATTRIBUTES))
    assert time.process_time() - begin < 0.2
    assert found == {
        "JobStart": 1795249000, "RoutedFromJobId": "1.0", "x509UserProxyVOName": "\\/Expr(GlobalJobId)\\/",
    }  # fmt: skip


def test_a_text_that_is_no_utf_8_hides_itself_alone() -> None:
    class Foreign(dict[str, object]):
        def printJson(self) -> str:  # noqa: N802 - as the bindings call it
            return b"\xff".decode()

        def get(self, name: str, default: object = None) -> object:
            return b"\xff".decode() if name == "GlideinFactory" else super().get(name, default)

    assert literals(Foreign(PROXY), JOB_ATTRIBUTES) == {k: v for k, v in PROXY.items() if k != "GlideinFactory"}


class Collector:
    """Stands for the collector: what it is asked for, and what it answers."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[int] = []
        self.runs: dict[str, PilotIdentity | None] = {}
        self.fault: Exception | None = None
        monkeypatch.setattr(asked, "BoundedCall", lambda _, call, what: self.call(call, what))
        monkeypatch.setattr(asked, "_ask", lambda _, since: since)

    def call(self, call: object, _: str) -> Collector:
        self.asked.append(call())  # type: ignore[operator]
        return self

    def values(self, _: float) -> Iterator[Mapping[str, PilotIdentity | None]]:
        if self.fault is not None:
            raise self.fault
        yield self.runs


def snapshot(*starts: int) -> Snapshot:
    """A pilot for each start."""
    return Snapshot(NOW, tuple(Pilot(f"ce#1.0#1@{at}", "s", "n", "a", "alice", 8, at) for at in starts), ())


def test_who_is_known_is_not_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """First of all runs; then of those that may have begun since, or that were not told."""
    collector, identities = Collector(monkeypatch), Identities(RULES)
    cms, old, new = PilotIdentity(vo="cms"), NOW - 90_000, NOW - 5
    collector.runs = {f"ce#1.0#1@{old}": cms}
    seen = identities.completed(snapshot(old), identities.ask(8.0))
    assert seen.pilots[0].identity == cms and seen.notices == ()
    collector.runs = {}
    seen = identities.completed(snapshot(old, NOW - 40_000), identities.ask(8.0))
    assert [one.identity for one in seen.pilots] == [cms, None]
    identities.completed(snapshot(old, new), identities.ask(8.0))
    identities.ask(8.0)
    assert collector.asked[0] == 0 and collector.asked[2] == NOW - 40_000
    assert all(NOW - 4000 < collector.asked[place] <= time.time() - 1800 for place in (1, 3))


def test_no_answer_costs_no_snapshot(monkeypatch: pytest.MonkeyPatch) -> None:
    """It says so; what was known stays, and the next question is for the same runs."""
    collector, identities = Collector(monkeypatch), Identities(RULES)
    collector.runs = {f"ce#1.0#1@{NOW - 9}": PilotIdentity(vo="cms")}
    identities.completed(snapshot(NOW - 9), identities.ask(8.0))
    collector.fault = PoolUnreachable("the collector did not answer within 8 s")
    seen = identities.completed(snapshot(NOW - 9, NOW - 8), identities.ask(8.0))
    assert [one.identity is not None for one in seen.pilots] == [True, False]
    assert seen.notices == ("who sent the pilots is not known of all: the collector did not answer within 8 s",)
    identities.ask(8.0)
    assert collector.asked[2] == collector.asked[1]
    assert identities.completed(snapshot(), identities.ask(8.0)).notices == ()
