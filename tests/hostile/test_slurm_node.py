"""Attacks on prolog, task prolog and epilog of a Slurm node, with real users, files, mounts and processes.

Every number is that of the attack in the list of hostile cases. After each attack the same holds: the hook ends in time
and with 0, it says one short line at most, nothing of root's or of the neighbour's job is read, changed or removed, and
the next job has its directories.
"""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import stat
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from drainwise.common import acl
from drainwise.common.foreign_tree import Removal
from drainwise.siteconfig import FeaturesSection, SiteConfig
from drainwise.slurm.node.job_tree import unmount
from made_up_node import PYTHON, Ran, make_directory, public_directory, run_as, write
from made_up_slurm_node import MadeUpJob, SlurmNode, install
from real_daemons.waiting import wait_for

pytestmark = [
    pytest.mark.daemons,  # attacks take their time
    pytest.mark.skipif(os.geteuid() != 0, reason="needs other users, devices and mounts"),
]

PACKAGE = str(Path(__file__).parents[2] / "plugins" / "drainwise")
ALICE, BOB = 54321, 54322
JOB, NEIGHBOUR, NEXT = MadeUpJob(17, ALICE), MadeUpJob(18, BOB), MadeUpJob(19, ALICE)
MEMORY = "/dev/shm" if os.path.isdir("/dev/shm") else None

libc = ctypes.CDLL(None, use_errno=True)


@pytest.fixture(scope="module")
def library() -> Iterator[str]:
    """Where the package is installed."""
    if not os.path.exists(PYTHON):
        pytest.skip(f"needs {PYTHON}")
    with public_directory() as base:
        yield f"{base}/library"


@pytest.fixture
def node(library: str) -> Iterator[SlurmNode]:
    """A node on which alice's and bob's jobs run; its runtime directory is in memory, as in life."""
    with public_directory() as base, public_directory(MEMORY) as memory:
        site = SiteConfig(features=FeaturesSection(wall_limit=86400))
        made = install(PACKAGE, base, f"{memory}/run", site, library)
        for job in (JOB, NEIGHBOUR):
            assert made.prolog(job).returncode == 0
        write(f"{made.tree(NEIGHBOUR)}/.jobstatus/used_CPU", "4\n", BOB)
        victim = victims(made)
        os.makedirs(f"{victim}/directory/inner", 0o700)
        os.chmod(victim, 0o700)
        write(f"{victim}/secret", "precious\n", 0)
        write(f"{victim}/directory/file", "precious\n", 0)
        os.chmod(f"{victim}/secret", 0o600)
        before = seen(victim), seen(made.tree(NEIGHBOUR))
        yield made
        assert (seen(victim), seen(made.tree(NEIGHBOUR))) == before
        assert made.prolog(NEXT).returncode == 0
        assert len(os.listdir(f"{made.tree(NEXT)}/.jobfeatures")) == 8
        assert made.epilog(NEXT).returncode == 0
        assert not os.path.exists(made.tree(NEXT))


def victims(node: SlurmNode) -> str:
    """A directory of root's, on the file system of the jobs' trees, that no attack may touch."""
    return f"{os.path.dirname(node.runtime_dir)}/root"


def seen(place: str) -> dict[str, object]:
    """All that stands below `place`: kind, mode, owner and content."""
    found: dict[str, object] = {}
    for directory, names, files in os.walk(place):
        for name in (*names, *files, "."):
            path = f"{directory}/{name}"
            status = os.lstat(path)
            content = Path(path).read_bytes() if stat.S_ISREG(status.st_mode) else b""
            found[path] = (status.st_mode, status.st_uid, content)
    return found


def status_of(node: SlurmNode, job: MadeUpJob = JOB) -> str:
    """The $JOBSTATUS of a job."""
    return f"{node.tree(job)}/.jobstatus"


def plain(node: SlurmNode) -> None:
    """Have the job's $JOBSTATUS as where its prolog could not mount: a directory, as large as what it lies in."""
    unmount(os.path.realpath(node.tree(JOB)))


def beside(node: SlurmNode) -> set[str]:
    """What stands beside the jobs' trees, without the neighbour's."""
    return set(os.listdir(os.path.dirname(node.tree(JOB)))) - {str(NEIGHBOUR.number)}


