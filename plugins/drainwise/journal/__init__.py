"""Journal decisions, acts and waste as JSON lines: written, read back as memory, explained and summed.

Knows the decisions of `reclaim` and the facts of `pool`, and no batch system.
"""
