"""Slurm: the hooks and the agent of a node; the pool view and its actions.

The names are those of two files in a job's tree on its node, and of one beside all trees.
"""

LEASE = "lease"
"""What the prolog knew of the job; root's alone."""
COMPLETE = "complete"
"""An empty file: what Slurm knows of the job stands in its features, as far as it ever will."""
AGENT_FIFO = "agent.wake"
"""The FIFO in the runtime directory by which a prolog wakes the node's agent; the agent makes it."""
ENDLESS = 365 * 86400
"""Seconds from a job's start to the end that Slurm gives to one without a time limit."""