def well_ended(run: Callable[[], Ran]) -> str:
    """Run a hook that must end well and say one line at most: the line."""
    ran = run()
    assert ran.returncode == 0
    lines = ran.stderr.decode("ascii").splitlines()
    assert len(lines) <= 1
    assert all(line.isprintable() and len(line) <= 200 for line in lines)
    return lines[0] if lines else ""


def cleaned(node: SlurmNode) -> None:
    """The epilog removes everything of the job, silently."""
    assert well_ended(lambda: node.epilog(JOB)) == ""
    assert beside(node) == set()


# --- what the user leaves in $JOBSTATUS ------------------------------------------------------------------------------


def put(node: SlurmNode, kind: str) -> None:  # noqa: PLR0912 - a table
    """Leave one kind of thing, as alice where she can."""
    place, victim = f"{status_of(node)}/x", victims(node)
    if kind == "link to a file":
        os.symlink(f"{victim}/secret", place)
    elif kind == "link to a directory":
        os.symlink(f"{victim}/directory", place)
    elif kind == "link to itself":
        os.symlink(place, place)
    elif kind == "hard link":
        plain(node)  # else it is another file system
        os.link(f"{victim}/secret", place)
    elif kind == "FIFO":
        os.mkfifo(place)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(place)
    elif kind == "device":
        os.mknod(place, stat.S_IFBLK | 0o666, os.makedev(259, 0))
    elif kind == "directory":
        os.makedirs(f"{status_of(node)}/.pilot.ad/x/y")
    elif kind == "magic link":
        os.symlink("/proc/self/root", place)
    elif kind == "mode 000":
        os.makedirs(f"{place}/y")
        os.chmod(f"{place}/y", 0o000)
        os.chmod(place, 0o000)
    elif kind == "another user's":
        make_directory(place, 0o700, BOB)
        write(f"{place}/file", "bob's\n", BOB)
    elif kind == "sticky and setgid":
        make_directory(place, 0o7777, BOB)
        write(f"{place}/file", "bob's\n", BOB)
    elif kind == "access list":
        make_directory(place, 0o700, ALICE)
        acl.lend(place, BOB, 7)


