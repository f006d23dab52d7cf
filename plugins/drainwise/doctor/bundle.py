"""What goes into a bundle for a bug report: facts and verdicts, and nothing that is secret or names a person.

Only what is listed here goes in. It holds no file of the machine, no environment, no token, no password, no journal,
and of the site file only which keys are set, with the values of those kinds that cannot name anybody: numbers,
durations, sizes and choices. This machine, other nodes and homes are named by placeholders.
"""

from __future__ import annotations

import dataclasses
import io
import json
import os
import platform
import re
import tarfile
import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from drainwise.doctor.facts import MachineFacts
from drainwise.doctor.judge import judge, next_step
from drainwise.facts.errors import UsageError
from drainwise.pool.finding import Finding
from drainwise.siteconfig.kinds import keys_of
from drainwise.siteconfig.schema import SECTIONS

if TYPE_CHECKING:
    from drainwise.siteconfig import SiteConfig

_HOMES = re.compile(r"(/home|/users?|/afs|/root|/nfs)(/[^\s,;:'\"()]*)?")
_PLAIN_KINDS = ("duration", "size", "integer", "decimal", "choice")
_SET = "(set)"
LEFT_OUT = "(left out)"


def facts_as_json(facts: MachineFacts, findings: Iterable[Finding], step: str) -> dict[str, object]:
    """Return all facts and verdicts as plain values."""
    return {
        "facts": dataclasses.asdict(facts),
        "findings": [
            {"severity": one.severity, "topic": one.what, "text": one.why, "line": one.line} for one in findings
        ],
        "next": step,
    }


def bundle_texts(facts: MachineFacts, site: SiteConfig | None) -> dict[str, str]:
    """Return the files of a bundle by their names. Pure but for what the system says of itself."""
    known = without_people(facts)
    findings = judge(known)
    shown = Placeholders(facts).of(facts_as_json(known, findings, next_step(findings)))
    system = {name: getattr(platform.uname(), name) for name in ("system", "release", "machine")}
    return {
        "doctor.json": json.dumps(shown, indent=1, sort_keys=True),
        "system.json": json.dumps({**system, "distribution": _distribution()}, indent=1),
        "site.txt": "" if site is None else "\n".join(site_lines(site)) + "\n",
    }


def site_lines(site: SiteConfig) -> Iterable[str]:
    """Yield a line for each key that differs from its default: its value where its kind is plain, else `(set)`."""
    for section, table in SECTIONS.items():
        values = getattr(site, section)
        for key in keys_of(section, table):
            value = getattr(values, key.name)
            if value is None or value == getattr(table(), key.name):
                continue
            is_plain = key.kind.name.startswith(_PLAIN_KINDS)
            yield f"[{section}] {key.name} = {key.kind.show(value) if is_plain else _SET}"
    if site.kinds:
        yield f"{len(site.kinds)} sections [kind NAME]"
    if site.others:
        yield f"{len(site.others)} sections of other packages"


def write_bundle(path: str, texts: Mapping[str, str]) -> None:
    """Write the bundle, readable by its owner alone; raises UsageError where a file stands or none can be written."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as archive:
        for name, text in texts.items():
            content = text.encode("utf-8", "replace")
            entry = tarfile.TarInfo(f"drainwise-doctor/{name}")
            entry.size, entry.mode, entry.mtime = len(content), 0o600, int(time.time())
            archive.addfile(entry, io.BytesIO(content))
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data.getvalue())
    except OSError as fault:
        raise UsageError(f"--bundle {path}: {fault.strerror}") from None


def without_people(facts: MachineFacts) -> MachineFacts:
    """Leave out as whom somebody comes, and what others said in their own words: it may name anybody or anything."""
    batch = tuple(
        dataclasses.replace(
            one,
            rights=None if one.rights is None else dataclasses.replace(one.rights, why=LEFT_OUT, line=""),
            fault=one.fault and LEFT_OUT,
            findings=tuple(
                dataclasses.replace(found, why=LEFT_OUT, line="", value="", machine="") for found in one.findings
            ),
        )
        for one in facts.batch
    )
    return dataclasses.replace(
        facts,
        uid=min(facts.uid, 1),
        batch=batch,
        agent=tuple(dataclasses.replace(one, why=LEFT_OUT, line="") for one in facts.agent),
        site_fault=facts.site_fault and LEFT_OUT,
        faults=tuple(LEFT_OUT for _ in facts.faults),
    )


class Placeholders:
    """Puts words in the place of this machine's name, other nodes' names and homes."""

    def __init__(self, facts: MachineFacts) -> None:
        nodes = dict.fromkeys(node.name for one in facts.batch for node in one.nodes)
        self._names = {facts.host: "HOST"}
        for number, node in enumerate((one for one in nodes if one != facts.host), 1):
            self._names[node] = f"NODE{number}"
        for name, placeholder in [*self._names.items()]:
            self._names.setdefault(name.partition(".")[0], placeholder)
        self._pattern = re.compile(
            "|".join(rf"\b{re.escape(one)}\b" for one in sorted(self._names, key=len)[::-1] if one)
        )

    def text(self, text: str) -> str:
        """Return the text with placeholders."""
        named = self._pattern.sub(lambda found: self._names[found[0]], text)
        return _HOMES.sub(r"\1/…", named)

    def of(self, value: Any) -> Any:
        """Return plain values with placeholders in all their texts."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {name: self.of(part) for name, part in value.items()}
        return [self.of(part) for part in value] if isinstance(value, (list, tuple)) else value


def _distribution() -> str:
    try:
        with open("/etc/os-release", encoding="utf-8") as stream:
            rows = dict(line.rstrip("\n").split("=", 1) for line in stream if "=" in line)
    except (OSError, UnicodeDecodeError, ValueError):
        return ""
    return rows.get("PRETTY_NAME", "").strip('"')
