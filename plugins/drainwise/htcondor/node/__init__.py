"""Runs on an execute node: hooks as the job's user, the startd cron as HTCondor's user; the standard library alone.

The names are those of the attributes that a node publishes on its slots, beside the reports'.
"""

from __future__ import annotations

CRON_HEARTBEAT = "PilotCronHeartbeat"
"""Time of the node's last cron run (UNIX s)."""
CRON_VERSION = "PilotCronVersion"
"""The version of drainwise on the node, as its cron was started last."""
UNUSABLE = "PilotNodeUnusable"
"""The paths of files that jobs need and cannot use, with blanks between; "" when all can be used."""
ORDERS = "PilotReclaimOrders"
"""The text of PILOT_RECLAIM; nothing on the node obeys this attribute."""
WITHDRAWN_SHOWN = "PilotReclaimWithdrawn"
"""True on a slot whose run had its order withdrawn."""
WITHDRAWN_SHOWN_BEFORE = "PilotReclaimTakenBack"
"""The name of the same in a drop-in of an earlier version, until the node is rendered again."""
ORDERS_SINCE = "PilotOrdersSince"
"""Since when a startd that starts there takes orders (UNIX s): see `knobs`."""
HOOKS_SINCE = "PilotHooksSince"
"""Since when all jobs that start there find the hooks (UNIX s)."""
HOOK_RAN = "PilotHookRan"
"""True on the slot of a silent job that started before that and has the hooks."""
CLAIM_VACATE = "PilotVacateTime"
"""MachineMaxVacateTime of the slot's claim (s), where a new one has another."""
UPDATE_INTERVAL = "PilotUpdateInterval"
"""Seconds between two updates of the startd."""
CLIENT = "PilotClient"
"""Which kind of client the slot's job is, by the attributes of its own ad; only where rows of the site ask for such."""
WALL_LIMIT = "PilotWallLimit"
"""The site's limit on the run time of a job (s)."""
