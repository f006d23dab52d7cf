"""The token of a job: a secret in its tree, without which a server of features gives nothing of the tree away.

It stands in the URLs that the job's variables hold, `<site's URL>/<tree>/~<token>/.jobfeatures`: the draft wants a key
to be found by adding its name to the variable, so the token can be no header and no query. A hook imports this file.
"""

from __future__ import annotations

import posix

from drainwise.common.local_file import Held, small_text

TOKEN_FILE = ".features-token"  # noqa: S105 - a name
TOKEN_MARK = "~"  # noqa: S105 - likewise
"""What the part of a URL begins with that is a token; no tree's name has it."""
LONGEST_TOKEN = 64
_BYTES = 16
_CREATE = posix.O_WRONLY | posix.O_CREAT | posix.O_EXCL | posix.O_NOFOLLOW | posix.O_CLOEXEC


def make_token(tree: str, owner: tuple[int, int] | None) -> str:
    """Make the token of the tree at this path, and return it. One that is there is replaced.

    owner: uid and gid of the job, who alone may read the file then, for a caller with root's rights and a tree of
    root's; None in a tree of the job's own, which is closed to others: the server of the node need not be root there.
    Raises OSError.
    """
    token = posix.urandom(_BYTES).hex()
    path = f"{tree}/{TOKEN_FILE}"
    if TOKEN_FILE in posix.listdir(tree):
        posix.unlink(path)
    mode = 0o644 if owner is None else 0o400
    with Held(posix.open(path, _CREATE, mode)) as descriptor:
        posix.write(descriptor, token.encode("ascii") + b"\n")
        posix.fchmod(descriptor, mode)
        if owner is not None:
            posix.fchown(descriptor, *owner)
    return token


def read_token(tree: str) -> str | None:
    """Read the token of the tree at this path; None where there is none for us."""
    return small_text(f"{tree}/{TOKEN_FILE}", LONGEST_TOKEN)


def features_url(site: str, tree: str, token: str, directory: str) -> str:
    """Return the URL of a directory of features.

    site: the server's URL, which may end with a slash. tree: the path of the job's tree below the server's root.

    >>> features_url("https://n1:8443/", "17", "c0ffee", ".jobfeatures")
    'https://n1:8443/17/~c0ffee/.jobfeatures'
    """
    return f"{site.rstrip('/')}/{tree}/{TOKEN_MARK}{token}/{directory}"
