"""Runs on a Slurm node at a job's start and end: prolog and epilog as root, task prolog as the job's user.

Needs the standard library alone.
"""
