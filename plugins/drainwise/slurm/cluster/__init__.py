"""Runs beside slurmctld: what the cluster has, its nodes, partitions and reservations, and its rules for jobs."""
