"""What was installed goes away, but for what the batch system's configuration names, and what a person has edited."""

from __future__ import annotations

from pathlib import Path

import pytest

from drainwise.install.edited_files import STUB, signed, sparing_edited
from drainwise.install.expected_files import not_yet_in_force, without_the_sites
from drainwise.install.removal import AFTER_REMOVAL, in_force, removal_of
from drainwise.install.rendered_tree import RenderedFile, write_tree

PROLOG = RenderedFile("/etc/slurm/prolog.d/50-drainwise", "#!/bin/sh\n# rendered from the defaults.\nexit 0\n", 0o755)
SETTINGS = RenderedFile("/etc/drainwise/node.conf", "# rendered from the defaults.\na = 1\n")
FILES = (SETTINGS, PROLOG)
SITES = "# rendered from /etc/drainwise/site.ini.\na = 2\n"


def place(root: Path, *files: RenderedFile) -> None:
    write_tree(map(signed, files), str(root))


def test_unnamed_files_go_in_the_reverse_order(tmp_path: Path) -> None:
    """What the batch system reads goes first."""
    place(tmp_path, *FILES)
    removal = removal_of(FILES, "Prolog=/etc/site/prolog", str(tmp_path))
    assert removal.unlinked == (PROLOG.path, SETTINGS.path)
    assert not removal.stubs and not removal.edited


@pytest.mark.parametrize(
    "live", [f"Prolog={PROLOG.path}\n", "Prolog                  = /etc/slurm/prolog.d/*\n", f'X="{PROLOG.path}",1']
)
def test_a_named_program_becomes_a_stub(tmp_path: Path, live: str) -> None:
    """Named by its path or by a pattern; a stub ends with 0 and reads nothing."""
    place(tmp_path, *FILES)
    removal = removal_of(FILES, live, str(tmp_path))
    assert removal.stubs == (RenderedFile(PROLOG.path, STUB, 0o755),)
    assert removal.unlinked == (SETTINGS.path,)
    write_tree(removal.stubs, str(tmp_path))
    assert removal_of(FILES, "", str(tmp_path)).unlinked == (PROLOG.path, SETTINGS.path)


def test_settings_that_are_named_need_no_stub(tmp_path: Path) -> None:
    place(tmp_path, SETTINGS)
    assert removal_of(FILES, f"# {SETTINGS.path}", str(tmp_path)).unlinked == (SETTINGS.path,)


@pytest.mark.parametrize("has_orders", [True, False])
def test_what_jobs_need_stays_where_the_node_may_have_had_orders(tmp_path: Path, has_orders: bool) -> None:
    """Edited or not; elsewhere it goes like the others."""
    stays = RenderedFile(f"/etc/condor/config.d/{AFTER_REMOVAL}", "# rendered from the defaults.\nA = 1\n")
    place(tmp_path, SETTINGS, stays)
    removal = removal_of((SETTINGS, stays), "", str(tmp_path), has_orders)
    assert removal.needed == ((stays.path,) if has_orders else ())
    assert removal.unlinked == ((SETTINGS.path,) if has_orders else (stays.path, SETTINGS.path))
    assert not removal.edited and not removal.stubs


def test_edited_files_stay(tmp_path: Path) -> None:
    """Missing ones are no fault."""
    place(tmp_path, SETTINGS)
    path = tmp_path / "etc/drainwise/node.conf"
    path.write_text(path.read_text() + "b = 1\n")
    removal = removal_of(FILES, "", str(tmp_path))
    assert removal.edited == (SETTINGS.path,) and not removal.unlinked and not removal.stubs


def test_defaults_replace_what_was_rendered_from_the_defaults(tmp_path: Path) -> None:
    """And nothing that the site has rendered from its file, or edited."""
    place(tmp_path, SETTINGS, PROLOG)
    newer = [RenderedFile(SETTINGS.path, f"{SETTINGS.text}c = 3\n"), PROLOG]
    assert without_the_sites(newer, str(tmp_path)) == list(map(signed, newer))
    place(tmp_path, RenderedFile(SETTINGS.path, SITES))
    assert without_the_sites(newer, str(tmp_path)) == [signed(PROLOG)]
    (tmp_path / PROLOG.path[1:]).write_text(signed(PROLOG).text + "# mine\n")
    assert without_the_sites(newer, str(tmp_path)) == []
    assert without_the_sites(newer, str(tmp_path / "elsewhere")) == list(map(signed, newer))


def test_a_stub_gives_way_to_the_next_installation(tmp_path: Path) -> None:
    """Of a package and of a tree alike."""
    write_tree([RenderedFile(PROLOG.path, STUB, 0o755)], str(tmp_path))
    assert without_the_sites([PROLOG], str(tmp_path)) == [signed(PROLOG)]
    assert sparing_edited([PROLOG], str(tmp_path)) == ([signed(PROLOG)], [])


@pytest.mark.parametrize(
    ("live", "left_out"),
    [
        ("Prolog=/etc/slurm/prolog.d/*\n", [PROLOG]),
        ("Prolog=/etc/slurm/prolog.d/*\nTaskProlog=/usr/libexec/drainwise/slurm-task-prolog\n", []),
        (f"Prolog={PROLOG.path}\n", []),
        ("Prolog=/etc/site/prolog\n", []),
    ],
)
def test_a_package_puts_no_program_where_the_site_would_run_it_at_once(
    tmp_path: Path, live: str, left_out: list[RenderedFile]
) -> None:
    """Unless drainwise is in force there; what is there already is replaced, and nobody is asked for it."""
    assert not_yet_in_force(FILES, lambda: live, str(tmp_path)) == left_out
    place(tmp_path, *FILES)
    assert not_yet_in_force(FILES, pytest.fail, str(tmp_path)) == []


@pytest.mark.parametrize(
    ("line", "counts"),
    [
        ("Include drainwise.conf\n", True),
        ("  include /etc/slurm/drainwise.conf\n", True),
        ("#Include drainwise.conf\n", False),
    ],
)
def test_lines_that_slurm_conf_does_not_include_name_nothing(line: str, counts: bool) -> None:
    texts = {"/etc/slurm/drainwise.conf": f"Prolog={PROLOG.path}\n", "/etc/slurm/slurm.conf": f"A=1\n{line}"}
    assert (texts["/etc/slurm/drainwise.conf"] in in_force(texts)) is counts
