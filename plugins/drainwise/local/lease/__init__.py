"""One lease: its start, the lease supervisor that keeps it, its files and its end."""
