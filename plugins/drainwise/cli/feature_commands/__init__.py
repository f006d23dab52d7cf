"""`drainwise features`, apart from show and check: what a job asks, the server, virtual machines."""
