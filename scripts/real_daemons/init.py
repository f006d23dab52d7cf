"""PID 1 of a test site: makes its file system, holds its namespaces, reaps orphans, dies with its parent.

Run as a program (`unshare --mount --uts --ipc --pid --net --fork python3 -I -S init.py ROOT MOUNT_POINT SIZE`). It
prints the host's number of this process, then `ready`, and lives until its standard input is closed. All that it
mounts is private to the namespace, all that the site writes is in a tmpfs, so its death leaves nothing behind.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import select
import signal
import socket
import stat
import struct
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

MS_RDONLY, MS_NOSUID, MS_NOEXEC, MS_REMOUNT, MS_BIND, MNT_DETACH = 1, 2, 8, 32, 4096, 2
SIOCSIFFLAGS, IFF_UP = 0x8914, 1
SIOCSIFADDR = 0x8916
SECOND_ADDRESS = "127.0.0.2"
DEVICES = {"null": (1, 3), "zero": (1, 5), "full": (1, 7), "random": (1, 8), "urandom": (1, 9), "tty": (5, 0)}
LINKS = {"fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2", "ptmx": "pts/ptmx"}

# Looked up before the old root goes: after that no shared library can be loaded any more.
_libc = ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> None:
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")


def _mount(source: str, target: str, kind: str, flags: int = 0, data: str = "") -> None:
    _check(
        _libc.mount(source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), data.encode()),
        f"mount {kind} on {target}",
    )


def private_copy(root: str, mount_point: str, size: str) -> str:
    """Lay a tmpfs of `size` over `root` (which is never changed) and return the path of the merged tree."""
    _mount("site", mount_point, "tmpfs", 0, f"mode=0700,size={size}")
    for name in ("upper", "work", "merged"):
        os.mkdir(f"{mount_point}/{name}", 0o755)
    merged = f"{mount_point}/merged"
    _mount("site", merged, "overlay", 0, f"lowerdir={root},upperdir={mount_point}/upper,workdir={mount_point}/work")
    return merged


def kernel_file_systems(root: str) -> None:
    """Mount proc, a minimal dev, pts and shm in `root`."""
    _mount("proc", f"{root}/proc", "proc", MS_NOSUID | MS_NOEXEC)
    # The kernel's settings are the host's; condor_master, for one, tunes vm.dirty_bytes and pipe-user-pages-soft.
    _mount(f"{root}/proc/sys", f"{root}/proc/sys", "", MS_BIND)
    _mount("", f"{root}/proc/sys", "", MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NOEXEC)
    _mount("dev", f"{root}/dev", "tmpfs", MS_NOSUID, "mode=0755,size=64k")
    for name, (major, minor) in DEVICES.items():
        os.mknod(f"{root}/dev/{name}", stat.S_IFCHR | 0o666, os.makedev(major, minor))
    for name, target in LINKS.items():
        os.symlink(target, f"{root}/dev/{name}")
    for name, kind, data in (
        ("pts", "devpts", "newinstance,ptmxmode=0666,mode=0620"),
        ("shm", "tmpfs", "mode=1777"),
    ):
        os.mkdir(f"{root}/dev/{name}")
        _mount(name, f"{root}/dev/{name}", kind, MS_NOSUID | MS_NOEXEC, data)


def enter(root: str) -> None:
    """Make `root` the root of this mount namespace and let go of the host's, which nobody in the site can reach."""
    os.chdir(root)
    _check(_libc.pivot_root(b".", b"."), "pivot_root")
    _check(_libc.umount2(b".", MNT_DETACH), "umount of the old root")
    os.chdir("/")


def loopback_up() -> None:
    """Switch on `lo`, the only interface of the network namespace, and give it a second address.

    Where there is none but 127.0.0.1, getaddrinfo with AI_ADDRCONFIG, as Slurm asks, finds nothing at all.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        fcntl.ioctl(sock, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP))
        address = socket.inet_aton(SECOND_ADDRESS)
        fcntl.ioctl(sock, SIOCSIFADDR, struct.pack("16sHH4s8x", b"lo:1", socket.AF_INET, 0, address))


def reap_until_closed(parent: int) -> None:
    """Collect ended orphans until the other end of descriptor `parent` is closed."""
    wake, write_end = os.pipe()
    os.set_blocking(write_end, False)
    signal.set_wakeup_fd(write_end)
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    poll = select.poll()
    poll.register(parent, select.POLLIN)
    poll.register(wake, select.POLLIN)
    while True:
        ready = {descriptor for descriptor, _events in poll.poll()}
        if parent in ready and not os.read(parent, 512):
            return
        if wake in ready:
            os.read(wake, 512)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            pass


def main(arguments: list[str]) -> NoReturn:
    """Set the site up, wait for its end."""
    root, mount_point, size = arguments
    # /proc is still the host's, and so is the number it gives this process.
    os.write(1, f"{os.readlink('/proc/self')}\n".encode())
    try:
        os.umask(0)
        merged = private_copy(root, mount_point, size)
        kernel_file_systems(merged)
        enter(merged)
        os.umask(0o022)
        loopback_up()
    except OSError as error:
        os.write(1, f"{error}\n".encode())
        os._exit(1)
    os.write(1, b"ready\n")
    reap_until_closed(0)
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
