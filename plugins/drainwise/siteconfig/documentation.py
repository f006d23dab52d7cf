"""The table of keys as documentation: a Markdown table, and a site file in which every key is explained."""

from __future__ import annotations

import textwrap

from drainwise.siteconfig.schema import SECTIONS, keys

_HEAD = """\
# The site file of drainwise. Every key may be left out. A line shows the default, or an example where there is none
# and a key left out means unknown or not wanted. Durations have units (90s, 30m, 1h30m, 7d) and so have sizes (20GB is
# 1000-based, 16GiB 1024-based). A comment begins with # or ;.
"""


def markdown() -> str:
    """One table per section: key, kind, limits, default, meaning."""
    lines: list[str] = []
    for section in SECTIONS:
        lines += [f"### [{section}]", "", "| key | kind | limits | default | meaning |", "|---|---|---|---|---|"]
        for key in keys():
            if key.section == section:
                default = f"`{key.default}`" if key.default else "(left out)"
                lines.append(f"| `{key.name}` | {key.kind.name} | {key.kind.limits} | {default} | {key.meaning} |")
        lines.append("")
    return "\n".join(lines)


def example() -> str:
    """A site file that sets nothing: every key stands there as a comment, with its default or an example."""
    lines = []
    for section, table in SECTIONS.items():
        lines += ["", f"# {(table.__doc__ or '').strip()}", f"[{section}]"]
        for key in keys():
            if key.section == section:
                default = "" if key.default else "; no default"
                wording = f"{key.meaning} ({key.kind.name}: {key.kind.limits}{default})"
                lines += textwrap.wrap(wording, 118, initial_indent="# ", subsequent_indent="# ")
                lines.append(f"#{key.name} = {key.default or key.example}")
    return _HEAD + "\n".join(lines) + "\n"
