"""Runs beside the negotiator: finds which kinds of jobs wait in a pool, and on which of its slots each could run."""
