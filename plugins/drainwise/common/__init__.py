"""Building blocks that know neither batch systems nor pilots: files, processes, limits.

Runs on every machine; needs the standard library alone.
"""
