"""Features directories over http or https: read-only, only keys of the table, a job's own for who shows its token."""
