"""Runs on a Slurm node as a service of root: publishes what pilots report and brings them site notices.

Needs the standard library alone.
"""
