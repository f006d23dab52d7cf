"""Made-up lines of PanDA's records."""

from __future__ import annotations

HEADING = "creationtime,starttime,endtime,user,corecount,jobstatus"


def record(cores: int, minutes: int, user: str = "u", status: str = "finished") -> str:
    """Return the line of a job that ran for so many minutes, less than 14 hours."""
    return f"x,2025-01-20 10:00:00,2025-01-20 {10 + minutes // 60}:{minutes % 60:02}:00,{user},{cores},{status}"
