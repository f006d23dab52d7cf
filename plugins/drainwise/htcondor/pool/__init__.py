"""Runs beside the negotiator: reads the collector, shares, orders and endings of a pool. Needs HTCondor's bindings."""
