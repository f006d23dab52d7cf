"""From the site file to the files of each machine: HTCondor drop-ins, node settings, hook scripts, print formats.

Everything is rendered before anything is written, and written as a whole: half of the files would stop the jobs.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass

import jinja2

from drainwise.errors import UsageError
from drainwise.siteconfig import SiteConfig

ROLES = ("execute", "access", "central")

_CONFIG_DIR = "/etc/condor/config.d"
_SCRIPTS = (
    ("prepare-hook", "prepare_hook", "the starter's prepare hook: makes a job's feature directories"),
    ("update-hook", "update_hook", "the starter's update hook: tells a pilot what the site wants of it"),
    ("pilot-cron", "startd_cron", "the startd's cron: publishes what the pilots report"),
)
_PRINT_FORMATS = ("pilots.cpf", "users.cpf")


@dataclass(frozen=True)
class RenderedFile:
    """One file of a machine: its absolute `path` there, its text and its mode."""

    path: str
    text: str
    mode: int = 0o644


def template_dir() -> str:
    """Where the templates lie: inside an installed package, or at the root of a working copy."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    installed = os.path.join(package, "condor_config.d")
    return installed if os.path.isdir(installed) else os.path.join(package, "..", "..", "condor_config.d")


def render(site: SiteConfig, role: str) -> tuple[RenderedFile, ...]:
    """The files of a machine with this role, in the order in which they must be installed.

    The HTCondor drop-in comes last: it names the others, and while a hook file is missing no job starts on the node.
    `role` is one of ROLES or `all` (one machine that plays every role). Raises UsageError for another role.
    """
    if role not in (*ROLES, "all"):
        raise UsageError(f"role {role!r}: expected one of {', '.join(ROLES)}, all")
    roles = ROLES if role == "all" else (role,)
    render_text = _Renderer(site)
    settings_dir = os.path.dirname(site.htcondor.node_file).rstrip("/")
    files = []
    if "execute" in roles:
        files.append(RenderedFile(site.htcondor.node_file, render_text("node.conf.j2")))
        for name, module, what in _SCRIPTS:
            text = render_text("libexec.py.j2", name=name, module=module, what=what)
            files.append(RenderedFile(f"{site.htcondor.libexec_dir}/{name}", text, 0o755))
    if "access" in roles or "central" in roles:
        files += [RenderedFile(f"{settings_dir}/{name}", render_text(name)) for name in _PRINT_FORMATS]
    files += [RenderedFile(drop_in_path(one), render_text(f"50-drainwise-{one}.conf.j2")) for one in roles]
    return tuple(files)


def drop_in_path(role: str) -> str:
    """Where the HTCondor drop-in of a role lies on its machine."""
    return f"{_CONFIG_DIR}/50-drainwise-{role}.conf"


def write_tree(files: Iterable[RenderedFile], out: str) -> None:
    """Write the files below the directory `out` (`/` installs them), each by rename and in their order.

    All of them lie complete beside their places before the first one is renamed. Raises UsageError when one cannot be
    written; the tree is then as it was.
    """
    staged: list[tuple[str, str]] = []
    try:
        for file in {file.path: file for file in files}.values():  # a machine of two roles has some files twice
            place = os.path.join(out, file.path.lstrip("/"))
            _make_directories(os.path.dirname(place))
            if os.path.isdir(place):
                raise UsageError(f"{place}: a directory stands where a file must be written")
            temporary = f"{os.path.dirname(place)}/.{os.path.basename(place)}.new"  # HTCondor passes over dot files
            staged.append((temporary, place))
            _write(temporary, file)
        for temporary, place in staged:
            os.rename(temporary, place)
    except OSError as fault:
        raise UsageError(f"{fault.filename or out}: cannot be written: {fault.strerror}") from None
    finally:
        for temporary, _ in staged:
            if os.path.lexists(temporary):
                os.unlink(temporary)


def _make_directories(path: str) -> None:
    """Like os.makedirs, readable by everyone whatever the umask is: jobs' users must get to the hooks."""
    if path and not os.path.isdir(path):
        _make_directories(os.path.dirname(path))
        os.mkdir(path)
        os.chmod(path, 0o755)  # noqa: S103 - nothing secret lies there


def _write(temporary: str, file: RenderedFile) -> None:
    if os.path.lexists(temporary):
        os.unlink(temporary)  # left by a run that was killed
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as stream:
        stream.write(file.text)
        os.fchmod(descriptor, file.mode)
        stream.flush()
        os.fsync(descriptor)


class _Renderer:
    """Fills the templates with one site's values."""

    def __init__(self, site: SiteConfig) -> None:
        # Configuration files, not HTML: quoting for HTML would spoil them, and every value is of a kind without quotes.
        self._environment = jinja2.Environment(  # noqa: S701
            loader=jinja2.FileSystemLoader(template_dir()),
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
        )
        # The site file's own name is the one text here that no kind has checked.
        name = re.sub(r"[^A-Za-z0-9_./+-]", "?", site.file) or "the defaults"
        self._values = {
            "file": name,
            "features": site.features,
            "pilot": site.pilot,
            "htcondor": site.htcondor,
            "reclaim": site.reclaim,
        }

    def __call__(self, template: str, **more: str) -> str:
        return self._environment.get_template(template).render(**self._values, **more)
