"""Who sent the jobs of a pool: which attributes of a job tell it, and the question for them."""
