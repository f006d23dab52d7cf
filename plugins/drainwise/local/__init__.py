"""The embedded batch system: leases are processes on this machine."""
