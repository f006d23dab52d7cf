"""Pilots that lie, played against a journal of what their user's pilots promised and what was lost."""
