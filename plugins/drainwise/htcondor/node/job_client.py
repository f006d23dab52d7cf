"""Which kind of client a job is, by its own ad: imported only where the site file has `[clients]`."""

from __future__ import annotations

from drainwise.facts.client_rules import ACCOUNT, ATTRIBUTE, USER, user_texts
from drainwise.htcondor.node import sandbox
from drainwise.node.ad_text import literals, string
from drainwise.node.hook import read_bounded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from drainwise.facts.client_rules import ClientRules
    from drainwise.facts.clients import ClientProfile

_OWNER, _USER = "Owner", "User"
_GROUP, _CHARGED = "AcctGroup", "AccountingGroup"


def client_in(ad: bytes, rules: ClientRules) -> ClientProfile | None:
    """Return the profile of the job of this ad; None where the ad names no owner: then nothing of the job is known."""
    asked = rules.attributes()
    job = literals(ad, (_OWNER, _USER, _GROUP, _CHARGED, *asked))
    owner, user, group, charged = (string(job, name) for name in (_OWNER, _USER, _GROUP, _CHARGED))
    if not owner and not user:
        return None
    facts: dict[str, tuple[str, ...]] = {
        ATTRIBUTE + name: (attribute_text(job[name]),) for name in asked if name in job
    }
    facts[USER] = user_texts((user, owner))
    # The accountant's name of it is the group, and the user below it or in no group.
    facts[ACCOUNT] = tuple(text for text in (group, charged, (charged or "").rpartition(".")[0], user) if text)
    return rules.profile_of(facts)


def client_of_job(ad: str, rules: ClientRules, directory: int | None = None) -> ClientProfile | None:
    """Return the profile of the job whose ad this is, a path from the open `directory`; None where it cannot be read.

    The job's user can replace it.
    """
    try:
        return client_in(read_bounded(ad, sandbox.AD_LIMIT, directory), rules)
    except OSError:
        return None


def attribute_text(value: object) -> str:
    """Return a value of an ad as patterns compare it: true and false in small letters, numbers as they are written."""
    return str(value).lower() if isinstance(value, bool) else str(value)
