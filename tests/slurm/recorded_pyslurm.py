"""A pyslurm whose jobs are recorded, beside Slurm's commands, which print what real ones printed at the same moment.

Its `Job` has the attributes that pyslurm's own has in that version (`attributes.txt`) and no others, for reading alone;
of one that was not recorded the value is None, as where Slurm has set none. `Jobs` is a mapping of all clusters' jobs.
Of a job that waits for a reservation the sentence for its reason was added to the JSON of 24.11, as real ones have it.
Where squeue's lines were not recorded, they are written from its JSON of the same moment.
"""

from __future__ import annotations

import importlib
from pathlib import Path

from drainwise.slurm.jobs.commands import SlurmCommands
from drainwise.slurm.pool.transport import SlurmTransport, TransportChoice
from whole_jobs import jobs_in, lines_of

FOLDER = Path(__file__).parent / "recorded" / "pyslurm"
SLURM = {"22.05": "22.05.8", "24.11": "24.11.5"}
PYSLURM = {"22.05": "22.5.3", "24.11": "24.11.0"}

SOUND = """
import json, os
__version__ = {version!r}
open({marker!r}, "a").write("imported\\n")
print("libraries may be chatty")
def slurm_api_version():
    return {api!r}
_NAMES = frozenset(open({attributes!r}).read().split())
class Job:
    __slots__ = ("_recorded",)
    def __init__(self, recorded):
        object.__setattr__(self, "_recorded", recorded)
    def __getattr__(self, name):
        if name not in _NAMES:
            raise AttributeError(f"'pyslurm.core.job.job.Job' object has no attribute {{name!r}}")
        return self._recorded.get(name)
    def __setattr__(self, name, value):
        raise AttributeError(f"attribute {{name!r}} is not writable")
class Jobs:
    def __init__(self, jobs=None, frozen=False):
        self.data = {{"test": jobs or {{}}}}
    @staticmethod
    def load(preload_passwd_info=False, frozen=False):
        records = json.load(open({answer!r}))["jobs"]
        return Jobs({{record["id"]: Job(record) for record in records}})
    def __len__(self):
        return sum(len(jobs) for jobs in self.data.values())
    def __iter__(self):
        return (number for jobs in self.data.values() for number in jobs)
    def values(self):
        return (job for jobs in self.data.values() for job in jobs.values())
"""
DIES = "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)"
FAILED_LOAD = "def failed(): {}\nJobs.load = staticmethod(failed)"


class Machine:
    """A machine with Slurm's commands and, once it is put there, a pyslurm."""

    def __init__(self, base: Path, version: str = "24.11", folder: str = "") -> None:
        self._slurm, self._recorded = version, FOLDER / (folder or version)
        self.packages, self.bin_dir, self.marker = base / "packages", base / "bin", base / "marker"
        self.packages.mkdir()
        self.bin_dir.mkdir()
        listed = self._recorded / "squeue.txt"
        if not listed.exists():
            listed = base / "squeue.txt"
            listed.write_text(lines_of(jobs_in((self._recorded / "squeue.json").read_bytes())))
        for name in ("sinfo", "sshare"):
            self.program(name, f"cat {self._recorded}/{name}.txt")
        texts = f"echo squeue >> {self.marker}; cat {self._recorded}/squeue.json"
        self.program("squeue", f"case $* in *--json*) {texts};; *) cat {listed};; esac")
        # Its clock is this machine's.
        config = "date '+Configuration data as of %s'"
        if (self._recorded / "scontrol.txt").exists():
            config += f"; grep -v '^Configuration data' {self._recorded}/scontrol.txt"
        asked = f'[ "$(cat)" ] && {{ {config}; }}'  # a question on its standard input, unless it is for limits
        release = f"echo slurm-wlm {SLURM[version]}"
        self.program("scontrol", f"case $* in --version) {release};; *assoc_mgr*) ;; *) {asked};; esac")
        self.commands = SlurmCommands(str(self.bin_dir), 20.0)

    def program(self, name: str, text: str) -> None:
        (self.bin_dir / name).write_text(f"#!/bin/sh\n{text}\n")
        (self.bin_dir / name).chmod(0o755)

    def install(self, broken: str = "", version: str = "") -> None:
        version = version or PYSLURM[self._slurm]
        package = self.packages / "pyslurm"
        package.mkdir()
        answer, attributes = str(self._recorded / "pyslurm.json"), str(FOLDER / self._slurm / "attributes.txt")
        api = tuple(map(int, SLURM[self._slurm].split(".")))
        text = SOUND.format(version=version, marker=str(self.marker), answer=answer, attributes=attributes, api=api)
        (package / "__init__.py").write_text(f"{text}\n{broken}\n")
        metadata = self.packages / f"pyslurm-{version}.dist-info" / "METADATA"
        metadata.parent.mkdir()
        metadata.write_text(f"Metadata-Version: 2.1\nName: pyslurm\nVersion: {version}\n")
        importlib.invalidate_caches()

    def transport(self, setting: str = "auto", seconds: float = 30.0) -> SlurmTransport:
        return SlurmTransport(self.commands, seconds, setting)

    def choice(self, setting: str = "auto") -> TransportChoice:
        return self.transport(setting).choice()

    def children(self) -> str:
        """The processes of this one, dead ones that nobody has seen off included."""
        return Path("/proc/thread-self/children").read_text()

    def asked(self) -> set[str]:
        """Who was asked for the texts of jobs."""
        words = set(self.marker.read_text().split()) if self.marker.exists() else set()
        return words & {"squeue", "imported"}
