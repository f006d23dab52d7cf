"""The configuration of a test cell, and the accounting of its jobs. Pure: text in, text out."""

from __future__ import annotations

import re
from collections.abc import Mapping

from real_daemons.errors import DaemonsError
from sge_cluster.recipe import COMMON_DIR, SGE_CELL, SGE_ROOT, SPOOL_DIR

QUEUE = "main"
MEMORY_PER_SLOT = 2048  # MB
SCRATCH_PER_SLOT = 10_000  # MB
LICENCES = 4

# In /usr/bin and /usr/sbin are scripts that guess what the environment says, for 0.1 s of CPU time each.
PROGRAMS = "/usr/lib/gridengine"
ENVIRONMENT = {
    "PATH": f"{PROGRAMS}:/usr/sbin:/usr/bin:/sbin:/bin",
    "SGE_ROOT": SGE_ROOT,
    "SGE_CELL": SGE_CELL,
    "SGE_QMASTER_PORT": "6444",
    "SGE_EXECD_PORT": "6445",
}
"""What every daemon and every client must have."""

QMASTER_PID = f"{SPOOL_DIR}/qmaster/qmaster.pid"
EXECD_PID = f"{SPOOL_DIR}/execd/central/execd.pid"
QMASTER_LOG = f"{SPOOL_DIR}/qmaster/messages"
EXECD_LOG = f"{SPOOL_DIR}/execd/central/messages"
ACCOUNTING = f"{COMMON_DIR}/accounting"

# A cluster of a few minutes: it looks at its jobs each second and when one comes or goes, and writes at once what it
# knows of those that have ended (Debian's own values: 15 s, never, 15 s).
SCHEDULER = {
    "schedule_interval": "0:0:1",
    "flush_submit_sec": "1",
    "flush_finish_sec": "1",
    "job_load_adjustments": "NONE",
    "load_formula": "slots",
    # In Debian's configuration the priority that qsub is given counts for nothing.
    "weight_priority": "1.000000",
    "weight_urgency": "0.000000",
    "weight_ticket": "0.000000",
    "weight_waiting_time": "0.000000",
}
GLOBAL = {
    "reporting_params": "accounting=true reporting=false flush_time=00:00:01 accounting_flush_time=00:00:00 "
    "joblog=false sharelog=00:00:00",
    "load_report_time": "00:00:05",
    "max_unheard": "00:01:00",
    "shell_start_mode": "unix_behavior",
    "loglevel": "log_info",
    "mailer": "/bin/true",
    "administrator_mail": "none",
    "shepherd_cmd": f"{PROGRAMS}/sge_shepherd",
    "execd_params": "PTF_MIN_PRIORITY=0,PTF_MAX_PRIORITY=0",
}
COMPLEXES = """\
cpu_r     cpu_r     INT <= YES YES 1 0
mem_r     mem_r     INT <= YES YES 0 0
tmp_r     tmp_r     INT <= YES YES 0 0
licence   licence   INT <= YES YES 0 0
"""
"""Consumable resources: cores, memory and scratch of the machine in MB, licences."""

_ACCOUNTING_FIELDS = {
    "owner": 3,
    "name": 4,
    "number": 5,
    "submitted": 8,
    "start": 9,
    "end": 10,
    "failed": 11,
    "exit_status": 12,
}


def edited(text: str, changes: Mapping[str, str]) -> str:
    """Lines `key value` as qconf prints them, with other values; raises DaemonsError for a key that is not there."""
    whole = text.replace("\\\n", " ")
    for key, value in changes.items():
        whole, count = re.subn(rf"(?m)^{re.escape(key)}\s.*$", f"{key} {value}", whole)
        if count != 1:
            raise DaemonsError(f"no single line {key!r} in what qconf prints")
    return whole


def queue(template: str, slots: int) -> str:
    """The one queue of the cell, out of what `qconf -sq` prints."""
    changes = {
        "qname": QUEUE,
        "hostlist": "central",
        "slots": str(slots),
        "load_thresholds": "NONE",
        "shell_start_mode": "unix_behavior",
        "pe_list": "NONE",
    }
    return edited(template, changes)


def host(slots: int) -> str:
    """What the machine has, as the value of `complex_values`."""
    capacity = {"cpu_r": slots, "mem_r": slots * MEMORY_PER_SLOT, "tmp_r": slots * SCRATCH_PER_SLOT}
    return ",".join(f"{name}={amount}" for name, amount in {**capacity, "licence": LICENCES}.items())


def accounted(text: str) -> list[dict[str, str]]:
    """The lines of the accounting file: owner, name, number, submitted, start, end (UNIX s), failed, exit_status."""
    lines = (line.split(":") for line in text.splitlines() if line and not line.startswith("#"))
    return [{name: words[place] for name, place in _ACCOUNTING_FIELDS.items()} for words in lines]
