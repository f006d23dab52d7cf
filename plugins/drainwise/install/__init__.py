"""Puts files in place on a machine of the site, as root: the package, rendered files, the agent's unit."""
