"""What real collectors of HTCondor told, kept as text: `# <kind> <UNIX s>` before the ads of each kind."""

from __future__ import annotations

from pathlib import Path

import classad2

from drainwise.htcondor.ads.query import plain
from drainwise.htcondor.pool.collector import ACCOUNTING_ATTRIBUTES, SLOT_ATTRIBUTES, SUBMITTER_ATTRIBUTES

_RECORDED = Path(__file__).parents[1] / "tests" / "htcondor" / "recorded"
_ATTRIBUTES = {"Startd": SLOT_ATTRIBUTES, "Accounting": ACCOUNTING_ATTRIBUTES, "Submitter": SUBMITTER_ATTRIBUTES}

GROUPS, USERS, ASKED = "23.9.6-groups-waiting", "25.14.1-users-waiting", "25.14.1-groups-asked"


def recorded_ads(name: str) -> tuple[dict[str, list[dict[str, object]]], int]:
    """The values of the ads by their kind, made anew at each call, and when they were told (UNIX s)."""
    kinds: dict[str, list[dict[str, object]]] = {}
    taken = 0
    for part in (_RECORDED / f"{name}.ads").read_text(encoding="utf-8").split("# ")[1:]:
        head, _, body = part.partition("\n")
        kind, moment = head.split()
        taken = int(moment)
        kinds[kind] = [dict(plain(ad, _ATTRIBUTES[kind])) for ad in classad2.parseAds(body)]
    return kinds, taken
