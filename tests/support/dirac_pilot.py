"""DIRAC's own pilot without a VO: its JobAgent, its job wrapper and its watchdog as a job of a real pool.

A certificate that nobody has signed is the pilot's; a server on loopback (dirac_server.py) stands for the VO's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from condor_pool import CondorPool
from own_certificate import own_certificate
from pilot_clients import bring_certificates
from slurm_cluster import SlurmCluster

DIRAC, _SERVER, _LOG = "/usr/share/dirac", "/usr/share/dirac_server.py", "/srv/dirac.log"
PAYLOAD, PORT = "/usr/share/dirac_payload", 9170
_DN = "/CN=127.0.0.1"
_URLS = {
    "WorkloadManagement": ("Matcher", "JobStateUpdate", "JobMonitoring", "JobManager", "PilotManager"),
    "Accounting": ("DataStore",),
    "RequestManagement": ("ReqManager",),
}
# Works for a part of each tenth of a second, as a machine that is busy lets it too, and writes what it has used.
_PAYLOAD = """#!/usr/bin/python3
import sys, time
part = float(sys.argv[4])
with open(f"{sys.argv[1]}/payload.{sys.argv[3]}", "a", buffering=1) as log:
    print("began", int(time.time()), file=log)
    end = time.monotonic() + float(sys.argv[2])
    while time.monotonic() < end:
        worked, at = time.process_time(), time.monotonic()
        while time.process_time() - worked < 0.1 * part: pass
        time.sleep(max(0.0, at + 0.1 - time.monotonic()))
        print("cpu", time.process_time(), file=log)
    print("ended", int(time.time()), file=log)
