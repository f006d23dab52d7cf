"""Runs where a user submits: starts the launcher's jobs through a schedd."""
