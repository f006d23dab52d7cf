"""Runs beside slurmctld: reads jobs, nodes and shares, gives orders, reads endings."""