"""


def bring_dirac(
    site: CondorPool | SlurmCluster, modules: Path, directory: Path, seconds: list[int], place: str, part: float
) -> None:
    """Bring DIRAC into a pool, with a server that has a payload of each of so many seconds.

    directory: for a certificate. place: in which payloads write down their lives. part: of the time that they work.
    """
    site.copy_in(str(modules), DIRAC)
    bring_certificates(site)
    certificate, key = own_certificate(directory)
    site.copy_in(certificate, f"{DIRAC}/pilot.pem")
    site.copy_in(key, f"{DIRAC}/pilot.key")
    Path(f"{site.root}{DIRAC}/pilot.key").chmod(0o644)
    Path(f"{site.root}{PAYLOAD}").write_text(_PAYLOAD)
    Path(f"{site.root}{PAYLOAD}").chmod(0o755)
    site.copy_in(str(Path(__file__).with_name("dirac_server.py")), _SERVER)
    payloads = [_payload(100 + number, f"{place} {time} {number} {part}") for number, time in enumerate(seconds)]
    words = f"setsid python3 {_SERVER} {PORT} {_LOG} '{json.dumps(payloads)}' </dev/null >/dev/null 2>{_LOG}.err &"
    site.run(["sh", "-c", words])


def _payload(number: int, arguments: str) -> dict[str, object]:
    ad = {"JobName": "test", "JobType": "User", "Executable": PAYLOAD, "Arguments": arguments, "CPUTime": "600"}
    ad |= {"Owner": "pilot", "OwnerGroup": "users", "OwnerDN": _DN}
    text = "".join(f'{name} = "{value}"; ' for name, value in ad.items())
    answer = {"JDL": f"[ JobID = {number}; {text}]", "DN": _DN, "Owner": "pilot", "Group": "users"}
    return {"JobID": number, "PilotInfoReportedFlag": True, **answer}


def asked(site: CondorPool | SlurmCluster) -> list[int]:
    """The times (UNIX s) at which JobAgent asked for a payload."""
    log = Path(f"{site.root}{_LOG}")
    lines = log.read_text().splitlines() if log.exists() else []
    return [int(line.split(" ")[1]) for line in lines if line.startswith("requestJob ")]


def lives(place: Path) -> list[dict[str, float]]:
    """What each payload has written, in the order of its start: `began`, `ended`, and the last `cpu` in seconds."""
    found = []
    for file in sorted(place.glob("payload.*")):
        lines = file.read_text().split("\n")[:-1]
        found.append({what: float(value) for what, _, value in (line.partition(" ") for line in lines)})
    return found


def dirac_script(version: str, element: str, power: float, seconds: int, log: str, cores: int = 1) -> str:
    """Return the job's shell script: JobAgent until it leaves by itself.

    element: its inner computing element, `InProcess` or `Pool`. power: of a core as DIRAC takes it, HS06. seconds: what
    the VO's configuration says that the job may take. log: of the pilot; beside it stands `.left`, when it has.
    """
    systems = {name: _services(name) for name in _URLS}
    known = {name: {"Test": entry} for name, entry in systems.items()} if version.startswith("8.") else systems
    configuration = {
        "DIRAC": {
            "Setup": "Test",
            "Security": {"UseServerCertificate": "no", "SkipCAChecks": "yes"},
            "Setups": {"Test": dict.fromkeys(_URLS, "Test")},
        },
        "Systems": known,
        "LocalSite": {
            "Site": "DIRAC.Test.org",
            "LocalCE": element,
            "NumberOfProcessors": cores,
            "InstancePath": "$PWD",
            "CPUNormalizationFactor": power,
            "CPUTimeLeft": int(power * seconds),
        },
        "AgentJobRequirements": {"ExtraOptions": "pilot.cfg"},
        "Registry": {
            "Users": {"pilot": {"DN": _DN}},
            "Groups": {name: {"Users": "pilot", "Properties": "NormalUser"} for name in ("pilots", "users")},
        },
        "Resources": {"Computing": {"CEDefaults": {"MaxCPUTime": int(power * seconds)}}},
    }
    proxy = (
        "from DIRAC.Core.Security.X509Chain import X509Chain; chain = X509Chain(); "
        f'chain.loadChainFromFile("{DIRAC}/pilot.pem"); chain.loadKeyFromFile("{DIRAC}/pilot.key"); '
        'print(chain.generateProxyToFile("proxy", 86400, "pilots"))'
    )
    lines = [
        "#!/bin/sh",
        "mkdir dirac && cd dirac || exit 1",
        f"cat >pilot.cfg <<END-OF-FILE\n{_text(configuration)}END-OF-FILE",
        f'export PYTHONPATH={DIRAC} LD_LIBRARY_PATH={DIRAC} DIRAC="$PWD" X509_USER_PROXY="$PWD/proxy"',
        "export PYTHONDONTWRITEBYTECODE=1 PYTHONWARNINGS=ignore",
        f"python3 -c '{proxy}' >{log} 2>&1",
        f"{DIRAC}/bin/dirac-agent WorkloadManagement/JobAgent --cfg pilot.cfg"
        f" -o LogLevel=INFO -o LogColor=no >>{log} 2>&1",
        f'echo "left $(date +%s)" >{log}.left',
    ]
    return "\n".join(lines) + "\n"


def _services(system: str) -> dict[str, object]:
    """The section of a system: where its services are, and how often JobAgent looks."""
    urls = {name: f"http://127.0.0.1:{PORT}/{system}/{name}" for name in _URLS[system]}
    agent = {"PollingTime": 1, "SubmissionDelay": 1, "StopAfterFailedMatches": 1000}
    return {"URLs": urls, "Agents": {"JobAgent": agent}}


def _text(section: Mapping[str, object], indent: str = "") -> str:
    """Write a section as DIRAC's configuration."""
    lines = ""
    for name, value in section.items():
        if isinstance(value, dict):
            lines += f"{indent}{name}\n{indent}{{\n{_text(value, indent + '  ')}{indent}}}\n"
        else:
            lines += f"{indent}{name} = {value}\n"
    return lines
