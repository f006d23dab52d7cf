"""The site's rules for texts that name a pilot: what they find, what is no rule, and that none takes long."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.facts.errors import ConfigurationError
from drainwise.pool.identity import LONGEST, IdentityRules, PilotIdentity, identity_of, rule_of
from drainwise.siteconfig import load


@pytest.mark.parametrize(
    ("rule", "text", "found"),
    [
        ("vo={vo} job={ce_job}", "vo=atlas job=123.0", {"vo": "atlas", "ce_job": "123.0"}),
        ("vo={vo} job={ce_job}", "vo=atlas", {}),
        ("vo={vo} job={ce_job}", "VO=atlas job=1", {}),
        ("{}vo={vo} {}", "ce=x vo=cms more words", {"vo": "cms"}),
        ("{}vo={vo} {} | {}vo={vo}", "ce=x vo=cms", {"vo": "cms"}),
        ("{vo}_{ce_job}", "CERN_worker_17", {"vo": "CERN", "ce_job": "worker_17"}),
        ("{vo}.sh", "harvester.sh", {"vo": "harvester"}),
        ("{vo}.sh", ".sh", {}),
        ("vo={vo} dn={subject}; {}", "vo=cms dn=/DC=ch/CN=Jane Doe; x", {"vo": "cms"}),
        ("vo={vo} dn={subject}; {}", "vo=cms dn=; x", {}),
        ("{factory}/{entry}", "CERN/w1", {}),
        ("https://{vo}-auth.cern.ch/{}", "https://cms-auth.cern.ch/", {"vo": "cms"}),
        ("https://{vo}-auth.cern.ch/{}", "https://cms-auth.cern.ch", {}),
        ("{vo}/{ce_job} | {vo}", "lhcb", {"vo": "lhcb"}),
        ("{vo}|{ce_job}", "lhcb|5", {"vo": "lhcb", "ce_job": "5"}),
        ("a{vo}a", "aa", {}),
        ("a{vo}a", "aaa", {"vo": "a"}),
        ("vo={vo},{}", "vo= ,x", {}),
    ],
)
def test_what_a_rule_finds(rule: str, text: str, found: dict[str, str]) -> None:
    assert rule_of(rule).values(text) == found


@pytest.mark.parametrize(
    "rule", ["", "vo", "{}", "{vo}{ce_job}", "{vo}{}", "{vo} {vo}", "{voms}", "{vo", "vo}", "{vo} | ", "{{vo}}"]
)
def test_what_is_no_rule_is_refused(rule: str) -> None:
    with pytest.raises(ValueError, match=r"^"):
        rule_of(rule)


def test_more_than_eight_patterns_are_refused() -> None:
    with pytest.raises(ValueError, match="vo"):
        rule_of(" | ".join(["{vo}"] * 9))


@given(st.text(max_size=60), st.sampled_from(["{}a{vo}b{ce_job}", "{vo}=a | {}b{vo}", "{vo}"]))
def test_what_is_found_stands_in_the_text(text: str, rule: str) -> None:
    assert all(value in text for value in rule_of(rule).values(text).values())


def test_no_text_takes_long() -> None:
    """A regular expression of this form would go back and forth for longer than the universe is old."""
    rule = rule_of(" | ".join(["{}a{vo}a{ce_job}a{factory}a{entry}a{subject}b"] * 8))
    texts = ["a" * 10_000_000, "ab" * 5_000_000, "a" * 1000 + "b"]
    for text in texts:
        rule.values(text)


def test_what_the_batch_system_says_comes_before_a_rule() -> None:
    rule = rule_of("https://{vo}.example{}")
    assert identity_of({"vo": "cms"}, (rule, "https://atlas.example/")) == PilotIdentity("cms")
    assert identity_of({"vo": ""}, (None, "x"), (rule, "https://atlas.example/")) == PilotIdentity("atlas")


def site(tmp_path_factory: pytest.TempPathFactory, lines: str) -> IdentityRules:
    path = tmp_path_factory.mktemp("site") / "site.ini"
    path.write_text(f"[identity]\n{lines}\n")
    return load(str(path)).identity.rules()


def test_the_site_file_has_them(tmp_path_factory: pytest.TempPathFactory) -> None:
    rules = site(tmp_path_factory, "comment = vo={vo} {} | {}; {ce_job}  # as our CE writes it")
    assert rules.issuer is None and rules.comment is not None
    assert rules.comment.values("x; 5") == {"ce_job": "5"}
    assert site(tmp_path_factory, "") == IdentityRules()


@pytest.mark.parametrize("written", ["comment = {x}", "comment = (?P<vo>.*)", "issuer = $(id){vo}"])
def test_a_wrong_rule_is_refused_with_what_is_expected(tmp_path_factory: pytest.TempPathFactory, written: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        site(tmp_path_factory, written)
    assert refused.value.section == "identity"
    assert all(f"{{{name}}}" in refused.value.expected for name in LONGEST)
