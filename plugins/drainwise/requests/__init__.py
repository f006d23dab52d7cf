"""Keep what an administrator ordered: cores or empty nodes by a time."""
