"""The accounts of a snapshot: what each uses and wants, what it is owed by the accountant's records, and priorities."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from drainwise.htcondor.shares.accounting import (
    NO_GROUP,
    AccountingRecord,
    Accounts,
    Use,
    endless,
    fair_shares,
    new_user_priority,
    owed_in_trees,
)
from drainwise.pool.facts import Account


def uses_of(
    held: Iterable[tuple[str, int]],
    waiting: Mapping[str, tuple[float, float]],
    records: Sequence[AccountingRecord],
    known: Mapping[str, AccountingRecord],
    names: Accounts,
    ratio: float,
) -> dict[str, Use]:
    """Return use and demand by account; a group that has a quota is there even when it uses nothing.

    held: the submitter and the cores of each slot in use. waiting: jobs and cores that wait, by submitter. known: the
    groups by name. ratio: cores for a slot weight of 1.
    """
    in_use: dict[str, float] = defaultdict(float)
    wanted: dict[str, float] = defaultdict(float)
    jobs: dict[str, float] = defaultdict(float)
    slots: dict[str, int] = defaultdict(int)
    for submitter, taken in held:
        in_use[names[submitter]] += taken
        slots[names[submitter]] += 1
    for submitter, (number_of_jobs, cores) in waiting.items():
        account = names[submitter]
        jobs[account] += number_of_jobs
        wanted[account] += cores
    by_name = {record.name: record for record in records}
    accounts = {*in_use, *wanted, *(record.name for record in known.values() if record.quota > 0)}
    newcomer = new_user_priority(records)
    return {
        name: Use(
            in_use[name],
            wanted[name],
            jobs[name],
            accounted=in_use[name] + _unseen(by_name.get(name), slots[name]) * ratio,
            priority=by_name[name].priority if name in by_name else newcomer,
        )
        for name in accounts
    }


def _unseen(record: AccountingRecord | None, seen: int) -> float:
    """Return the weight of the slots that an account is charged for beside those `seen`: it may not have all ads.

    Of slots that are seen their own size counts: a match of a partitionable slot is charged as the whole slot at first.
    """
    if record is None or record.slots <= seen:
        return 0.0
    return record.used * (1 - seen / record.slots)


def accounts_of(
    uses: Mapping[str, Use],
    records: Sequence[AccountingRecord],
    known: Mapping[str, AccountingRecord],
    ratio: float,
    cores: int,
) -> tuple[Account, ...]:
    """Return the accounts by name; cores: of the whole pool, others: see `uses_of`."""
    owed = _owed(uses, records, known, ratio, cores)
    shares = _owed(endless(uses), records, known, ratio, cores)
    unsure = _unsure(uses, records, known)
    return tuple(_account(name, use, owed[name], shares[name], name in unsure) for name, use in sorted(uses.items()))


def _owed(
    uses: Mapping[str, Use],
    records: Sequence[AccountingRecord],
    known: Mapping[str, AccountingRecord],
    ratio: float,
    cores: int,
) -> dict[str, float]:
    """Return the cores owed to each account: a group's part of its quota; for others, a fair share of the rest."""
    quotas = owed_in_trees(
        {record.name: record.quota * ratio for record in known.values()},
        {name: use.in_use + use.wanted for name, use in uses.items()},
        frozenset(record.name for record in known.values() if not record.surplus),
    )
    outside = {name: use for name, use in uses.items() if name not in quotas}
    left = float(cores)
    if known:
        left = next((record.quota * ratio for record in records if record.name == NO_GROUP), 0.0)
    return {**quotas, **fair_shares(left, outside)}


def _unsure(
    uses: Iterable[str], records: Iterable[AccountingRecord], known: Mapping[str, AccountingRecord]
) -> frozenset[str]:
    """Return the accounts whose share is unknown: their record is odd, or one in their tree."""
    unsure = {record.name for record in records if record.unsure}
    if not unsure:
        return frozenset()
    in_groups = {group.name for group in known.values()}
    roots = {_root(name) for name in unsure if name in in_groups}
    return frozenset(
        name for name in uses if (_root(name) in roots if name in in_groups else unsure.intersection((name, NO_GROUP)))
    )


def _root(group: str) -> str:
    return group.lower().partition(".")[0]


def _account(name: str, use: Use, owed: float, share: float, unsure: bool) -> Account:
    """Make the account; one that waits is not counted poorer where fewer slots report than the accountant charges.

    unsure: what it is owed cannot be said, so it is owed what it has.
    """
    in_use = max(use.in_use, min(use.accounted, owed))
    return Account(
        name,
        cores_in_use=in_use,
        cores_owed=in_use if unsure else owed,
        cores_wanted=0.0 if unsure else use.wanted,
        priority=use.priority,
        cores_per_job=max(1.0, use.wanted / use.jobs) if use.jobs > 0 and not unsure else 1.0,
        cores_share=in_use if unsure else share,
        cores_running=use.in_use,
    )


def user_priorities(claimed: Iterable[tuple[str, str | None]], records: Iterable[AccountingRecord]) -> dict[str, float]:
    """Return the effective priority by owner; the worst, where one runs under several accounting names.

    claimed: owner and submitter of each slot in use.
    """
    by_submitter = {record.name: record.priority for record in records if not record.is_group}
    priorities: dict[str, float] = {}
    for owner, submitter in claimed:
        priorities[owner] = max(priorities.get(owner, 0.0), by_submitter.get(submitter or "", 0.0))
    return priorities
