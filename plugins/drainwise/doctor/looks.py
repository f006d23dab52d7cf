"""Look at this machine: what is installed, which rendered files it has, and which daemons run."""

from __future__ import annotations

import glob
import os
import re
import shutil
import stat
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from importlib import metadata
from importlib.util import find_spec

import drainwise
from drainwise.common.bounded_command import Running
from drainwise.doctor.facts import CLONE, PIP, RELEASE, Installation, RenderedFact, RunningProcess
from drainwise.facts.errors import PoolUnreachable
from drainwise.install.edited_files import STUB, is_edited, unsigned, version_in
from drainwise.install.expected_files import LIBRARY, ExpectedFiles
from drainwise.install.rendered_tree import OTHERS_WRITE, RenderedFile, open_above
from drainwise.processes.process import read_proc

_LIBRARIES = {"numpy": "numpy", "jinja2": "jinja2", "prometheus_client": "prometheus-client", "htcondor2": "htcondor"}
"""What some commands import, and the name under which it is installed."""
_QUERIES = (
    ("dpkg-query", "-W", "-f", "${db:Status-Status} ${Package} ${Version}\n", "drainwise*"),
    ("rpm", "-qa", "--queryformat", "installed %{NAME} %{VERSION}-%{RELEASE}\n", "drainwise*"),
)
_SECONDS = 10.0
_ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"}


def installation(library: str = LIBRARY) -> Installation:
    """Look at what is installed; library: the directory that holds the package of the hooks."""
    place = os.path.realpath(drainwise.__path__[0])
    return Installation(
        drainwise.__version__,
        _kind(place, library),
        place,
        tuple(_packages()),
        release_version(library),
        _unreadable(library),
        {name: _version_of(name, title) for name, title in _LIBRARIES.items()},
        ".".join(map(str, sys.version_info[:3])),
    )


def release_version(library: str) -> str:
    """Return the version of the package that hooks find below `library`; "" where there is none, or none to read."""
    try:
        with open(f"{library}/drainwise/__init__.py", encoding="utf-8") as stream:
            lines = [line for line in stream if line.startswith("__version__ = ")]
    except (OSError, UnicodeDecodeError):
        return ""
    return lines[0].partition(" = ")[2].strip().strip('"') if lines else ""


def _kind(place: str, library: str) -> str:
    if place.startswith(f"{os.path.realpath(library)}/"):
        return RELEASE
    return CLONE if os.path.exists(os.path.join(place, "..", "..", "pyproject.toml")) else PIP


def _unreadable(library: str) -> str:
    """Return what others than root cannot pass through or read on the way to the package; "" when all can."""
    file = os.path.realpath(f"{library}/drainwise/__init__.py")
    if not os.path.exists(f"{library}/drainwise"):
        return ""
    path, wanted = file, 0o004
    while path != "/":
        try:
            if not os.stat(path).st_mode & wanted:
                return path
        except OSError as fault:
            return f"{path}: {fault.strerror}"
        path, wanted = os.path.dirname(path), 0o001
    return ""


def _packages() -> Iterator[tuple[str, str]]:
    for query in _QUERIES:
        program = shutil.which(query[0], path=_ENVIRONMENT["PATH"])
        if program is None:
            continue
        try:
            answer = Running((program, *query[1:]), _ENVIRONMENT, _SECONDS).answer()
        except PoolUnreachable:
            continue
        for row in map(str.split, answer.text.splitlines()):
            if len(row) == 3 and row[0] == "installed":
                yield row[1], row[2]


def _version_of(module: str, title: str) -> str:
    """Return the version of a library without importing it: a broken one could end this process."""
    try:
        if find_spec(module) is None:
            return ""
        return metadata.version(title)
    except (ImportError, ValueError):  # the distribution's package has no metadata, or another name there
        return "of no version"


PLACES = (
    "/etc/drainwise/*.conf",
    "/etc/drainwise/*.cpf",
    "/usr/libexec/drainwise/*",
    "/etc/slurm/drainwise.conf",
    "/etc/slurm/prolog.d/50-drainwise",
    "/etc/slurm/epilog.d/50-drainwise",
    "/etc/condor/config.d/*drainwise*",
    "/etc/systemd/system/drainwise*.service",
)
"""Where they lie unless the site file says otherwise."""
_ORIGIN = re.compile(r"\brendered from (the defaults|[A-Za-z0-9_./+?-]*[A-Za-z0-9_/+?-])")
_LONGEST = 1 << 20


