"""The commands by group, in the order in which `drainwise --help` shows them."""

from __future__ import annotations

GROUPS = {
    "watch": {
        "status": "who is owed and uses what, and every pilot with its waste",
        "plan": "what a reclaim cycle would do now, and why; what if N cores were needed",
        "explain": "why a pilot got an order, each time, and what became of it",
        "report": "who got an order, left in time and was vacated, and what was promised and wasted",
        "snapshot": "print what is known of the pool as JSON",
    },
    "act": {
        "reclaim": "order the pilots that cost least to give back cores that others are owed",
        "drain": "drain nodes: give their jobs deadlines so that the nodes are empty by a time",
        "shutdown": "plan, change, cancel or show the shutdown of this machine that its jobs are notified of",
    },
    "set up": {
        "config": "check the site file; write the batch system's configuration from it",
        "install": "put this package and a rendered tree in place on a machine where jobs run",
        "check": "inspect a live pool: what is missing or dangerous, with the line to add",
        "doctor": "what this machine is, has and runs, and what to do next; a bundle for a bug report",
        "local": "the embedded batch system: leases are processes on this machine",
    },
    "pilots and jobs": {
        "pilot": "run payloads on leased cores, and tell the site what it would waste",
        "features": "machine and job features: show, check, ask, serve",
        "launch": "run a list of jobs with dependencies: on this machine or in a batch system",
        "validate": "measure a request on 1, 2, 4 and 8 cores before it is submitted",
    },
    "study": {
        "estimate": "what tasks need, learned from their finished payloads; how far requests were off",
        "simulate": "what each way of taking cores back wastes, on a log of real jobs",
    },
}
"""The commands of each group: a module of that name in `cli` has each as COMMAND, here or in a neighbour."""

COMMANDS = {name: text for group in GROUPS.values() for name, text in group.items()}
