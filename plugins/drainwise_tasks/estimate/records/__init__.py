"""Reads records of finished payloads, one reader for each format."""
