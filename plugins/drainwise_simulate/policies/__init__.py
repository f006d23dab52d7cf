"""The policies that a simulation compares beside the agent's own, and how one decides again and again."""
