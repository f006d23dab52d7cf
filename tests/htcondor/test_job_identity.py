"""Who sent a job of HTCondor: by which attributes, asked how often, and what a user's values cannot do."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import classad2
import pytest

from drainwise.facts.errors import PoolUnreachable
from drainwise.htcondor.ads.query import literals
from drainwise.htcondor.pool import identity as asked
from drainwise.htcondor.pool.identity import (
    CHECKPOINTED,
    NOT_TOLD,
    OF_CREDENTIALS,
    OF_SUBMITTERS,
    Identities,
    JobsTold,
    checkpoints_in,
    constraint,
    identity_in,
)
from drainwise.pool.facts import Pilot, Snapshot
from drainwise.pool.identity import IdentityRules, PilotIdentity, rule_of

RULES = IdentityRules()
ATTRIBUTES = (*OF_CREDENTIALS, *OF_SUBMITTERS)
NOW = int(time.time())
PROXY = {
    "x509UserProxyVOName": "cms",
    "x509UserProxyFirstFQAN": "/cms/Role=pilot/Capability=NULL",
    "RoutedFromJobId": "4711.0",
}
TOKEN = {
    "orig_AuthTokenIssuer": "https://atlas-auth.cern.ch/",
    "AuthTokenIssuer": "ce",
    "RoutedFromJobId": "12.3",
}


@pytest.mark.parametrize(
    ("ad", "found"),
    [
        (PROXY, PilotIdentity("cms", "4711.0")),
        (TOKEN, PilotIdentity(ce_job="12.3")),
        ({"AuthTokenIssuer": "ap", "RoutedFromJobId": 7}, PilotIdentity(ce_job="7")),
        ({"orig_AuthTokenGroups": "/lhcb/pilot,/lhcb", "AuthTokenGroups": "/cms"}, PilotIdentity("lhcb")),
        ({"orig_AuthTokenGroups": "lhcb"}, None),
        ({"orig_AuthTokenGroups": "/"}, None),
        ({"RoutedFromJobId": True, "x509UserProxyVOName": ["cms"]}, None),
        ({"RoutedFromJobId": 10**400}, None),
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


@pytest.mark.parametrize(
    ("value", "is_plain"),
    [
        ('"OSGGOC"', True),
        ('"/DC=ch/CN=J. \\"Doe\\""', False),
        ('"a\\\\b\\033c"', True),
        ("17", True),
        ('"' + "x" * 300 + '"', True),
        ('"' + "x" * 301 + '"', False),
        ('"' + "x" * 1_000_000 + '"', False),
        ("A40", False),
        ('"a" + A40', False),
        ('"a" + "b"', False),
        ('strcat("a", "b")', False),
        ("2.5", False),
        ("undefined", False),
        ('{ "a" }', False),
    ],
    ids=range(14),
)
def test_only_short_texts_and_numbers_are_handed_out(value: str, is_plain: bool) -> None:
    """By HTCondor's own ClassAds, in an instant also where an expression doubles itself."""
    doubling = "\n".join(f"A{n} = strcat(A{n - 1}, A{n - 1})" for n in range(1, 41))
    ad = classad2.parseOne(
        f'A0 = "x"\n{doubling}\nJobStatus = 2\nJobCurrentStartDate = {NOW}\norig_AuthTokenGroups = {value}\n'
    )
    asked_for = constraint(("RoutedFromJobId", "orig_AuthTokenGroups"), NOW - 5)
    assert classad2.ExprTree(asked_for).eval(ad) is is_plain
    assert classad2.ExprTree(constraint(("orig_AuthTokenGroups",), NOW + 5)).eval(ad) is False


def test_no_expression_of_a_user_is_evaluated() -> None:
    """One that doubles itself forty times, or is no number of ours, says nothing; the others still do."""
    doubling = "\n".join(f"A{n} = strcat(A{n - 1}, A{n - 1})" for n in range(1, 41))
    ad = classad2.parseOne(
        f'A0 = "x"\n{doubling}\nAuthTokenGroups = A40\norig_AuthTokenIssuer = strcat("a", "b")\n'
        'RoutedFromJobId = "1.0"\n'
        'x509UserProxyVOName = "\\/Expr(GlobalJobId)\\/"\nJobStart = 1795249000\n'
    )
    found = literals(ad, ("JobStart", *ATTRIBUTES))
    assert found == {
        "JobStart": 1795249000, "RoutedFromJobId": "1.0", "x509UserProxyVOName": "\\/Expr(GlobalJobId)\\/",
    }  # fmt: skip


