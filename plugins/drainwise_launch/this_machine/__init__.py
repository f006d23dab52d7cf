"""Runs the launcher's jobs as processes of this machine: a backend without a batch system."""
