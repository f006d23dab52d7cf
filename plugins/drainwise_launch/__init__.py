"""Start the jobs of a list in their order: buckets, pressure, requests, and one protocol for every batch system."""
