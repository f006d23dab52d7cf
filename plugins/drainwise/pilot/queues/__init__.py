"""Takes a pilot's payloads from a directory or a command."""
