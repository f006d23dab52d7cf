"""The URLs of a job's features, where its site serves them: what its variables hold instead of paths.

Only the two directories that the job reads: what it reports in `$JOBSTATUS` stays a local directory. A hook imports
this file.
"""

from __future__ import annotations

from drainwise.features.job_token import features_url
from drainwise.node import DIRECTORIES, with_twins

SERVED = ("MACHINEFEATURES", "JOBFEATURES")
"""The variables that may hold a URL."""


def with_urls(variables: dict[str, str], site: str, tree: str, token: str) -> dict[str, str]:
    """Return a job's variables with URLs for the directories that are served.

    site: the server's URL. tree: the path of the job's tree below the server's root; token: its token.
    """
    found = dict(variables)
    for name in SERVED:
        for twin in with_twins(name):
            if twin in found:
                found[twin] = features_url(site, tree, token, DIRECTORIES[name])
    return found
