"""A backend by hand: four jobs one after the other, then new priorities the other way round. Runs in a test site.

Called with the backend's name, its table, the jobs' resources and a directory; prints the names as they should begin.
"""

from __future__ import annotations

import json
import sys
import time
from importlib import import_module

from drainwise_launch.backend import Backend, LaunchPlace, Start
from drainwise_launch.choice.resources import parse_resources

NAMES = ("first", "second", "third", "fourth")


def main(name: str, table: str, resources: str, directory: str) -> None:
    """Start them, and tell the new priorities."""
    module = import_module("drainwise_launch.sge.backend" if name == "sge" else f"drainwise_launch.{name}.backend")
    backend: Backend = module.open_backend(json.loads(table), "", LaunchPlace("by hand", "hand", directory, "h"))
    needs = parse_resources(json.loads(resources), "by hand")
    now = time.time() + 1000
    ids = []
    for place, one in enumerate(NAMES):
        job = Start(
            one, f"h-{place}", ("sleep", "1.2"), "/", needs, f"{directory}/{one}.out", priority=now + 100 * place
        )
        ids.append(backend.start(job))
    backend.reprioritise({number: now + 1000 - 100 * place for place, number in enumerate(ids)})
    print(json.dumps(list(reversed(NAMES))))
    backend.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
