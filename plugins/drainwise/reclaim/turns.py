"""Let accounts and users of equal priority give back in turns, by facts alone.

First goes who gave back the fewest cores within the last day. Of those that gave back equally many, the day decides:
a checksum of the day and the name, so that no name is first for ever, and a cycle that is repeated decides the same.
Nothing a pilot says enters here.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import replace

from drainwise.pool.facts import Snapshot
from drainwise.reclaim.history import DAY, History
from drainwise.reclaim.quota import Balance, Over


def with_turns(balance: Balance, snapshot: Snapshot, history: History, now: int) -> Balance:
    """Return the balance with those over quota, and the users of each, in the order of their turns at `now` (UNIX s).

    The worst priority is still first, whatever was given back. An account gave back what its users did.
    """
    taken: Counter[str] = Counter()
    for order in history.orders:
        if order.time > now - DAY:
            taken[order.user] += order.cores
    worst = {one.name: one.priority for one in snapshot.accounts}

    def of_user(user: str) -> tuple[float, int, bytes, str]:
        return -snapshot.user_priorities.get(user, 0.0), taken[user], _lot(user, now), user

    def of_account(over: Over) -> tuple[float, int, bytes, str]:
        gave = sum(taken[user] for user in over.users)
        return -worst.get(over.account, 0.0), gave, _lot(over.account, now), over.account

    over = (replace(one, users=tuple(sorted(one.users, key=of_user))) for one in balance.over)
    return replace(balance, over=tuple(sorted(over, key=of_account)))


def _lot(name: str, now: int) -> bytes:
    return hashlib.sha256(f"{now // DAY}/{name}".encode("utf-8", "surrogatepass")).digest()