def test_a_text_that_is_no_utf_8_hides_itself_alone() -> None:
    class Foreign(dict[str, object]):
        def printJson(self) -> str:  # noqa: N802 - as the bindings call it
            return b"\xff".decode()

        def get(self, name: str, default: object = None) -> object:
            return b"\xff".decode() if name == "RoutedFromJobId" else super().get(name, default)

    assert literals(Foreign(PROXY), ATTRIBUTES) == {k: v for k, v in PROXY.items() if k != "RoutedFromJobId"}


class AccessPoints:
    """Stand for the access points: from when on each is asked, and what they tell."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[dict[str, int]] = []
        self.told = JobsTold()
        self.fault: Exception | None = None
        monkeypatch.setattr(asked, "BoundedCall", lambda _, call, what: self.call(call, what))
        monkeypatch.setattr(asked, "_ask", lambda rules, attributes, since, seconds: since)

    def call(self, call: Callable[[], dict[str, int]], _: str) -> AccessPoints:
        self.asked.append(call())
        return self

    def values(self, _: float) -> Iterator[JobsTold]:
        if self.fault is not None:
            raise self.fault
        yield self.told


CMS = PilotIdentity(vo="cms")
OLD, NEW = NOW - 90_000, NOW - 5


def snapshot(*pilots: tuple[str, int]) -> Snapshot:
    """Pilots, each of a job with its start."""
    return Snapshot(NOW, tuple(Pilot(f"{job}@{at}", "s", "n", "a", "alice", 8, at) for job, at in pilots), ())


def test_who_is_known_is_not_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """First for all jobs; then for those that may have begun since, or that were not told though they are young."""
    points, identities = AccessPoints(monkeypatch), Identities(RULES)
    points.told = JobsTold({"ce#1.0#1": CMS}, {}, frozenset({"ce"}))
    seen = identities.completed(snapshot(("ce#1.0#1", OLD), ("ce#2.0#1", OLD)), identities.ask(8.0))
    assert [one.identity for one in seen.pilots] == [CMS, None] and seen.notices == ()
    points.told = JobsTold({}, {}, frozenset({"ce"}))
    seen = identities.completed(snapshot(("ce#1.0#1", OLD), ("ce#2.0#1", OLD), ("ce#3.0#1", NEW)), identities.ask(8.0))
    assert [one.identity for one in seen.pilots] == [CMS, None, None]
    identities.ask(8.0)
    assert points.asked[0] == {}
    assert NOW - 1900 < points.asked[1]["ce"] <= time.time() - 1800
    assert points.asked[2] == {"ce": NEW - 1800}
    assert identities.known == {"ce#1.0#1": CMS, "ce#2.0#1": None}


def test_what_is_known_stands_with_the_pilot_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its next run is the same job's; who has gone is forgotten."""
    points, identities = AccessPoints(monkeypatch), Identities(RULES)
    points.told = JobsTold({"ce#1.0#1": CMS, "ce#9.0#1": CMS}, {}, frozenset({"ce"}))
    identities.completed(snapshot(("ce#1.0#1", OLD)), identities.ask(8.0))
    assert identities.known == {"ce#1.0#1": CMS}
    points.told = JobsTold({}, {}, frozenset({"ce"}))
    assert identities.completed(snapshot(("ce#1.0#1", NEW)), identities.ask(8.0)).pilots[0].identity == CMS
    identities.completed(snapshot(("ce#2.0#1", OLD)), identities.ask(8.0))
    assert identities.known == {"ce#2.0#1": None}


def test_an_access_point_that_is_silent_is_named_and_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    points, identities = AccessPoints(monkeypatch), Identities(RULES)
    points.told = JobsTold({"a#1.0#1": CMS}, {}, frozenset({"a"}), {"b": "it did not answer within 4 s"})
    seen = identities.completed(snapshot(("a#1.0#1", OLD), ("b#1.0#1", OLD)), identities.ask(8.0))
    assert [one.identity for one in seen.pilots] == [CMS, None]
    assert seen.notices == ("who sent the pilots is not known of all: b: it did not answer within 4 s",)
    identities.ask(8.0)
    assert points.asked[1].keys() == {"a"}, "b is asked for all of its jobs"


