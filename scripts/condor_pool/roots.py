"""Root file systems with HTCondor in them, by release."""

from __future__ import annotations

from condor_pool import recipe
from condor_pool.errors import PoolError
from condor_pool.recipe import RELEASES
from real_daemons.roots import (
    CACHE_DIR,
    MIRROR_VARIABLE,
    Recipe,
    Root,
    main_archive,
    mount_point,
    obtain,
    require_tools,
)

__all__ = ["CACHE_DIR", "MIRROR_VARIABLE", "Root", "main_archive", "mount_point", "obtain_root", "require_tools"]


def recipe_of(release: str) -> Recipe:
    """The recipe of a release's tree; raises PoolError if there is none."""
    if release not in RELEASES:
        raise PoolError(f"unknown release {release!r}; known: {', '.join(RELEASES)}")
    return Recipe(release, release, (recipe.__file__,), lambda root, archive: recipe.build_root(release, root, archive))


def obtain_root(release: str, cache_dir: str = CACHE_DIR) -> Root:
    """The tree of a release, built if it is not there yet (some 15 s, 66 MB to fetch, 300 MB on disk).

    Raises MissingToolError if this machine lacks a tool, RootUnavailableError if the archive does not give it.
    """
    return obtain(recipe_of(release), cache_dir)
