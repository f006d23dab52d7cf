"""The reclaim agent as it runs: one cycle after the other, one agent per pool, told by signals, telling systemd.

Knows `reclaim`, the journal and the protocol of `drainwise.pool`, and no batch system. The batch system is the only
truth: whatever the agent remembers only makes it more careful.
"""
