"""Units that have another name since: what a site has rendered goes on, whoever rendered it."""

from __future__ import annotations

import os
from pathlib import Path

from drainwise.install.rendered_tree import RenderedFile, rename_units, with_new_names

UNITS = "/etc/systemd/system"
OLD, NEW = f"{UNITS}/drainwise-slurm-agent.service", f"{UNITS}/drainwise-node-agent.service"


def test_a_unit_goes_on_by_its_new_name_with_its_edits(tmp_path: Path) -> None:
    """The old name is a link, as systemctl makes it; a second time nothing changes."""
    (tmp_path / "etc/systemd/system").mkdir(parents=True)
    rename_units(str(tmp_path))
    assert not list((tmp_path / "etc/systemd/system").iterdir())
    Path(f"{tmp_path}{OLD}").write_text("edited\n")
    for _ in range(2):
        rename_units(str(tmp_path))
        assert (Path(f"{tmp_path}{NEW}").read_text(), os.readlink(f"{tmp_path}{OLD}")) == ("edited\n", NEW)


def test_a_tree_of_an_earlier_release_is_read_by_the_new_names() -> None:
    """So that its files are replaced, or removed, wherever they lie now."""
    files = (RenderedFile(OLD, "unit\n"), RenderedFile("/etc/slurm/drainwise.conf", "lines\n"))
    assert with_new_names(files) == (RenderedFile(NEW, "unit\n"), files[1])
