"""On real pools: alice's pilots fill the pool, bob waits, and those that cost least give their cores back."""
