"""What pip would fetch when the package is installed, in a directory: for machines without a network."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Sequence

from real_daemons.roots import CACHE_DIR, lock
from real_daemons.unpack import output_of

# What the package needs to be built and to run. pip looks at the running Python for what depends on a version, so the
# last two, which old ones need, are named.
_REQUIREMENTS = (
    *("hatchling>=1.21", "htcondor>=24.0", "jinja2>=3.0", "numpy>=1.24"),
    *("tomli", "typing-extensions"),
)
_PLATFORMS = ("manylinux_2_28", "manylinux_2_27", "manylinux_2_17", "manylinux2014", "manylinux_2_5", "manylinux1")


def wheels_for(python: str, requirements: Sequence[str] = _REQUIREMENTS, cache_dir: str = CACHE_DIR) -> str:
    """The directory with the wheels for a version of Python (`3.9`), fetched if they are not there yet (27 MB).

    requirements: as pip takes them; without it, all that the package needs.
    Raises RootUnavailableError with the last words of pip, if it does not get them.
    """
    mark = hashlib.sha256(" ".join((*requirements, *_PLATFORMS)).encode()).hexdigest()[:12]
    path = os.path.join(os.path.dirname(cache_dir), f"wheels-{python}-{mark}")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with lock(f"{path}.lock"):
        if not os.path.isdir(path):
            _fetch(python, requirements, path)
    return path


def _fetch(python: str, requirements: Sequence[str], path: str) -> None:
    work = tempfile.mkdtemp(dir=os.path.dirname(path))
    machine = platform.machine()
    for_it = ["--only-binary=:all:", "--implementation=cp", f"--python-version={python}"]
    for_it += [f"--platform={one}_{machine}" for one in _PLATFORMS]
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "download", "--dest", work]
    try:
        output_of(f"fetching wheels for Python {python}", [*pip, *for_it, *requirements])
        os.chmod(work, 0o755)  # noqa: S103 - mkdtemp made it private
        os.rename(work, path)
    finally:
        shutil.rmtree(work, ignore_errors=True)
