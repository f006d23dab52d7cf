"""HTCondor: starter hooks and startd cron on the node; pool view, orders and configuration on the pool side."""
