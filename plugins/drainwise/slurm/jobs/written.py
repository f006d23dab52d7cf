"""What a job's submitter wrote, in the line that `scontrol --oneliner show job` prints of it: its name and its comment.

They stand there as they are. Who spells the name of a fact in them cuts his own text short, and reaches no other fact.
"""

from __future__ import annotations

import re

from drainwise.slurm.jobs.job import MOST_TEXT

_NAME, _OWNER, _COMMENT = " JobName=", " UserId=", " Comment="
_AFTER = re.compile(" (?:AdminComment|SystemComment|StdErr)=")


def name_and_comment(line: str) -> tuple[str, str]:
    """Return the job's name and its comment, the first MOST_TEXT characters of each.

    "" for one that is not there, or whose mark stands there more than once.
    """
    name = line.partition(_NAME)[2].partition(_OWNER)[0] if line.count(_NAME) == 1 else ""
    comment = _AFTER.split(line.partition(_COMMENT)[2], maxsplit=1)[0].rstrip() if line.count(_COMMENT) == 1 else ""
    return name[:MOST_TEXT], comment[:MOST_TEXT]
