"""Decides what a pilot does next and what it reports. Pure, for the runner and the simulator alike."""
