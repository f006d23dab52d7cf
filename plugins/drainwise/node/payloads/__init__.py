"""The payloads of jobs as their node sees them from outside: processes, profiles, trees, and what is told of them."""
