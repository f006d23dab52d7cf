"""What a person has edited in a rendered file is never written over."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from drainwise.htcondor.setup.render import render as render_htcondor
from drainwise.install.edited_files import beside, is_edited, signed, sparing_edited
from drainwise.install.rendered_tree import RenderedFile, write_tree
from drainwise.siteconfig import SiteConfig
from drainwise.slurm.setup.render import render as render_slurm

FILES = [*render_slurm(SiteConfig(), "all"), *render_htcondor(SiteConfig(), "all")]
SCRIPT = RenderedFile("/hook", "#!/bin/sh\n# what it is\nexit 0\n", 0o755)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.path)
def test_each_rendered_file_has_its_checksum_in_a_comment(file: RenderedFile) -> None:
    """A script's first line stays its first line, and nothing but a comment is added."""
    made = signed(file)
    assert not is_edited(made.text)
    added = [line for line in made.text.splitlines() if line.startswith("# Checksum ")]
    assert len(added) == 1
    assert made.text.replace(f"{added[0]}\n", "") == file.text
    assert made.text.splitlines()[0] == file.text.splitlines()[0] or not file.text.startswith("#!")


@given(st.text("ab#\n", max_size=40), st.integers(0, 200), st.sampled_from(["x", "\n", "# y\n"]))
@example("", 39, "x")
def test_any_change_is_seen(text: str, place: int, change: str) -> None:
    """Wherever it is made, in the checksum and the version as well; a file without any is taken for edited."""
    made = signed(RenderedFile("/a", text)).text
    assert not is_edited(made)
    at = min(place, len(made))
    assert is_edited(made[:at] + change + made[at:])
    assert is_edited(text)


def test_an_edited_file_stays_and_the_new_one_lies_beside_it(tmp_path: Path) -> None:
    """The others are written; Slurm's and HTCondor's patterns pass over the name beside."""
    other = RenderedFile("/etc/other", "a\n")
    write_tree(sparing_edited([SCRIPT, other], str(tmp_path))[0], str(tmp_path))
    hook = tmp_path / "hook"
    edited = hook.read_text() + "# mine\n"
    hook.write_text(edited)
    newer = RenderedFile("/etc/other", "b\n")
    written, kept = sparing_edited([SCRIPT, newer], str(tmp_path))
    write_tree(written, str(tmp_path))
    assert [file.path for file in kept] == [beside("/hook")] == ["/.hook.rendered"]
    assert hook.read_text() == edited
    assert (tmp_path / ".hook.rendered").read_text() == signed(SCRIPT).text
    assert os.access(tmp_path / ".hook.rendered", os.X_OK)
    assert (tmp_path / "etc" / "other").read_text() == signed(newer).text


def test_what_was_rendered_is_written_over(tmp_path: Path) -> None:
    """By a newer one; and what stands there already without a checksum gets one."""
    for text in ("one\n", "two\n"):
        written, kept = sparing_edited([RenderedFile("/a", text)], str(tmp_path))
        assert kept == []
        write_tree(written, str(tmp_path))
    assert (tmp_path / "a").read_text() == signed(RenderedFile("/a", "two\n")).text
    (tmp_path / "a").write_text("two\n")
    assert sparing_edited([RenderedFile("/a", "two\n")], str(tmp_path))[1] == []
    (tmp_path / "a").write_text("of before\n")
    assert sparing_edited([RenderedFile("/a", "two\n")], str(tmp_path))[1] != []
