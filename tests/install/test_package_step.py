"""What the packages' own script does where the machine's Python cannot run drainwise, as on Enterprise Linux 8."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from package_build.clone import ROOT

OLD = """#!/bin/sh
# Ends as an interpreter of version 3.6 does.
case "$*" in *version_info*) exit 1 ;; esac
echo "SyntaxError: future feature annotations is not defined" >&2
exit 1
"""


@pytest.mark.parametrize(("words", "code"), [(("place", "node"), 1), (("place", "slurm"), 1), (("remove", "node"), 0)])
@pytest.mark.parametrize("is_there", [True, False])
def test_a_python_that_is_too_old_is_named(tmp_path: Path, words: tuple[str, str], code: int, is_there: bool) -> None:
    """Nothing is put in place then, so nothing fails at each job; a removal is never held up."""
    python = tmp_path / "python3"
    if is_there:
        python.write_text(OLD)
        os.chmod(python, 0o755)
    script = tmp_path / "package-step"
    script.write_text(Path(ROOT, "packaging", "package-step").read_text().replace("/usr/bin/python3", str(python)))
    ran = subprocess.run(["sh", str(script), *words], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (code, "")
    [line] = ran.stderr.splitlines()
    assert line.startswith("drainwise: ") and f"{python} is missing or older than Python 3.9" in line


def test_the_rpm_asks_for_that_python() -> None:
    spec = Path(ROOT, "packaging", "rpm", "drainwise.spec").read_text()
    node = spec.partition("%package -n drainwise-node")[2].partition("%description")[0]
    assert re.findall(r"(?m)^Requires: (.*)$", node) == ["/usr/bin/python3, python(abi) >= 3.9"]
