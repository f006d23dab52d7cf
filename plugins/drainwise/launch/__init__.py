"""Which job starts next and where it runs: buckets, pressure, requests, and one protocol for every batch system."""