def rendered_files(
    expected: Iterable[ExpectedFiles], places: Iterable[str] = PLACES, root: str = ""
) -> Iterator[RenderedFact]:
    """Look at each rendered file that is there, below `root`, and at those that are expected where others of them are.

    Files that do not say that they were rendered are none of ours, such as one line of the site's own.
    """
    wanted = {file.path: (file, some.command) for some in expected for file in some.files}
    found = {path[len(root) :] for pattern in places for path in glob.glob(root + pattern)}
    if found or any(os.path.lexists(root + path) for path in wanted):
        found |= set(wanted)
    for path in sorted(found):
        file, command = wanted.get(path, (None, ""))
        fault, line = ("", "") if file is None else _danger(file, root)
        if fault:
            yield RenderedFact(path, fault=fault, is_dangerous=True, command=line)
            continue
        try:
            if file is None and not os.path.isfile(root + path):
                continue
            if stat.S_ISFIFO(os.stat(root + path).st_mode):  # to open it would take for ever
                yield RenderedFact(path, fault="not a file", command=command)
                continue
            with open(root + path, encoding="utf-8", errors="surrogateescape") as stream:
                text, mode = stream.read(_LONGEST), os.fstat(stream.fileno()).st_mode
        except OSError as error:
            yield RenderedFact(path, fault=error.strerror or "cannot be read", command=command)
            continue
        if file is not None and file.mode & ~mode:
            fault = f"mode {mode & 0o7777:04o}, it must be {file.mode:04o}"
            yield RenderedFact(path, fault=fault, command=f"chmod {file.mode:o} {path}")
            continue
        fact = rendered_fact(path, text, None if file is None else file.text)
        if fact is not None:
            yield replace(fact, command=command)


def _danger(file: RenderedFile, root: str) -> tuple[str, str]:
    """Return who else than root can change a file, and the command that ends it; "" for nobody."""
    try:
        status, above = os.lstat(root + file.path), open_above(file.path, root)
    except OSError:
        return "", ""
    if status.st_uid != 0 or (status.st_mode & OTHERS_WRITE and not stat.S_ISLNK(status.st_mode)):
        return f"others than root can change it (uid {status.st_uid}, mode {status.st_mode & 0o7777:04o})", (
            f"chown root:root {file.path}; chmod {file.mode:o} {file.path}"
        )
    if above:
        line = f"chown root:root {above[0]}; chmod go-w {above[0]}"
        return f"others than root can change {above[0]} above it", line
    return "", ""


def rendered_fact(path: str, text: str, today: str | None) -> RenderedFact | None:
    """Return what the text of a file says of itself; None for one that was not rendered.

    today: what the site file gives now. Comments do not count: they name the site file.
    """
    if text == STUB:
        return RenderedFact(path, stub=True)
    origin = _ORIGIN.search(text)
    if origin is None:
        return None
    differs = None if today is None else _code(unsigned(text)) != _code(unsigned(today))
    version = version_in(text)
    return RenderedFact(path, origin[1], version, bool(version) and is_edited(text), differs)


def _code(text: str) -> list[str]:
    """Return the lines that count: without comments, and without the site file's name in a program's docstring."""
    return [_ORIGIN.sub("", line) for line in text.splitlines() if line.strip() and line[0] != "#"]


_DAEMONS = {
    *("condor_master", "condor_startd", "condor_schedd", "condor_collector", "condor_negotiator"),
    *("slurmd", "slurmctld", "slurmdbd"),
}
_LONGEST_COMM = 15
AGENT, NODE_AGENT, SERVER = "drainwise-agent", "drainwise-node-agent", "drainwise-features"
_OURS = {AGENT: (b"reclaim", b"--loop"), SERVER: (b"features", b"serve")}


def running_processes(proc: str = "/proc") -> Iterator[RunningProcess]:
    """Look at each process of this machine that this user sees; children of a daemon with its name count once.

    proc: where the kernel shows them.
    """
    now = float(read_proc(f"{proc}/uptime").split()[0])
    tick = os.sysconf("SC_CLK_TCK")
    oldest: dict[str, RunningProcess] = {}
    for number in filter(str.isdigit, os.listdir(proc)):
        try:
            name = name_of(read_proc(f"{proc}/{number}/comm"), read_proc(f"{proc}/{number}/cmdline", 1 << 16))
            if not name:
                continue
            # Behind the name, which may hold anything: the state is the first field, the start the twentieth.
            fields = read_proc(f"{proc}/{number}/stat").rpartition(b")")[2].split()
            one = RunningProcess(name, int(number), max(0, int(now - int(fields[19]) / tick)))
        except (OSError, ValueError, IndexError):
            continue  # it has gone
        if name not in oldest or one.age > oldest[name].age:
            oldest[name] = one
    yield from sorted(oldest.values(), key=lambda one: one.name)


def name_of(comm: bytes, command_line: bytes) -> str:
    """Return the daemon's name by what the kernel says of a process; "" for any other process."""
    comm_name = comm.decode("ascii", "replace").strip()
    for name in _DAEMONS:
        if name[:_LONGEST_COMM] == comm_name:
            return name
    words = command_line.split(b"\0")
    if any(word.endswith(b"/drainwise/slurm-agent") for word in words[:4]):
        return NODE_AGENT
    if not any(word.rpartition(b"/")[2] == b"drainwise" for word in words[:6]):
        return ""
    return next((name for name, those in _OURS.items() if all(one in words for one in those)), "")
