"""Runs a launch: submits, asks, records results; one launcher per state directory."""
