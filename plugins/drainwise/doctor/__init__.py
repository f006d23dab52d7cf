"""Runs on any machine of a site: what it is, what is installed, rendered and running there, and what to do next."""
