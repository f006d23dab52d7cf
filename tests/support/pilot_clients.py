"""Pilots that nobody changed, as jobs of a real pool: PanDA's own from PyPI, and one that must see no shutdown file.

PanDA's pilot runs whole, without a server: its queue and its one payload stand in files. PILOT_NOKILL is PanDA's own
switch: without it the pilot ends every process of its user on the machine whose parent is process 1.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import urlencode

import pytest

from condor_pool import CondorPool
from slurm_cluster import SlurmCluster

PANDA = "panda-pilot==3.7.0.36"
_PIPES = "standard-pipes==3.13.0"
"""It imports a module that Python has no more since 3.13."""
PANDA_LOOK = 60
"""Seconds between two looks at shutdowntime."""
PANDA_STOP = 600
"""Seconds before shutdowntime at which it stops."""
_QUEUE = {
    **dict.fromkeys(("name", "nickname", "siteid", "panda_resource", "resource", "site", "atlas_site"), "TEST"),
    **dict.fromkeys(("maxtime", "maxrss", "timefloor"), 0),
    "state": "ACTIVE",
    "status": "online",
    "type": "unified",
    "catchall": "",
    "environ": "",
    "params": {},
    "maxwdir": 1000,
    "maxinputsize": 1000,
    "copytools": {"cp": {}},
    "acopytools": {"default": ["cp"]},
    "astorages": {"pw": ["TEST_DISK"]},
    "aprotocols": {},
    "container_type": "",
    "corecount": 1,
}
_STORAGE = {"TEST_DISK": {"name": "TEST_DISK", "pk": 1, "site": "TEST", "state": "ACTIVE", "type": "DATADISK"}}
_TEXTS = (
    *("inFiles", "outFiles", "realDatasets", "realDatasetsIn", "destinationDblock", "destinationDBlockToken"),
    *("prodDBlocks", "prodDBlockToken", "ddmEndPointIn", "ddmEndPointOut", "fsize", "checksum", "scopeIn", "scopeOut"),
    *("fileDestinationSE", "destinationSE", "homepackage", "cmtConfig"),
)
_PAYLOAD = "jobO.payload.tar.gz"
"""So called, the pilot takes it from HARVESTER_WORKDIR and needs no server of transformations."""


def panda_pilot() -> Path:
    """Return the directory of PanDA's pilot, unpacked once into the virtual environment; skips where there is none."""
    place = Path(sys.prefix) / "pilot-clients" / PANDA.replace("==", "-")
    if not place.is_dir():
        with tempfile.TemporaryDirectory() as directory:
            download = ["-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:", "--dest", directory]
            ran = subprocess.run([sys.executable, *download, PANDA], capture_output=True, text=True, check=False)
            if ran.returncode:
                pytest.skip(f"{PANDA} cannot be had: {ran.stderr.strip()[-200:]}")
            [archive] = Path(directory).glob("*.tar.gz")
            place.parent.mkdir(parents=True, exist_ok=True)
            unpack = ["tar", "--extract", "--no-same-owner", "--file", str(archive), "--directory", directory]
            subprocess.run(unpack, check=True)
            target = ["--ignore-requires-python", "--target", f"{directory}/{place.name}"]
            subprocess.run(
                [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", *target, _PIPES], check=True
            )
            shutil.move(f"{directory}/{place.name}", place)
    return place


def bring_panda_pilot(site: CondorPool | SlurmCluster, pilot: Path, target: str) -> None:
    """Copy it into a pool or cluster, with the certificates without which its imports fail."""
    site.copy_in(str(pilot), target)
    bring_certificates(site)


def bring_certificates(site: CondorPool | SlurmCluster) -> None:
    """Copy the certificates of the authorities, in the file in which programs of Debian look for them."""
    ask = "from pip._vendor import certifi; print(certifi.where())"
    found = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True).stdout.strip()
    site.copy_in(found, "/etc/ssl/certs/ca-certificates.crt")


