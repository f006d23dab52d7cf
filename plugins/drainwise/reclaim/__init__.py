"""Which pilots are asked to give their cores back: quota → candidates → policy → plan → action.

Knows the facts and the protocol of `drainwise.pool` and no batch system. Decisions are pure: the time is an argument.
"""
