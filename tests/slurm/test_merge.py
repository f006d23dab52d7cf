"""What is added to a configuration with a history: everything that the site has set stays in force."""

from __future__ import annotations

import fnmatch
import re
from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.facts.errors import UsageError
from drainwise.siteconfig import SiteConfig, SlurmSection
from drainwise.slurm.setup.merge import default_hooks, hooks_of, lines_of, names_hook
from drainwise.slurm.setup.own_settings import MANAGED, ConfigLine, Fragment, OwnSettings, fragment_in, own_settings
from drainwise.slurm.setup.render import render

from .recorded_cluster import recorded

SITE = SiteConfig()
NATIVE = SiteConfig(slurm=replace(SlurmSection(), native_preemption="yes"))
RELEASES = ("22.05", "24.11")
OURS = {key: names[0] for key, names in default_hooks(SITE).items()}


def live(release: str, **values: str) -> str:
    """The output of `scontrol show config` of a release, with other values; several of one key with | between."""
    text = recorded(release, "config.txt").decode()
    for key, value in values.items():
        text = re.sub(rf"^{key}(\[\d+\])?\s*=.*\n", "", text, flags=re.MULTILINE)
        several = release != "22.05" and key in {"Prolog", "Epilog"}
        for number, one in enumerate(value.split("|")):
            text += f"{key}[{number}] = {one}\n" if several else f"{key} = {one}\n"
    return text


def own(release: str, **values: str) -> OwnSettings:
    """What the site has set itself, as asked for live."""
    return own_settings(live(release, **values), "test", default_hooks(SITE))


def written(**values: str) -> tuple[ConfigLine, ...]:
    """slurm.conf with these lines."""
    return tuple(ConfigLine("/etc/slurm/slurm.conf", 1, key.lower(), value) for key, value in values.items())


def rendered(settings: OwnSettings, site: SiteConfig = SITE) -> str:
    """The lines of slurm.conf."""
    return render(site, "controller", settings)[-1].text


# ---- hooks ----


def test_a_site_without_hooks_gets_ours_as_they_were() -> None:
    """With limits and flags of its own or none."""
    assert lines_of(SITE, OwnSettings()) == {
        "Prolog": "/etc/slurm/prolog.d/*",
        "Epilog": "/etc/slurm/epilog.d/*",
        "TaskProlog": OURS["TaskProlog"],
        "PrologFlags": "Alloc",
        "PrologEpilogTimeout": "60",
    }


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("key", ["Prolog", "Epilog"])
@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("/etc/slurm/prolog.d/*", "50-drainwise"),
        ("/site/*.sh", "50-drainwise.sh"),
        ("/site/[0-9]*", "50-drainwise"),
        ("/site/S*", "S50-drainwise"),
        ("/site/*.prolog", "50-drainwise.prolog"),
    ],
)
def test_ours_lies_in_the_sites_own_directory(release: str, key: str, pattern: str, name: str) -> None:
    """Nothing is set, so nothing of it can be lost, and nothing runs twice; its name is one that the pattern takes."""
    settings = own(release, **{key: pattern})
    hook = hooks_of(SITE, settings)[key]
    assert (hook.path, hook.value, hook.site) == (f"{pattern.rpartition('/')[0]}/{name}", "", "")
    assert fnmatch.fnmatchcase(name, pattern.rpartition("/")[2])
    assert key not in lines_of(SITE, settings)
    assert names_hook(pattern, hook.path)
    assert f"{key}=" not in [line[: len(key) + 1] for line in rendered(settings).splitlines()]


def test_a_program_of_the_sites_is_called_where_there_can_be_one() -> None:
    """22.05 takes the last Prolog only; the hook of ours that stands there hands over to it."""
    hook = hooks_of(SITE, own("22.05", Prolog="/site/prolog"))["Prolog"]
    assert (hook.path, hook.value, hook.site) == (OURS["Prolog"], OURS["Prolog"], "/site/prolog")


def test_a_program_of_the_sites_stays_beside_ours_where_there_can_be_several() -> None:
    """Of our directory only our file is named: others in it were not run by this site."""
    hook = hooks_of(SITE, own("24.11", Prolog="/site/prolog|/site/second"))["Prolog"]
    assert (hook.path, hook.value, hook.site) == (OURS["Prolog"], OURS["Prolog"], "")


@pytest.mark.parametrize("release", RELEASES)
def test_there_is_one_task_prolog(release: str) -> None:
    """On all releases; ours hands over to it."""
    hook = hooks_of(SITE, own(release, TaskProlog="/site/task prolog"))["TaskProlog"]
    assert (hook.value, hook.site) == (OURS["TaskProlog"], "/site/task prolog")
    [text] = [
        file.text for file in render(SITE, "node", own(release, TaskProlog="/site/task prolog")) if "task" in file.path
    ]
    assert "exec '/site/task prolog'\n" in text


