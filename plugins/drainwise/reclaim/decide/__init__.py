"""Make one cycle's plan: requests first, then what waits, by room or by cores."""
