"""Jobs as slurmctld has them: its commands, their answers, and what stands in a job's AdminComment.

Runs on nodes as root and beside slurmctld; needs the standard library alone.
"""
