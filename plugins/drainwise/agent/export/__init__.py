"""What the agent shows of itself beside its log: metrics, a page with its status as JSON, and an ad in the pool."""