@pytest.mark.parametrize("value", ["/site/*/prolog", "prolog.sh", "/site/?", "/site/\x1b[0m"])
def test_a_hook_that_cannot_be_kept_is_refused(value: str) -> None:
    """On 22.05: a path beside slurm.conf, or a pattern in which no file of ours is sure to be found."""
    with pytest.raises(UsageError, match="this Slurm runs one Prolog only"):
        hooks_of(SITE, OwnSettings(values={"prolog": (value,)}))
    several = OwnSettings(values={"prolog": (value,)}, one_value=frozenset({"TaskProlog"}))
    assert hooks_of(SITE, several)["Prolog"].value == OURS["Prolog"]


@pytest.mark.parametrize("release", RELEASES)
def test_a_wrapper_that_calls_ours_stays(release: str) -> None:
    """And is not called by it."""
    settings = replace(own(release, TaskProlog="/site/wrapper"), wrappers=frozenset({"/site/wrapper"}))
    hook = hooks_of(SITE, settings)["TaskProlog"]
    assert (hook.value, hook.site) == ("", "")
    assert "TaskProlog" not in lines_of(SITE, settings)


# ---- flags and limits ----


@pytest.mark.parametrize(
    ("flags", "line"),
    [
        ("(null)", "Alloc"),
        ("Alloc,Contain,X11", None),
        ("Alloc", None),
        ("RunInJob", None),
        ("Serial", "Serial,Alloc"),
        ("DeferBatch,NoHold", "DeferBatch,NoHold,Alloc"),
    ],
)
@pytest.mark.parametrize("release", RELEASES)
def test_flags_are_merged(release: str, flags: str, line: str | None) -> None:
    """One more word where Alloc is missing, and nothing where it is there or meant by another one."""
    assert lines_of(SITE, own(release, PrologFlags=flags)).get("PrologFlags") == line


@pytest.mark.parametrize(
    ("limit", "prolog", "line"),
    [
        ("120", "(null)", None),
        ("120", "/site/prolog", "140"),  # both run within it
        ("120", "/site/prolog.d/*", None),  # each by itself
        ("65534", "(null)", "60"),
        ("65534", "/site/prolog", None),  # nobody knows how long it takes
        ("5", "(null)", "60"),
        ("5", "/site/prolog", "30"),
    ],
)
def test_the_longer_time_limit_stays(limit: str, prolog: str, line: str | None) -> None:
    """It is never shortened, and only grows where ours would not end within it."""
    found = lines_of(SITE, own("22.05", PrologEpilogTimeout=limit, Prolog=prolog)).get("PrologEpilogTimeout")
    assert found == line


@pytest.mark.parametrize(
    ("limits", "lines"),
    [
        ({"PrologTimeout": "10", "EpilogTimeout": "300"}, {"PrologTimeout": "60"}),
        ({"PrologTimeout": "120", "EpilogTimeout": "5"}, {"EpilogTimeout": "60"}),
        ({"PrologTimeout": "120", "EpilogTimeout": "65534"}, {}),
        ({"PrologEpilogTimeout": "5"}, {"PrologEpilogTimeout": "60"}),
    ],
)
def test_a_limit_grows_by_the_key_that_counts(limits: dict[str, str], lines: dict[str, str]) -> None:
    """Since 25.05 a prolog's own limit and an epilog's stand before the one of both."""
    found = lines_of(SITE, own("24.11", **{"PrologEpilogTimeout": "", **limits}))
    assert {key: value for key, value in found.items() if key.endswith("Timeout")} == lines


@given(st.integers(1, 70000), st.integers(1, 30), st.sampled_from(["", "/site/prolog", "/site/d/*"]), st.booleans())
def test_no_limit_is_ever_shortened(limit: int, ours: int, prolog: str, several: bool) -> None:
    """Whatever the site and the site file say; and ours always ends within it."""
    values = {"prologepilogtimeout": (str(limit),), "prolog": (prolog,) if prolog else ()}
    settings = OwnSettings(values=values, one_value=frozenset({"TaskProlog"} if several else {"Prolog", "TaskProlog"}))
    site = SiteConfig(slurm=replace(SlurmSection(), prolog_time_limit=ours))
    found = int(lines_of(site, settings).get("PrologEpilogTimeout", limit))
    assert found > ours
    assert found >= limit


# ---- the site's own, when ours is live already ----


