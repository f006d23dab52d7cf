"""docs/use-cases.md as its tests read it: the shell lines under each use case."""

from __future__ import annotations

import re
from pathlib import Path

DOCUMENT = (Path(__file__).parents[1] / "docs" / "use-cases.md").read_text(encoding="utf-8")


def lines_of(case: int) -> str:
    """The shell lines under the heading that names this use case, all fences together; KeyError when there are none."""
    for heading, text in re.findall(r"^### ([\d, ]+)\.(.*?)(?=^##|\Z)", DOCUMENT, re.DOTALL | re.MULTILINE):
        if str(case) in heading.split(", "):
            fences = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
            if fences:
                return "".join(fences)
    raise KeyError(f"docs/use-cases.md has no shell lines for use case {case}")


def commands_of(case: int, program: str) -> list[str]:
    """Of those lines the ones that begin with `program`."""
    return [line for line in lines_of(case).splitlines() if line.startswith(f"{program} ")]
