"""The Python of one Debian release on another: an old one beside daemons that the old release lacks, or here."""

from __future__ import annotations

import glob
import os
import re
import shutil
from collections.abc import Iterator

from clean_machine.recipe import RELEASES, recipe_of
from real_daemons.roots import Recipe, obtain
from real_daemons.unpack import output_of

# The loader finds what is missing here, for this one program: no variable goes on to what it starts.
_STARTER = """\
#!/bin/sh
tree=${{0%/usr/bin/*}}
exec {loader} --argv0 "$0" --library-path "$tree/usr/lib/missing" "$tree/usr/bin/{name}.program" "$@"
"""


def old_python() -> str:
    """The path of a Python 3.9 that runs on this machine, beside its own files: Debian 11's, from the cache of trees.

    Raises MissingToolError or RootUnavailableError where there is neither.
    """
    tree = obtain(Recipe("here-bullseye", "bullseye", (__file__,), lambda root, _: _build_here("bullseye", root)))
    return f"{tree.path}/usr/bin/python{RELEASES['bullseye'][0]}"


def _build_here(release: str, root: str) -> None:
    source, name = obtain(recipe_of(release)).path, f"python{RELEASES[release][0]}"
    program, library = f"{root}/usr/bin/{name}", f"{root}/usr/lib/{name}"
    os.makedirs(f"{root}/usr/bin")
    shutil.copy2(f"{source}/usr/bin/{name}", f"{program}.program")
    shutil.copytree(f"{source}/usr/lib/{name}", library, symlinks=True)
    asked = output_of("ldd", ["ldd", f"{program}.program", *glob.glob(f"{library}/lib-dynload/*.so")])
    os.mkdir(f"{root}/usr/lib/missing")
    for found in _missing(asked, source):
        shutil.copy(os.path.realpath(found), f"{root}/usr/lib/missing/{os.path.basename(found)}")
    [loader] = set(re.findall(r"^\s*(/\S+) \(0x", asked, re.MULTILINE))
    with open(program, "w", encoding="ascii") as starter:
        starter.write(_STARTER.format(loader=loader, name=name))
    os.chmod(program, 0o755)  # noqa: S103 - users of jobs run it


def _missing(asked: str, source: str) -> Iterator[str]:
    """The shared libraries that `ldd` did not find, in the tree `source`: a newer release has them by other names."""
    for name in sorted(set(re.findall(r"^\s*(\S+) => not found", asked, re.MULTILINE))):
        yield from (glob.glob(f"{source}/usr/lib/*/{name}") + glob.glob(f"{source}/lib/*/{name}"))[:1]


def give_python(release: str, root: str) -> str:
    """Make `/usr/bin/python3` of the tree at `root` that of a release; its version, such as `3.9`.

    Raises RootUnavailableError if the archive does not give the release.
    """
    source, version = obtain(recipe_of(release)).path, RELEASES[release][0]
    program, library = f"/usr/bin/python{version}", f"/usr/lib/python{version}"
    shutil.copy2(source + program, root + program)
    shutil.copytree(source + library, root + library, symlinks=True, dirs_exist_ok=True)
    modules = [path[len(root) :] for path in glob.glob(f"{root}{library}/lib-dynload/*.so")]
    for found in _missing(output_of("ldd", ["chroot", root, "ldd", program, *modules]), source):
        place, name = found.split("/")[-2:]
        shutil.copy(os.path.realpath(found), f"{root}/usr/lib/{place}/{name}")
    os.unlink(f"{root}/usr/bin/python3")
    os.symlink(f"python{version}", f"{root}/usr/bin/python3")
    return version
