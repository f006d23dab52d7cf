"""How much a site would lose by each way of taking cores back, played on a log of real jobs."""
