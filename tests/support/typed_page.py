"""The lines of a page, as somebody types them on machines that have no network."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable
from pathlib import Path

from package_build.clone import ROOT


def blocks_of(page: str, step: str) -> list[list[str]]:
    """The blocks of a step of a page in docs, each as its lines."""
    text = Path(ROOT, "docs", page).read_text().partition(f"## {step}")[2].partition("\n## ")[0]
    assert text, f"{page}: no step {step!r}"
    return [block.splitlines() for block in re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL)]


def packages_named(words: Iterable[str]) -> list[str]:
    """The packages that words such as `./drainwise_*_all.deb` mean."""
    return [Path(word).name.partition("_")[0] for word in words]


def unpack_wheels(wheels: str, names: Iterable[str], target: str) -> None:
    """Unpack wheels of a directory, since pip looks at the Python it runs on."""
    for name in names:
        with zipfile.ZipFile(next(Path(wheels).glob(f"{name}-*.whl"))) as wheel:
            wheel.extractall(target)
