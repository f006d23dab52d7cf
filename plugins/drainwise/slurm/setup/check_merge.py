"""Check that the site's own hooks, flags and limits still count: keys that slurm.conf has several times.

Of a key with one value Slurm takes the last line and says nothing of the others, also where that is in a file that is
included. What the lines of drainwise were merged with is in force; anything else that stood before is lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from drainwise.pool.finding import DANGEROUS, MISSING, OK, Finding
from drainwise.siteconfig import SiteConfig
from drainwise.slurm.setup.check_facts import ClusterFacts
from drainwise.slurm.setup.config_file import ConfigLine
from drainwise.slurm.setup.merge import UNSET, hooks_of
from drainwise.slurm.setup.own_settings import HOOK_KEYS, LISTS, MANAGED, release_of, words_of

RENDER = "drainwise config slurm: it merges the lines of drainwise with the site's own"


def given_twice(facts: ClusterFacts, site: SiteConfig, _: int) -> Iterator[Finding]:
    """Judge each key of ours that stands in slurm.conf more than once, and what was merged before and is gone."""
    rendered = facts.history.rendered_for
    if rendered and release_of(rendered) != facts.release:
        why = f"the lines of drainwise were rendered for Slurm {rendered}: a prolog of the site's may run twice, or not"
        yield Finding(MISSING, "rendered lines", why, RENDER, facts.text("SLURM_VERSION"))
    if facts.history.lines is None:
        why = f"cannot be read here, so keys that it has twice are not seen: {facts.history.unread}"
        yield Finding(OK, "slurm.conf", why)
        return
    if facts.own.unknown:
        why = "the lines of drainwise stand in its place, and what the site had is not known here"
        for key in facts.own.unknown:
            yield Finding(MISSING, key, why, RENDER)
    own_hooks = [value for key in HOOK_KEYS[:2] for value in facts.own.all(key)]
    limit = facts.number("PrologEpilogTimeout")
    if own_hooks and not facts.own.unknown and not facts.own.text("PrologEpilogTimeout") and limit not in {None, UNSET}:
        why = f"the site's own {', '.join(own_hooks)} had no limit, and drains its node when it takes longer than this"
        yield Finding(DANGEROUS, "PrologEpilogTimeout", why, RENDER, str(limit))
    for key in MANAGED:
        found = [line for line in facts.history.lines if line.key == key.lower()]
        if len(found) > 1:
            yield _verdict(key, found, facts, site)


def _verdict(key: str, found: Sequence[ConfigLine], facts: ClusterFacts, site: SiteConfig) -> Finding:
    where = ", ".join(f"{line.place} {key}={line.value}" for line in found)
    if key in HOOK_KEYS and key not in facts.own.one_value:
        twice = sorted({line.value for line in found if [one.value for one in found].count(line.value) > 1})
        if twice:
            why = f"Slurm runs all of them, so what {', '.join(twice)} names runs twice"
            return Finding(MISSING, key, why, RENDER, where)
        return Finding(OK, key, "Slurm runs all of them", value=where)
    lost = [why for line in found[:-1] if (why := _lost(key, line, facts, site))]
    if lost:
        why = f"Slurm takes the last of them: {lost[-1]}"
        return Finding(DANGEROUS, key, why, RENDER, where)
    return Finding(OK, key, "Slurm takes the last of them, and nothing of the others is lost", value=where)


def _lost(key: str, line: ConfigLine, facts: ClusterFacts, site: SiteConfig) -> str:
    """Return what of a line that is not the last is not in force, "" when all of it is."""
    live, value = facts.text(key), line.value
    if value.lower() == live.lower() or value in {"", "(null)", "NONE", "none"}:
        return ""
    if key in HOOK_KEYS:
        handed_over = (key.lower(), value) in facts.history.merged
        by_the_sites = live in facts.own.wrappers and value == hooks_of(site, facts.own)[key].path
        return "" if handed_over or by_the_sites else f"{value} does not run any more"
    if key in LISTS:
        gone = [word for word in words_of(value) if word.lower() not in words_of(live.lower())]
        return f"without {', '.join(gone)}" if gone else ""
    if key == "PrologEpilogTimeout":
        seconds = int(value) if value.isdigit() else 0
        longer = seconds > (facts.number(key) or 0)
        return f"a prolog or epilog of the site's that needs {value} s drains its node" if longer else ""
    return f"{value} is not in force"
