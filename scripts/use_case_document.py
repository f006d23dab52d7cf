"""docs/use-cases.md as its tests read it: the shell lines under each use case."""

from __future__ import annotations

import re
from pathlib import Path

DOCUMENT = (Path(__file__).parents[1] / "docs" / "use-cases.md").read_text(encoding="utf-8")


def lines_of(case: int) -> str:
    """The shell lines under the heading that names this use case, without those of a command of a job's own."""
    return "".join(fence for fence in _fences(case) if "drainwise features " not in fence)


def job_command(case: int) -> str:
    """The line under that heading by which a job asks with a command of ours."""
    [fence] = [fence for fence in _fences(case) if "drainwise features " in fence]
    return fence.partition("  #")[0].strip()


def _fences(case: int) -> list[str]:
    """The shell lines under the heading that names this use case; KeyError when there are none."""
    for heading, text in re.findall(r"^### ([\d, ]+)\.(.*?)(?=^##|\Z)", DOCUMENT, re.DOTALL | re.MULTILINE):
        if str(case) in heading.split(", "):
            fences = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
            if fences:
                return [str(fence) for fence in fences]
    raise KeyError(f"docs/use-cases.md has no shell lines for use case {case}")


def commands_of(case: int, program: str) -> list[str]:
    """Of those lines the ones that begin with `program`."""
    return [line for line in lines_of(case).splitlines() if line.startswith(f"{program} ")]
