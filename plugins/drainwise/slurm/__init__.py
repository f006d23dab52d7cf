"""Slurm: the hooks and the agent of a node; the pool view and its actions.

The names are those of two files in a job's tree on its node.
"""

LEASE = "lease"
"""What the prolog knew of the job; root's alone."""
COMPLETE = "complete"
"""An empty file: what Slurm knows of the job stands in its features, as far as it ever will."""