def test_a_pilot_is_not_ordered_before_its_job_was_told_to_the_scope(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was told stays; a job that its access point does not have, or has without such a value, fits none."""
    points, identities = AccessPoints(monkeypatch), Identities(RULES, ("Queue",))
    traits: dict[str, tuple[tuple[str, tuple[str, ...]], ...]] = {"a#1.0#1": (("job.Queue", ("low",)),)}
    points.told = JobsTold({"a#1.0#1": CMS}, traits, frozenset({"a"}), {"b": "it did not answer within 4 s"})
    pilots = ("a#1.0#1", OLD), ("a#2.0#1", OLD), ("a#3.0#1", NEW), ("b#1.0#1", OLD)
    seen = identities.completed(snapshot(*pilots), identities.ask(8.0))
    assert [one.cannot for one in seen.pilots] == ["", "", NOT_TOLD, NOT_TOLD]
    assert [one.traits for one in seen.pilots] == [traits["a#1.0#1"], (), (), ()]
    points.fault = PoolUnreachable("the access points did not answer within 8 s")
    again = identities.completed(snapshot(*pilots[:1]), identities.ask(8.0))
    assert (again.pilots[0].traits, again.pilots[0].cannot) == (traits["a#1.0#1"], "")


def test_no_answer_costs_no_snapshot(monkeypatch: pytest.MonkeyPatch) -> None:
    """It says so; what was known stays, and the next question is for the same jobs."""
    points, identities = AccessPoints(monkeypatch), Identities(RULES)
    points.told = JobsTold({"ce#1.0#1": CMS}, {}, frozenset({"ce"}))
    identities.completed(snapshot(("ce#1.0#1", OLD)), identities.ask(8.0))
    points.fault = PoolUnreachable("the access points did not answer within 8 s")
    seen = identities.completed(snapshot(("ce#1.0#1", OLD), ("ce#2.0#1", NEW)), identities.ask(8.0))
    assert [one.identity for one in seen.pilots] == [CMS, None]
    assert seen.notices == (
        "who sent the pilots is not known of all: the access points did not answer within 8 s",
    )  # fmt: skip
    identities.ask(8.0)
    assert points.asked[2] == points.asked[1]
    assert identities.completed(snapshot(), identities.ask(8.0)).notices == ()


@pytest.mark.parametrize(
    ("changed", "found"),
    [
        pytest.param({}, (OLD + 100, OLD + 130), id="each 30 s, and one more that was only sent"),
        pytest.param({"TransferOutFinished": None}, (OLD + 90, OLD + 120), id="no transfer is known: the first run"),
        pytest.param({"TransferOutFinished": None, "NumJobStarts": 2}, None, id="committed by an earlier run"),
        pytest.param({"TransferOutFinished": OLD - 9, "NumJobStarts": 2}, None, id="sent by an earlier run"),
        pytest.param({"NumJobStarts": 2, "CommittedTime": 99_999}, (OLD + 100, OLD + 33_433), id="its owner edits"),
        pytest.param({"CheckpointNumber": None}, None, id="it does not checkpoint"),
        pytest.param({"CommittedTime": "90"}, (OLD + 100, None), id="of the wrong kind"),
        pytest.param({"CommittedTime": -90}, (OLD + 100, None), id="less than nothing"),
        pytest.param({"JobCurrentStartDate": None}, None, id="it does not run"),
    ],
)
def test_when_a_job_was_last_saved(changed: dict[str, object], found: tuple[int, int | None] | None) -> None:
    """Seen on 23.9.6 and 25.14.1: TransferOutFinished comes with each checkpoint, the others may lack the last ones."""
    said = {"JobCurrentStartDate": OLD, "TransferOutFinished": OLD + 100, "CommittedTime": 90, "CheckpointNumber": 2}
    ad = {name: value for name, value in {**said, "NumJobStarts": 1, **changed}.items() if value is not None}
    assert checkpoints_in(ad) == found


def test_what_a_job_saved_stands_with_its_run_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """It stays when the access point is silent; of the next run, which began after it, it says nothing."""
    points, identities = AccessPoints(monkeypatch), Identities(RULES)
    points.told = JobsTold({}, {}, frozenset({"ce"}), saved={"ce#1.0#1": (OLD + 90, OLD + 120)})
    seen = identities.completed(snapshot(("ce#1.0#1", OLD), ("ce#2.0#1", OLD)), identities.ask(8.0))
    assert [(one.saved, one.next_save) for one in seen.pilots] == [(OLD + 90, OLD + 120), (None, None)]
    points.fault = PoolUnreachable("the access points did not answer within 8 s")
    seen = identities.completed(snapshot(("ce#1.0#1", OLD)), identities.ask(8.0))
    assert seen.pilots[0].saved == OLD + 90
    assert identities.completed(snapshot(("ce#1.0#1", NEW)), identities.ask(8.0)).pilots[0].saved is None


@pytest.mark.parametrize(("said", "is_asked"), [("0", True), ("12", True), (None, False), ("strcat(A, A)", False)])
def test_only_jobs_that_checkpoint_are_asked_for(said: str | None, is_asked: bool) -> None:
    """By the writing of their attributes alone, which evaluates nothing."""
    own = "" if said is None else f"CheckpointNumber = {said};"
    ad = classad2.ClassAd(f'[JobStatus = 2; JobCurrentStartDate = {OLD}; A = "x"; {own}]')
    assert ad.eval("JobStatus") == 2
    ad["Asked"] = classad2.ExprTree(CHECKPOINTED)
    assert ad.eval("Asked") is is_asked
