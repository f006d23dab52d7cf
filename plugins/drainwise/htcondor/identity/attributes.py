"""Who sent a job of HTCondor, by the attributes of its ad.

The access point sets those of the credential that it was shown, and ignores a user who sets them (HTCondor's
SYSTEM_SECURE_JOB_ATTRS); an HTCondor-CE renames those of its token to `orig_…` when it routes a job (its
01-ce-router-defaults.conf), and its job router sets RoutedFromJobId. A job that came through no CE may have set the
latter two itself. Those of glideinWMS (its cgWCreate.py) and Harvester are what a factory writes into its jobs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from drainwise.htcondor.ads.values import Ad
from drainwise.identity.identity import PilotIdentity, identity_of
from drainwise.identity.rules import IdentityRules

_SUBJECTS = ("x509userproxysubject", "orig_AuthTokenSubject", "AuthTokenSubject")
_SOURCES: Mapping[str, Sequence[str]] = {
    "vo": ("x509UserProxyVOName",),
    "fqan": ("x509UserProxyFirstFQAN", "orig_AuthTokenGroups", "AuthTokenGroups"),
    "subject": _SUBJECTS,
    "issuer": ("orig_AuthTokenIssuer", "AuthTokenIssuer"),
    "ce_job": ("RoutedFromJobId",),
    "factory": ("GlideinFactory", "GLIDEIN_Factory", "harvesterID"),
    "entry": ("GlideinEntryName", "GLIDEIN_Entry_Name", "harvesterWorkerID"),
}
"""Of each fact the attributes that tell it; the first that a job has counts."""

_OF_CREDENTIALS = ("x509", "AuthToken")
"""How the attributes begin that the access point sets."""
_PLAIN = 'regexp("^((\\"[^\\"]{0,300}\\"|[0-9]{1,18}|);){%d}$", strcat(%s))'
"""Whether attributes are short texts and numbers, or not there: of an expression only its writing is looked at. One
pattern for all, since a schedd compiles it for each job; no backslash, which HTCondor reads differently on its way.
"""
_RUNNING = "JobStatus >= 2 && JobStatus != 5 && JobCurrentStartDate >= {}"

_LARGEST = 10**18


def attribute_groups(rules: IdentityRules) -> tuple[tuple[str, ...], ...]:
    """Return the attributes that a site wants to know: those of credentials, and those that submitters may set.

    Of a job with anything else than short texts and numbers in one group, nothing of that group is told.
    """
    wanted = [name for names in _SOURCES.values() for name in names if rules.with_subject or name not in _SUBJECTS]
    own = tuple(name for name in wanted if name.startswith(_OF_CREDENTIALS))
    return own, tuple(name for name in wanted if name not in own)


def constraint(attributes: Sequence[str], since: int) -> str:
    """Return the constraint for running jobs that have begun since then (UNIX s) and whose attributes are plain."""
    written = ", ".join(f'unparse({name}), ";"' for name in attributes)
    return f"{_RUNNING.format(since)} && {_PLAIN % (len(attributes), written)}"


def identity_in(ad: Ad, rules: IdentityRules) -> PilotIdentity | None:
    """Return who sent a job; None where nothing tells. An attribute that is no text or number is none."""
    values = {name: text for name, names in _SOURCES.items() if (text := first_text(ad, names))}
    if not values:
        return None
    if values.get("fqan", "").startswith("/"):
        values["fqan"] = values["fqan"].partition(",")[0]  # of a token's groups the first
        values.setdefault("vo", values["fqan"].split("/")[1])
    return identity_of(rules.applied(values, (rules.issuer, values.get("issuer", ""))))


def first_text(ad: Ad, names: Sequence[str]) -> str:
    """Return the first of these attributes that an ad has as a text or number; "" for none."""
    for name in names:
        value = ad.get(name)
        if type(value) is str and value:
            return value
        if type(value) is int and 0 <= value <= _LARGEST:
            return str(value)
    return ""