def panda_script(installed: str, log: str, seconds: int, work: str = "sleep") -> str:
    """Return the job's shell script: PanDA's pilot with one payload of so many seconds, which writes down its life.

    installed: where the pilot lies on the node. log: a file that the job's user may write. work: what the payload runs
    with its seconds behind it.
    """
    payload = f"""#!/bin/sh
say() {{ echo "$1 $(date +%s)" >>{log}; }}
say began
trap 'say stopped; kill $!; exit 1' TERM
{work} "$1" & wait $!
say ended
"""
    job = {
        **dict.fromkeys(_TEXTS, ""),
        **dict.fromkeys(("jobsetID", "dispatchDblock", "dispatchDBlockToken", "swRelease", "transferType"), "NULL"),
        **dict.fromkeys(("maxCpuCount", "maxWalltime", "minRamCount", "maxDiskCount", "attemptNr"), 0),
        "StatusCode": 0,
        "PandaID": 1,
        "taskID": 1,
        "jobDefinitionID": 1,
        "jobName": "test",
        "coreCount": 1,
        "logFile": "log.tgz",
        "logGUID": "x",
        "scopeLog": "x",
        "GUID": "x",
        "cloud": "x",
        "sourceSite": "NULL",
        "transformation": _PAYLOAD,
        "jobPars": seconds,
        "prodSourceLabel": "ptest",
        "prodUserID": "x",
        "processingType": "pilot-ptest",
        "currentPriority": 1000,
        "debugMode": False,
        "taskName": "test",
    }
    files = {
        "queuedata.json": json.dumps(_QUEUE),
        "agis_schedconf.cvmfs.json": json.dumps({"TEST": _QUEUE}),
        "cric_pandaqueues.json": json.dumps({"TEST": _QUEUE}),
        "cric_ddmendpoints.json": json.dumps(_STORAGE),
        "agis_ddmendpoints.agis.TEST_DISK.json": json.dumps(_STORAGE),
        "agis_ddmendpoints.agis.ALL.json": json.dumps(_STORAGE),
        "pandaJobData.out": urlencode(job),
        _PAYLOAD: payload,
    }
    lines = ["#!/bin/sh", "mkdir panda && cd panda || exit 1"]
    lines += [f"cat >{name} <<'END-OF-FILE'\n{text.rstrip()}\nEND-OF-FILE" for name, text in files.items()]
    lines += [
        # A file that ends with a line end is no job to it.
        'printf %s "$(cat pandaJobData.out)" >job && mv job pandaJobData.out',
        f"chmod 755 {_PAYLOAD}",
        f'sed "s#^cache_dir:.*#cache_dir: $PWD#" {installed}/pilot/util/default.cfg >pilot.cfg',
        'export HARVESTER_WORKDIR="$PWD" HARVESTER_PILOT_CONFIG="$PWD/pilot.cfg" PILOT_NOKILL=1',
        "export PYTHONDONTWRITEBYTECODE=1",
        f'python3 {installed}/pilot.py -q TEST --pilot-user generic -w generic -a "$PWD" -z -t -u -j ptest'
        f" --cleanup False --use-https False >{log}.pilot 2>&1",
        f'echo "left $(date +%s)" >>{log}',
    ]
    return "\n".join(lines) + "\n"


def watching_script(log: str, notice: str) -> str:
    """Return a job's shell script that looks for shutdown files all its life, five times a second, until SIGTERM.

    log: a file that the job's user may write; notice: the path of its `.site.ad`, which it may see.
    """
    return f"""#!/bin/sh
say() {{ echo "$1 $(date +%s)" >>{log}; }}
trap 'say term; exit 0' TERM
say began
while :; do
  for file in "$MACHINEFEATURES/shutdowntime" "$JOBFEATURES/shutdowntime_job"
  do [ -e "$file" ] && say "saw $file"; done
  [ -e "{notice}" ] && [ -z "$told" ] && told=yes && say notice
  sleep 0.2
done
"""


def said(log: Path) -> dict[str, int]:
    """Return what a script has written: each word with its first time (UNIX s)."""
    found: dict[str, int] = {}
    if log.exists():
        for line in log.read_text().splitlines():
            what, _, time = line.rpartition(" ")
            found.setdefault(what, int(time))
    return found
