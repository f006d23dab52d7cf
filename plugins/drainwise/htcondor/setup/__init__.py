"""Runs as the administrator: renders the configuration of HTCondor's machines and checks a live pool."""
