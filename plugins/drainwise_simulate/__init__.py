"""A site's losses by each way of taking cores back, simulated on a log of real jobs."""