HISTORIES = [
    {},
    {"Prolog": "/site/prolog", "Epilog": "/site/e.d/*.sh", "TaskProlog": "/site/tp", "PrologFlags": "Serial"},
    {"Prolog": "/etc/slurm/prolog.d/*", "PrologEpilogTimeout": "120", "PrologFlags": "Alloc,Contain,X11"},
    {"Prolog": "/site/prolog", "PrologEpilogTimeout": "5", "PrologFlags": "(null)"},
    {"TaskProlog": "/site/tp", "PrologEpilogTimeout": "65534", "PreemptMode": "GANG"},
]


def installed(release: str, history: dict[str, str], settings: OwnSettings, site: SiteConfig) -> str:
    """What is live when the rendered lines stand behind the site's own."""
    sets = lines_of(site, settings)
    merged = dict(history)
    for key, value in sets.items():
        several = release != "22.05" and key in {"Prolog", "Epilog"} and history.get(key, "(null)") != "(null)"
        merged[key] = f"{history[key]}|{value}" if several else value
    return live(release, **merged)


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("site", [SITE, NATIVE])
@pytest.mark.parametrize("history", HISTORIES)
@pytest.mark.parametrize("known", ["the rendered file", "slurm.conf", "both"])
def test_rendering_again_gives_the_same(release: str, site: SiteConfig, history: dict[str, str], known: str) -> None:
    """From what was rendered before, from slurm.conf, and from both, whichever is there."""
    first = own(release, **history)
    text = rendered(first, site)
    before = {"PrologFlags": "Alloc,Contain", "PrologEpilogTimeout": "60", **history}  # as was recorded
    lines = written(**before) if known != "the rendered file" else None
    fragment = fragment_in(text)
    if known == "slurm.conf":
        fragment = replace(fragment, had=None)
    again = own_settings(installed(release, history, first, site), "test", default_hooks(SITE), [fragment], lines)
    assert again.unknown == ()
    if known != "slurm.conf":
        assert rendered(again, site) == text
    assert lines_of(site, again) == lines_of(site, first)
    assert hooks_of(site, again) == hooks_of(site, first)


@pytest.mark.parametrize("release", RELEASES)
def test_what_nobody_knows_any_more_is_not_guessed(release: str) -> None:
    """Ours is live, slurm.conf cannot be read, and no rendered file is there, or one of an older drainwise."""
    ours = live(release, TaskProlog=OURS["TaskProlog"])
    assert own_settings(ours, "test", default_hooks(SITE)).unknown == ("TaskProlog",)
    old = Fragment({"taskprolog": (OURS["TaskProlog"],)}, None)
    assert own_settings(ours, "test", default_hooks(SITE), [old]).unknown == ("TaskProlog",)
    assert own_settings(ours, "test", default_hooks(SITE), [old], written(TaskProlog="/a")).all("TaskProlog") == ("/a",)


def test_a_directory_named_by_older_lines_is_not_taken_for_the_sites() -> None:
    """On 22.05 it stood in the place of the site's own Prolog; on 24.11 beside it, where both may be the same."""
    old = Fragment({"prolog": ("/etc/slurm/prolog.d/*",)}, None)
    text = live("22.05", Prolog="/etc/slurm/prolog.d/*")
    again = own_settings(text, "test", default_hooks(SITE), [old], written(Prolog="/site/prolog"))
    assert hooks_of(SITE, again)["Prolog"].site == "/site/prolog"
    text = live("24.11", Prolog="/etc/slurm/prolog.d/*|/etc/slurm/prolog.d/*")
    assert own_settings(text, "test", default_hooks(SITE), [old]).all("Prolog") == ("/etc/slurm/prolog.d/*",)


def test_a_hook_that_the_site_has_taken_out_is_named() -> None:
    """It is run no longer, and that is said."""
    first = own("22.05", TaskProlog="/site/tp")
    fragment = fragment_in(rendered(first))
    text = installed("22.05", {"TaskProlog": "/site/tp"}, first, SITE)
    again = own_settings(text, "test", default_hooks(SITE), [fragment], written(KillWait="5"))
    assert again.retired == ("TaskProlog=/site/tp",)
    assert hooks_of(SITE, again)["TaskProlog"].site == ""


def test_what_was_rendered_from_what_is_said() -> None:
    """The file names its source, and all that the site has set of the keys in it."""
    text = rendered(replace(own("22.05", TaskProlog="/site/tp"), source="`scontrol show config` of cluster big"))
    assert "# Merged with `scontrol show config` of cluster big, where the site has set\n" in text
    assert "# had: TaskProlog=/site/tp\n" in text
    assert "Rendered for a new cluster: nobody looked at its configuration." in rendered(OwnSettings())


