"""Fetch addresses over HTTP, and print what was answered: a program for the network of a site.

Standard input is a JSON list of addresses; standard output is a JSON list of the texts, in the same order.
"""

from __future__ import annotations

import json
import sys
import urllib.error
import urllib.request

_SECONDS = 20.0


def fetch(address: str) -> str:
    """Return the text at an address, also that of an error; "" where nobody answers."""
    try:
        with urllib.request.urlopen(address, timeout=_SECONDS) as answer:  # noqa: S310 - the caller's own loopback
            return str(answer.read().decode())
    except urllib.error.HTTPError as error:
        return str(error.read().decode())
    except OSError:
        return ""


if __name__ == "__main__":
    json.dump([fetch(address) for address in json.load(sys.stdin)], sys.stdout)