KINDS = {
    "link to a file": 1,
    "link to a directory": 1,
    "link to itself": 1,
    "hard link": 4,
    "FIFO": 5,
    "socket": 6,
    "device": 7,
    "directory": 8,
    "magic link": 9,
    "mode 000": 10,
    "another user's": 11,
    "sticky and setgid": 14,
    "access list": 14,
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_file_goes_and_what_it_leads_to_stays(node: SlurmNode, kind: str) -> None:
    """1, 4-11, 14: removed by its name, never followed nor opened."""
    put(node, kind)
    assert os.listdir(status_of(node))
    cleaned(node)


def test_14_what_not_even_root_can_remove(node: SlurmNode) -> None:
    """14: an immutable file stays, hidden; it is said, all else goes, and the next epilog without it is silent."""
    plain(node)
    make_directory(f"{status_of(node)}/x", 0o755, ALICE)
    held = f"{status_of(node)}/x/immutable"
    write(held, "", ALICE)
    for number in range(10):
        write(f"{status_of(node)}/{number}", "", ALICE)
    if subprocess.run(["/usr/bin/chattr", "+i", held], capture_output=True, check=False).returncode:
        pytest.skip("the file system has no immutable files")
    try:
        assert "Operation not permitted" in well_ended(lambda: node.epilog(JOB))
        [hidden] = beside(node)
        left = [path for path in seen(f"{os.path.dirname(node.tree(JOB))}/{hidden}") if not path.endswith("/.")]
        assert [os.path.basename(path) for path in left if "immutable" in path] == ["immutable"]
        assert len(left) <= 3
    finally:
        [found] = Path(os.path.dirname(node.tree(JOB))).rglob("immutable")
        subprocess.run(["/usr/bin/chattr", "-i", str(found)], check=True)
    cleaned(node)


def test_15_names(node: SlurmNode) -> None:
    """15, 41: as a file, as a file deeper down, and as a directory in one of the same name."""
    top = os.fsencode(status_of(node))
    for name in (b"a\nb", b"\x1b[2J", b"x" * 255, b"\xff\xfe", b"...", b"-rf", b"$(touch x)", b"\xe2\x80\xae", b" "):
        for place in (top, top + b"/inner"):
            os.makedirs(place, exist_ok=True)
            os.close(os.open(place + b"/" + name, os.O_CREAT))
        os.makedirs(top + b"/dir/" + name + b"/" + name)
    cleaned(node)


def test_26_a_hundred_thousand_files(node: SlurmNode) -> None:
    """26: gone in time, or under a hidden name from which the next epilogs go on; the job's name is free at once."""
    plain(node)
    for directory in range(10):
        inner = f"{status_of(node)}/{directory}"
        os.mkdir(inner)
        descriptor = os.open(inner, os.O_RDONLY)
        for number in range(10_000):
            os.mknod(f"{number}", dir_fd=descriptor)
        os.close(descriptor)
    for _ in range(20):
        well_ended(lambda: node.epilog(JOB))
        assert not os.path.exists(node.tree(JOB))
        if not beside(node):
            break
    assert beside(node) == set()


# --- who fights the epilog -------------------------------------------------------------------------------------------


def attacker(place: str, attack: str) -> int:
    """A process of alice's that does `attack` over and over in her directory, which it holds open: its pid."""
    program = f"import os\nos.chdir({place!r})\nwhile True:\n    try:\n{attack}\n    except OSError:\n        pass\n"
    actions = [(os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)]
    command = ["setpriv", f"--reuid={ALICE}", f"--regid={ALICE}", "--clear-groups", PYTHON, "-c", program]
    pid = os.posix_spawnp("setpriv", command, dict(os.environ), file_actions=actions)
    wait_for(lambda: os.listdir(place), what="the attack")
    return pid


def swapping(victim: str) -> str:
    """Names that are a directory at one moment and a link to root's directory at the next."""
    return f"""
        os.mkdir('d'); os.mkdir('d/e'); os.close(os.open('d/e/f', os.O_CREAT))
        os.symlink({victim!r}, 'l'); os.rename('d', 'x'); os.rename('l', 'd')
        os.rename('x/e', 'x/g')
        os.unlink('d'); os.symlink({victim!r}, 'x/e'); os.unlink('x/e')
        os.unlink('x/g/f'); os.rmdir('x/g'); os.rmdir('x')"""


ATTACKS: dict[str, Callable[[str], str]] = {
    "2, 3: a directory swapped for a link": swapping,
    "16: directories that move and vanish": lambda victim: (
        """
        os.makedirs('a/b/c'); os.rename('a/b', 'q'); os.rename('q/c', 'c'); os.rename('a', 'c/a')
        os.rmdir('c/a'); os.rmdir('c'); os.rmdir('q')"""
    ),
    "17: files that come back": lambda victim: (
        """
        os.close(os.open('f', os.O_CREAT)); os.rename('f', 'g'); os.mkdir('h')
        os.unlink('g'); os.rmdir('h')"""
    ),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_process_that_survived_its_job(node: SlurmNode, attack: str) -> None:
    """2, 3, 16, 17: whatever it does while the epilog walks; the tree is closed to it before it is emptied."""
    for turn in range(3):
        pid = attacker(status_of(node), ATTACKS[attack](f"{victims(node)}/directory"))
        try:
            well_ended(lambda: node.epilog(JOB))
            assert not os.path.exists(node.tree(JOB))
        finally:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        cleaned(node)
        if turn < 2:
            assert node.prolog(JOB).returncode == 0


def test_3_a_directory_swapped_while_it_is_walked(node: SlurmNode) -> None:
    """3: at each single step of the removal, the worst swap that a user could still do."""
    victim = f"{victims(node)}/directory"
    tree = f"{os.path.dirname(node.tree(JOB))}/.gone.17.1.0"
    plain(node)
    os.makedirs(f"{status_of(node)}/a/b/c")
    os.rename(node.tree(JOB), tree)
    place = os.open(os.path.dirname(tree), os.O_RDONLY)
    swapped = 0

    class Swapping(Removal):
        def _try(self, step: Callable[[str], None], name: str) -> None:
            nonlocal swapped
            for path in (f"{tree}/.jobstatus/a", f"{tree}/.jobstatus/a/b", f"{tree}/.jobstatus"):
                if os.path.isdir(path) and not os.path.islink(path) and swapped < 20:
                    os.rename(path, f"{tree}/aside{swapped}")
                    os.symlink(victim, path)
                    swapped += 1
                    break
            super()._try(step, name)

    Swapping(time.monotonic() + 10).remove(place, os.path.basename(tree))
    os.close(place)
    assert swapped >= 2
    assert not os.path.exists(tree)


# --- mounts ----------------------------------------------------------------------------------------------------------


def in_own_mounts(step: Callable[[], str]) -> str:
    """The answer of a child that has mounts of its own; they end with it."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        answer = "the child failed"
        try:
            done(libc.unshare(0x00020000))
            done(libc.mount(b"none", b"/", None, 0x4000 | 0x40000, None))
            answer = step()
        except BaseException as fault:
            answer = f"the child failed: {fault!r}"
        finally:
            os.write(writer, answer.encode())
            os._exit(0)
    os.close(writer)
    with open(reader, "rb") as stream:
        answer = stream.read().decode()
    os.waitpid(pid, 0)
    return answer


def done(result: int) -> None:
    """Raise what a C call left in errno."""
    if result:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def mount(source: str, target: str, kind: str, flags: int = 0, options: str = "") -> None:
    """mount(2)."""
    done(libc.mount(source.encode(), target.encode(), kind.encode(), flags, options.encode()))


@pytest.mark.parametrize("where", [".jobstatus", ".jobstatus/deep/er"])
def test_12_a_bind_mount_is_not_emptied(node: SlurmNode, where: str) -> None:
    """12: what is mounted in the tree is somebody's data: left alone and said, and removed when it is unmounted."""
    place = f"{node.tree(JOB)}/{where}"
    os.makedirs(place, exist_ok=True)

    def attack() -> str:
        mount(f"{victims(node)}/directory", place, "", flags=0x1000)
        said = well_ended(lambda: node.epilog(JOB))
        assert not os.path.exists(node.tree(JOB))
        return said

    assert "something is mounted in it" in in_own_mounts(attack)
    assert len(beside(node)) == 1
    cleaned(node)


@pytest.mark.skipif(not os.path.exists("/dev/fuse"), reason="no FUSE in this kernel")
@pytest.mark.parametrize("options", ["", ",allow_other"])
def test_12_fuse_that_never_answers(node: SlurmNode, options: str) -> None:
    """12: seen in the kernel's list before it is touched, by the epilog and by the prolog of the next run."""

    def attack() -> str:
        fuse = os.open("/dev/fuse", os.O_RDWR)
        given = f"fd={fuse},rootmode=40755,user_id={ALICE},group_id={ALICE}"
        mount("never", status_of(node), "fuse", flags=6, options=given + options)
        again = well_ended(lambda: node.prolog(JOB))
        assert again == ""
        assert os.listdir(status_of(node)) == []
        return well_ended(lambda: node.epilog(JOB))

    assert "something is mounted in it" in in_own_mounts(attack)
    cleaned(node)


# --- where nothing can be made or removed ----------------------------------------------------------------------------


@pytest.mark.parametrize("options", ["size=8k", "size=20k", "nr_inodes=4", "nr_inodes=9"])
def test_27_28_no_space_and_no_inodes(node: SlurmNode, options: str) -> None:
    """27, 28: what cannot be whole is not there: no directory with half of its keys, no key without its value."""

    def attack() -> str:
        mount("none", node.runtime_dir, "tmpfs", options=f"mode=755,{options}")
        ran = node.prolog(JOB)
        assert ran.returncode == 0
        found = ran.stderr.decode("ascii")
        if os.path.isdir(node.tree(JOB)):
            assert os.stat(status_of(node)).st_uid == ALICE
            for name, keys in ((".machinefeatures", 2), (".jobfeatures", 6)):
                place = f"{node.tree(JOB)}/{name}"
                if os.path.isdir(place):
                    assert len(os.listdir(place)) >= keys
                    for key in os.listdir(place):
                        assert Path(place, key).read_text().endswith("\n")
        told = node.task_prolog(JOB)
        assert told.returncode == 0
        for line in told.stdout.decode("ascii").splitlines():
            path = line.partition("=")[2]
            assert not path or os.path.isdir(path)
        assert node.epilog(JOB).returncode == 0
        return found

    answer = in_own_mounts(attack)
    assert all(line.startswith("drainwise: ") and len(line) <= 200 for line in answer.splitlines())
    assert answer, "the file system was not full"
    node.epilog(JOB)


@pytest.mark.parametrize("hook", ["prolog", "epilog"])
@pytest.mark.parametrize("limit", ["--nofile=12", "--fsize=0", "--as=20000000", "--cpu=1", "--nproc=0"])
def test_28_limits_of_the_process(node: SlurmNode, hook: str, limit: str) -> None:
    """28: slurmd itself may be short of something: no node is drained for it."""
    ran = run_as(0, ["/usr/bin/prlimit", limit, node.hook(hook)], JOB.environment())
    assert ran.returncode == 0
    cleaned(node)


def test_13_a_root_squashed_directory(node: SlurmNode) -> None:
    """13: where root is nobody: the prolog says so, makes nothing, and the job runs."""
    squashed = f"{os.path.dirname(node.runtime_dir)}/network"
    make_directory(squashed, 0o755, BOB)
    write(node.site.slurm.node_file, f"runtime_dir = {squashed}/run\n", 0)
    powerless = "--bounding-set=-dac_override,-dac_read_search,-fowner"
    command = ["/usr/bin/setpriv", powerless, "--inh-caps=-all", node.hook("prolog")]
    ran = run_as(0, command, JOB.environment())
    assert (ran.returncode, b"Permission denied" in ran.stderr) == (0, True)
    assert os.listdir(squashed) == []
    write(node.site.slurm.node_file, f"runtime_dir = {node.runtime_dir}\nwall_limit_secs = 86400\n", 0)


@pytest.mark.parametrize("hook", ["prolog", "epilog"])
def test_47_a_squatted_runtime_directory(node: SlurmNode, hook: str) -> None:
    """47: a user was there first, in a place where everybody may write: nothing is made, nothing removed."""
    public = f"{os.path.dirname(node.runtime_dir)}/tmp"
    make_directory(public, 0o1777, 0)
    make_directory(f"{public}/run", 0o755, ALICE)
    make_directory(f"{public}/run/{JOB.node}", 0o755, ALICE)
    os.symlink(victims(node), f"{public}/run/{JOB.node}/{JOB.number}")
    write(node.site.slurm.node_file, f"runtime_dir = {public}/run\n", 0)
    assert "others may write" in well_ended(lambda: node.run(hook, JOB, 0, {}))
    assert os.listdir(f"{public}/run/{JOB.node}") == [str(JOB.number)]
    write(node.site.slurm.node_file, f"runtime_dir = {node.runtime_dir}\nwall_limit_secs = 86400\n", 0)


def test_55_a_jobstatus_that_cannot_be_given_away(node: SlurmNode) -> None:
    """55: nobody else ever owns it; it is left out and not named, the rest is there."""
    node.epilog(JOB)
    command = ["/usr/bin/setpriv", "--bounding-set=-chown", "--inh-caps=-all", node.hook("prolog")]
    assert "cannot be given to uid" in well_ended(lambda: run_as(0, command, JOB.environment()))
    assert not os.path.exists(status_of(node))
    told = node.task_prolog(JOB).stdout.decode("ascii")
    assert "unset JOBSTATUS\n" in told
    assert f"export JOBFEATURES={node.tree(JOB)}/.jobfeatures\n" in told
    cleaned(node)


# --- channels and timing ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("hook", ["prolog", "epilog"])
def test_43_44_46_nothing_of_the_users_is_run(node: SlurmNode, hook: str) -> None:
    """43, 44, 46: what a user may put into the environment of a root hook, and more: no program, no line, no path."""
    evil = f"{os.path.dirname(node.runtime_dir)}/evil"
    make_directory(evil, 0o755, ALICE)
    for name in ("posix.py", "drainwise.py", "sitecustomize.py", "_signal.py"):
        write(f"{evil}/{name}", f"open({evil + '/ran'!r}, 'w')\nraise SystemExit(3)\n", ALICE)
    for name in ("python3", "sh", "env"):
        write(f"{evil}/{name}", f"#!/bin/sh\necho > {evil}/ran\nexit 3\n", ALICE)
        os.chmod(f"{evil}/{name}", 0o755)
    words = f"'; touch {evil}/ran; $(touch {evil}/ran) | `touch {evil}/ran` \"}}\n\x1b[2J\udcff"
    more = dict.fromkeys(("SLURM_JOB_COMMENT", "SLURM_JOB_WORK_DIR", "SLURM_JOB_USER", "SLURM_JOB_EXTRA"), words)
    more |= {
        "PATH": evil,
        "PYTHONPATH": evil,
        "PYTHONHOME": evil,
        "PYTHONINSPECT": "1",
        "IFS": "/",
        "LD_LIBRARY_PATH": evil,
    }
    more |= {"ENV": f"{evil}/sh", "BASH_ENV": f"{evil}/sh", "SPANK_LD_PRELOAD": evil, "SPANK_SLURM_JOB_ID": "18"}
    assert well_ended(lambda: node.run(hook, JOB, 0, more)) == ""
    assert not os.path.exists(f"{evil}/ran")
    assert os.path.exists(node.tree(JOB)) is (hook == "prolog")


def test_44_values_that_would_lead_elsewhere(node: SlurmNode) -> None:
    """15, 44: one line, nothing made, nothing removed."""
    before = seen(os.path.dirname(node.runtime_dir))
    for name, values in {
        "SLURM_JOB_ID": ("18/../../root", "$(id)", "18\n"),
        "SLURMD_NODENAME": ("..", "../root", "n;id"),
        "SLURM_JOB_UID": ("0x0", "-1", "4294967295"),
    }.items():
        for value in values:
            assert name in well_ended(lambda wrong={name: value}: node.prolog(JOB, **wrong))  # type: ignore[misc]
            if name != "SLURM_JOB_UID":
                assert name in well_ended(lambda wrong={name: value}: node.epilog(JOB, **wrong))  # type: ignore[misc]
    assert seen(os.path.dirname(node.runtime_dir)) == before


def test_44_a_list_of_hosts_without_end(node: SlurmNode) -> None:
    """20, 44: refused in no time."""
    for text in ("n[0-999999999]", "n[" * 40_000, "[1-1000]" * 9, "n[1-60000]," * 9000):
        job = MadeUpJob(19, ALICE, node_list=text)
        assert "not known" in well_ended(lambda job=job: node.prolog(job))  # type: ignore[misc]


def test_51_killed_at_any_moment(node: SlurmNode) -> None:
    """51: a job's tree is whole or not there, and the next prolog of the job makes it whole."""
    whole = 0
    for step in range(20):
        hook = subprocess.Popen([node.hook("prolog")], env=NEXT.environment(), start_new_session=True)
        time.sleep(step * 0.002)
        os.killpg(hook.pid, signal.SIGKILL)
        hook.wait()
        if os.path.exists(node.tree(NEXT)):
            whole += 1
            assert set(os.listdir(node.tree(NEXT))) >= {".machinefeatures", ".jobfeatures", ".jobstatus", "lease"}
            assert len(os.listdir(f"{node.tree(NEXT)}/.jobfeatures")) == 8
            assert os.stat(status_of(node, NEXT)).st_uid == ALICE
            os.rename(node.tree(NEXT), f"{os.path.dirname(node.tree(NEXT))}/.gone.{NEXT.number}.{step}.9")
    assert well_ended(lambda: node.prolog(NEXT)) == ""
    for name in beside(node):
        if name.startswith(".new."):
            os.utime(f"{os.path.dirname(node.tree(NEXT))}/{name}", (1, 1))
    well_ended(lambda: node.epilog(NEXT))
    assert beside(node) == {str(JOB.number)}


def test_48_the_tree_of_an_earlier_job_is_never_the_next_ones(node: SlurmNode) -> None:
    """48: the number comes back for bob while alice's processes are still in their directory."""
    inside = os.open(status_of(node), os.O_RDONLY)
    theirs = MadeUpJob(JOB.number, BOB)
    assert well_ended(lambda: node.prolog(theirs)) == ""
    assert os.stat(status_of(node)).st_uid == BOB
    write_again = f"import os; os.open('used_CPU', os.O_CREAT | os.O_WRONLY, dir_fd={inside})"
    subprocess.run([PYTHON, "-c", write_again], user=ALICE, group=ALICE, pass_fds=[inside], check=True)
    os.close(inside)
    assert os.listdir(status_of(node)) == []
    told = node.task_prolog(JOB).stdout.decode("ascii")
    assert "export" not in told
    cleaned(node)
