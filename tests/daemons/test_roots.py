"""Trees of recipes are built beside each other, and what a killed builder left goes."""

from __future__ import annotations

from pathlib import Path

import pytest

from real_daemons.roots import Recipe, obtain
from real_daemons.unpack import output_of


def recipe(name: str, *meanwhile: str) -> Recipe:
    """A recipe whose tree has one file; meanwhile: recipes whose trees are obtained while it is built."""

    def build(root: str, _: str) -> None:
        for other in meanwhile:
            obtain(recipe(other), str(Path(root).parent))
        Path(root, "file").touch()

    return Recipe(name, "trixie", (__file__,), build)


def test_a_builder_leaves_the_tree_that_a_recipe_of_a_longer_name_builds(tmp_path: Path) -> None:
    tree = obtain(recipe("whole-condor-numpy", "whole-condor"), str(tmp_path)).path
    assert Path(tree, "file").exists()


def test_what_a_killed_builder_left_goes(tmp_path: Path) -> None:
    left = tmp_path / ".whole-condor-0123456789ab.xyz"
    left.mkdir()
    obtain(recipe("whole-condor"), str(tmp_path))
    assert not left.exists()


def test_packages_are_installed_as_if_no_bindings_were_loaded_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONDOR_CONFIG", "ONLY_ENV")
    assert "CONDOR" not in output_of("env", ["env"])
