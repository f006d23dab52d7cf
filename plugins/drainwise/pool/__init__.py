"""A pool as the reclaim agent knows it: pilots, accounts, the snapshot, and the protocol of each batch system.

Runs on the pool side; knows no batch system.
"""
