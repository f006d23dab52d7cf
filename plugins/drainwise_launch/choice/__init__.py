"""Decides which job starts next and where: buckets, pressure, requests. Pure."""