@pytest.mark.parametrize("value", ["/a\nEVIL=1", "/a\x1b[0m", "/ü"])
def test_what_the_cluster_answers_is_only_a_comment(value: str) -> None:
    """No line of the file is made by another one's text."""
    text = rendered(OwnSettings(source=value, values={"prologflags": ("Alloc",), "preempttype": (value,)}))
    assert text.isascii()
    assert "EVIL=1" not in text.splitlines()


# ---- preemption ----


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, {"PreemptType": "preempt/qos", "PreemptMode": "REQUEUE"}),
        ({"PreemptMode": "GANG"}, {"PreemptType": "preempt/qos", "PreemptMode": "REQUEUE,GANG"}),
        ({"PreemptType": "preempt/qos", "PreemptMode": "CANCEL"}, {}),
        ({"PreemptType": "preempt/qos", "PreemptMode": "OFF"}, {"PreemptMode": "REQUEUE"}),
        ({"PreemptParameters": "youngest_first,send_user_signal"}, {}),
        ({"PreemptParameters": "min_exempt_priority=1000"}, {}),
    ],
)
def test_the_sites_own_preemption_stays(release: str, values: dict[str, str], expected: dict[str, str]) -> None:
    """Its mode is not touched, its parameters get one more word, and an exemption of its own is left."""
    found = {key: value for key, value in lines_of(NATIVE, own(release, **values)).items() if "Preempt" in key}
    parameters = found.pop("PreemptParameters", None)
    if release == "22.05" or "exempt" in values.get("PreemptParameters", ""):
        assert parameters is None
    else:
        before = [values["PreemptParameters"]] if "PreemptParameters" in values else []
        assert parameters == ",".join([*before, "min_exempt_priority=2"])
    if "PreemptParameters" not in values:
        assert found == expected


def test_another_way_to_preempt_is_not_switched_off() -> None:
    """There can be one; the site decides."""
    settings = own("24.11", PreemptType="preempt/partition_prio", PreemptMode="SUSPEND,GANG")
    with pytest.raises(UsageError, match=r"preempt/partition_prio .* set native_preemption = no"):
        lines_of(NATIVE, settings)
    assert not [key for key in lines_of(SITE, settings) if "Preempt" in key]


def test_the_live_release_says_which_lines_it_knows() -> None:
    """The site file's own word counts more."""
    assert "PreemptParameters" in lines_of(NATIVE, own("24.11"))
    assert "PreemptParameters" not in lines_of(NATIVE, own("22.05"))
    told = replace(NATIVE, slurm=replace(NATIVE.slurm, release=Decimal("22.05")))
    assert "PreemptParameters" not in lines_of(told, own("24.11"))


@pytest.mark.parametrize("release", RELEASES)
@given(data=st.data())
def test_nothing_that_the_site_has_is_ever_lost(release: str, data: st.DataObject) -> None:
    """Whatever it has set: each flag, each hook and the time limit are in force when the rendered lines stand last."""
    values = {
        "Prolog": data.draw(st.sampled_from(["(null)", "/site/prolog", "/site/d/*", "/etc/slurm/prolog.d/*"])),
        "Epilog": data.draw(st.sampled_from(["(null)", "/site/epilog", "/site/e/*.sh"])),
        "TaskProlog": data.draw(st.sampled_from(["(null)", "/site/tp", OURS["TaskProlog"]])),
        "PrologFlags": ",".join(data.draw(st.sets(st.sampled_from(["Alloc", "Contain", "X11", "Serial", "NoHold"]))))
        or "(null)",
        "PrologEpilogTimeout": str(data.draw(st.integers(1, 3600))),
    }
    settings = own_settings(live(release, **values), "test", default_hooks(SITE), (), written(**values))
    lines, hooks = lines_of(SITE, settings), hooks_of(SITE, settings)
    assert set(lines) <= set(MANAGED)
    flags = lines.get("PrologFlags", values["PrologFlags"]).split(",")
    assert {*values["PrologFlags"].split(",")} - {"(null)"} <= set(flags)
    for key in ("Prolog", "Epilog", "TaskProlog"):
        kept = key not in lines or (release != "22.05" and key != "TaskProlog")
        assert kept or values[key] in {"(null)", hooks[key].site, OURS[key]}
        assert names_hook(lines.get(key, values[key]), hooks[key].path)
    assert int(lines.get("PrologEpilogTimeout", values["PrologEpilogTimeout"])) >= int(values["PrologEpilogTimeout"])
