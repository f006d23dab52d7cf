"""What the check says of keys that slurm.conf has more than once: lost, merged, or run twice."""

from __future__ import annotations

from dataclasses import replace

import pytest

from drainwise.pool.finding import DANGEROUS, MISSING, OK, Finding
from drainwise.siteconfig import SiteConfig
from drainwise.slurm.setup.check import given_twice
from drainwise.slurm.setup.check_facts import ClusterFacts
from drainwise.slurm.setup.own_settings import ClusterHistory, ConfigLine, OwnSettings

SITE = SiteConfig()
OURS = "/usr/libexec/drainwise/slurm-task-prolog"
SEVERAL = frozenset({"TaskProlog"})


def cluster(
    live: str, *lines: str, several: bool = False, own: OwnSettings | None = None, **more: object
) -> ClusterFacts:
    """A cluster with one live setting, and slurm.conf with these lines, the last ones of our file."""
    key, _, value = live.partition("=")
    written = []
    for number, line in enumerate(lines, 1):
        file, _, setting = line.rpartition(" ")
        name, _, what = setting.partition("=")
        written.append(ConfigLine(file or "/etc/slurm/slurm.conf", number, name.lower(), what))
    settings = own or OwnSettings(one_value=SEVERAL if several else OwnSettings().one_value)
    return ClusterFacts({key.lower(): value}, {}, (), (), history=ClusterHistory(settings, tuple(written)))


def knowing(facts: ClusterFacts, **more: object) -> ClusterFacts:
    """The same cluster, of whose history more is known."""
    return replace(facts, history=replace(facts.history, **more))  # type: ignore[arg-type]


def found(facts: ClusterFacts) -> Finding:
    """The one verdict."""
    [one] = given_twice(facts, SITE, 0)
    return one


@pytest.mark.parametrize(
    ("live", "before", "last", "lost"),
    [
        (f"TaskProlog={OURS}", "TaskProlog=/site/tp", f"TaskProlog={OURS}", "/site/tp does not run any more"),
        ("Prolog=/etc/slurm/prolog.d/*", "Prolog=/site/p", "Prolog=/etc/slurm/prolog.d/*", "/site/p does not run"),
        ("PrologFlags=Alloc", "PrologFlags=Alloc,Contain,x11", "PrologFlags=Alloc", "without Contain, x11"),
        (
            "PrologEpilogTimeout=60",
            "PrologEpilogTimeout=90",
            "PrologEpilogTimeout=60",
            "that needs 90 s drains its node",
        ),
        ("PreemptType=preempt/qos", "PreemptType=preempt/partition_prio", "PreemptType=preempt/qos", "is not in force"),
        ("PreemptParameters=a", "PreemptParameters=youngest_first,a", "PreemptParameters=a", "without youngest_first"),
    ],
)
def test_what_is_lost_is_dangerous(live: str, before: str, last: str, lost: str) -> None:
    """And where both lines stand is shown."""
    one = found(cluster(live, before, f"/etc/slurm/drainwise.conf {last}"))
    assert one.severity == DANGEROUS
    assert lost in one.why
    assert one.value == f"/etc/slurm/slurm.conf:1 {before}, /etc/slurm/drainwise.conf:2 {last}"
    assert "drainwise config slurm" in one.line


@pytest.mark.parametrize(
    ("live", "before", "last"),
    [
        ("PrologFlags=Alloc,Contain,X11", "PrologFlags=X11", "PrologFlags=X11,Alloc"),
        ("PrologEpilogTimeout=140 sec", "PrologEpilogTimeout=120", "PrologEpilogTimeout=140"),
        ("Prolog=/site/p", "Prolog=/site/p", "Prolog=/site/p"),
    ],
)
def test_what_is_merged_is_in_order(live: str, before: str, last: str) -> None:
    """The last line has all of the first one."""
    assert found(cluster(live, before, last)).severity == OK


def test_a_hook_that_ours_hands_over_to_is_not_lost() -> None:
    """Known by what is recorded, or by the text of the program."""
    facts = cluster(f"TaskProlog={OURS}", "TaskProlog=/site/tp", f"TaskProlog={OURS}")
    assert found(knowing(facts, merged=frozenset({("taskprolog", "/site/tp")}))).severity == OK
    assert found(knowing(facts, merged=frozenset({("taskprolog", "/site/old")}))).severity == DANGEROUS


def test_ours_is_not_lost_where_the_sites_own_calls_it() -> None:
    """A wrapper stands behind the Include."""
    own = OwnSettings(wrappers=frozenset({"/site/wrapper"}))
    facts = cluster("TaskProlog=/site/wrapper", f"TaskProlog={OURS}", "TaskProlog=/site/wrapper", own=own)
    assert found(facts).severity == OK


def test_several_prologs_all_run() -> None:
    """Where Slurm takes several lines; the same directory in two of them runs twice."""
    assert found(cluster("Prolog=/a /b", "Prolog=/a", "Prolog=/b", several=True)).severity == OK
    twice = found(cluster("Prolog=/a/* /a/*", "Prolog=/a/*", "Prolog=/a/*", several=True))
    assert (twice.severity, "runs twice" in twice.why) == (MISSING, True)


def test_a_limit_where_the_site_had_none_is_dangerous() -> None:
    """Its own prolog may take as long as it does; of a site without prologs nobody is harmed."""
    line = "/etc/slurm/drainwise.conf PrologEpilogTimeout=60"
    own = OwnSettings(values={"prolog": ("/site/p",)})
    one = found(cluster("PrologEpilogTimeout=60", line, own=own))
    assert (one.severity, "/site/p had no limit" in one.why) == (DANGEROUS, True)
    assert list(given_twice(cluster("PrologEpilogTimeout=60", line), SITE, 0)) == []
    with_limit = OwnSettings(values={"prolog": ("/site/p",), "prologepilogtimeout": ("60",)})
    assert list(given_twice(cluster("PrologEpilogTimeout=60", line, own=with_limit), SITE, 0)) == []


def test_what_cannot_be_seen_is_said() -> None:
    """slurm.conf that this user cannot read is no fault; what nobody has recorded is one."""
    hidden = knowing(cluster("Prolog=/a"), lines=None, unread="/etc/slurm/slurm.conf: 'Permission denied'")
    assert (found(hidden).severity, "Permission denied" in found(hidden).why) == (OK, True)
    unknown = found(cluster("Prolog=/a", own=OwnSettings(unknown=("Prolog",))))
    assert (unknown.severity, unknown.what) == (MISSING, "Prolog")


@pytest.mark.parametrize(("rendered", "bad"), [("22.05.8", True), ("24.11.4", False), ("", False)])
def test_lines_for_another_release_are_rendered_again(rendered: str, bad: bool) -> None:
    """What takes one line there takes several here: the site's own would run twice."""
    facts = knowing(cluster("SLURM_VERSION=24.11.5"), rendered_for=rendered)
    assert [one.severity for one in given_twice(facts, SITE, 0)] == ([MISSING] if bad else [])


def test_keys_of_others_are_not_looked_at() -> None:
    """The site may have its reasons."""
    assert list(given_twice(cluster("KillWait=5", "KillWait=30", "KillWait=5", "Prolog=/a"), SITE, 0)) == []
