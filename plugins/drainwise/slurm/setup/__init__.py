"""Runs as the administrator: renders the configuration of a cluster's machines and checks a live cluster."""
