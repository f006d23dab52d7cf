"""Reads what a person wrote for the launcher: the launch file and its jobs."""
