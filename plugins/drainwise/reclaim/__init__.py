"""Decide which pilots are ordered to give their cores back: quota → columns → figures → policy → plan.

Knows the facts and the protocol of `drainwise.pool.facts` and no batch system.
Decisions are pure: the time is an argument.
"""
