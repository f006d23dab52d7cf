"""The reclaim agent as it runs: cycle after cycle, one agent per pool, steered by signals, reporting to systemd.

Knows `reclaim`, the journal and the protocol of `drainwise.pool.facts`, and no batch system. The batch system is the
only truth: whatever the agent remembers only makes it more careful.
"""
