"""Runs beside the negotiator: ads as HTCondor's bindings give them, read as plain values. Needs these bindings."""
