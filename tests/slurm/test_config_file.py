"""slurm.conf as Slurm reads it: included files in their place, comments, continued lines, quotes, keys in any case."""

from __future__ import annotations

from pathlib import Path

import pytest

from drainwise.facts.errors import ConfigurationError
from drainwise.slurm.setup.own_settings import read_config


def write(place: Path, **files: str) -> str:
    """Write slurm.conf and others, by their names without `.conf`."""
    for name, text in files.items():
        (place / f"{name}.conf").write_text(text)
    return str(place / "slurm.conf")


def test_included_files_stand_where_they_are_included(tmp_path: Path) -> None:
    """By a name beside slurm.conf, an absolute one, and one with the cluster's name."""
    text = f"TaskProlog=/a\ninclude mine.conf\nInclude {tmp_path}/two.conf\nINCLUDE of-%c.conf\nKillWait=5\n"
    path = write(tmp_path, slurm=text, mine="TaskProlog=/b\n", two="TaskProlog=/c\n")
    (tmp_path / "of-big.conf").write_text("TaskProlog=/d\n")
    lines = read_config(path, "big")
    assert [line.value for line in lines if line.key == "taskprolog"] == ["/a", "/b", "/c", "/d"]
    assert [line.place for line in lines][1] == f"{tmp_path}/mine.conf:1"
    assert lines[-1].place == f"{path}:5"


def test_what_a_line_may_look_like(tmp_path: Path) -> None:
    """All of these are Slurm's own forms; what is no setting is passed over."""
    text = (
        "# TaskProlog=/commented\n"
        "  taskPROLOG = /a/b   # and why\n"
        'SrunProlog="/with blank"\n'
        "PrologFlags=\\\nX11\n"
        "Epilog=/a\\#b\n"
        "nonsense\n"
        "NodeName=n[1-4] CPUs=4\n"
        "Prolog="
    )
    found = [(line.number, line.key, line.value) for line in read_config(write(tmp_path, slurm=text))]
    assert found == [
        (2, "taskprolog", "/a/b"),
        (3, "srunprolog", "/with blank"),
        (4, "prologflags", "X11"),
        (6, "epilog", "/a#b"),
        (8, "nodename", "n[1-4]"),
        (9, "prolog", ""),
    ]


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    """A file that is not there, and files that include each other for ever."""
    with pytest.raises(ConfigurationError, match=f"{tmp_path}/other.conf: 'No such file or directory'"):
        read_config(write(tmp_path, slurm="Include other.conf\n"))
    with pytest.raises(ConfigurationError, match="none of which includes itself"):
        read_config(write(tmp_path, slurm="Include slurm.conf\n"))
