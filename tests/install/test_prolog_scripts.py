"""The prologs and epilogs that a node gets: all of them, programs or not as in the repository, for its own places."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from drainwise.install.edited_files import is_edited, signed
from drainwise.install.templates import prolog_scripts

SOURCE = Path(__file__).parents[2] / "prologs"


def test_each_script_of_the_repository_is_there_and_runs_where_it_did(tmp_path: Path) -> None:
    files = {file.path: file for file in prolog_scripts(str(tmp_path), "/usr/share/drainwise", "/usr/bin/python3")}
    sources = [path for path in SOURCE.rglob("*") if path.is_file()]
    assert len(sources) > 10 and len(files) == len(sources)
    for path in sources:
        file = files[f"/usr/libexec/drainwise/{path.relative_to(SOURCE)}"]
        assert (file.text, bool(file.mode & 0o111)) == (path.read_text(), os.access(path, os.X_OK))


def test_the_package_in_use_comes_first(tmp_path: Path) -> None:
    """As it lies there when it came from a wheel."""
    place = tmp_path / "drainwise" / "prolog_scripts" / "lsf"
    place.mkdir(parents=True)
    (place / "pre-exec").write_text("#!/bin/sh\n")
    [file] = prolog_scripts(str(tmp_path), "/l", "/p")
    assert (file.path, file.text, file.mode) == ("/usr/libexec/drainwise/lsf/pre-exec", "#!/bin/sh\n", 0o755)


def test_library_and_python_of_the_node_stand_in_the_program(tmp_path: Path) -> None:
    files = {os.path.basename(file.path): file for file in prolog_scripts(str(tmp_path), "/srv/lib", "/opt/p/python3")}
    text = files["drainwise-features"].text
    assert 'sys.path.append("/srv/lib")' in text and "exec /opt/p/python3 -I" in text and "/usr/" not in text


@pytest.mark.parametrize("name", ["features-begin", "drainwise-job.sh"])
def test_with_a_checksum_they_are_still_scripts(tmp_path: Path, name: str) -> None:
    """An edit is seen then, as in other rendered files."""
    files = {os.path.basename(file.path): file for file in prolog_scripts(str(tmp_path), "/l", "/p")}
    text = signed(files[name]).text
    assert subprocess.run(["sh", "-n"], input=text, text=True, check=False).returncode == 0
    assert not is_edited(text) and is_edited(text + "exit 0\n")
