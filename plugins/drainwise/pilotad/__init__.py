"""Pilot ↔ site: `.pilot.ad`, `.site.ad` and `$JOBSTATUS`, read from and written to a directory its user controls."""
