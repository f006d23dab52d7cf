"""What `status` and `doctor` say on a pool on which packages of drainwise are installed."""

from __future__ import annotations

import json
import re
import sys

import drainwise
from condor_pool import CondorPool

SHOWS = """import tarfile
with tarfile.open("b.tar.gz") as bundle:
    for one in bundle:
        print(bundle.extractfile(one).read().decode())
"""


def versions_and_orders(pool: CondorPool) -> tuple[dict[str, int], int]:
    """What this version's `status` says of the nodes' versions, and of how many pilots it knows the deadline."""
    shown = json.loads(pool.run_outside([sys.executable, "-m", "drainwise", "status", "--json"]).stdout)
    return shown["versions"], sum(one["ordered_deadline"] is not None for one in shown["pilots"])


def shows_version(pool: CondorPool, version: str) -> bool:
    """Whether this version's `status` says that the only node is of `version`."""
    return versions_and_orders(pool)[0] == {version: 1}


def assert_doctors(pool: CondorPool) -> None:
    """What `doctor` says on the node and on the central machine, as root and as a plain user; what a bundle holds."""
    node = json.loads(pool.run(["sh", "-c", "drainwise doctor --json || true"], node="node1").stdout)
    [batch] = node["facts"]["batch"]
    assert (batch["roles"], batch["in_force"], batch["whole"]) == (["execute"], True, False), batch
    assert [one["version"] for one in batch["nodes"]] == [drainwise.__version__]
    verdicts = {(one["topic"], one["severity"]) for one in node["findings"]}
    assert ("in force", "ok") in verdicts and ("fresh", "missing") not in verdicts, node
    assert {one["version"] for one in node["facts"]["rendered"]} == {drainwise.__version__}
    central = json.loads(pool.run(["sh", "-c", "drainwise doctor --json || true"], node="central").stdout)
    [batch] = central["facts"]["batch"]
    assert (batch["agent_here"], batch["whole"], batch["rights"]["allowed"]) == (True, True, True), central
    text = f"drainwise doctor; echo code $?; cd; drainwise doctor --bundle b.tar.gz >out; python3 -c '{SHOWS}'; true"
    plain = pool.run(["sh", "-c", text], node="node1", user="alice")
    assert "next: " in plain.stdout and re.search("code [01]\n", plain.stdout) and plain.stderr == ""
    bundle = plain.stdout.partition("code ")[2]
    assert "NODE" in bundle or "HOST" in bundle
    assert "node1" not in bundle and "alice" not in bundle
