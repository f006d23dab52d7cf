"""Who sent a pilot to the site, for a virtual organisation's ticket: the facts, their bounds, the site's rules."""
