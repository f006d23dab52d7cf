"""Who sent a job, by the attributes of its ad that a startd copies into the ad of its slot (STARTD_JOB_ATTRS).

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

JOB_ATTRIBUTES = tuple(name for names in _SOURCES.values() for name in names)
"""All of them, as the nodes publish them."""

_LARGEST = 10**18


def job_attributes(rules: IdentityRules) -> tuple[str, ...]:
    """Return the attributes that a site wants nodes to publish."""
    return tuple(name for name in JOB_ATTRIBUTES if rules.with_subject or name not in _SUBJECTS)


def identity_in(ad: Ad, rules: IdentityRules) -> PilotIdentity | None:
    """Return who sent the job of a slot; None where nothing tells. An attribute that is no text or number is none."""
    values = {name: text for name, names in _SOURCES.items() if (text := _first(ad, names))}
    if not values:
        return None
    if values.get("fqan", "").startswith("/"):
        values["fqan"] = values["fqan"].partition(",")[0]  # of a token's groups the first
        values.setdefault("vo", values["fqan"].split("/")[1])
    return identity_of(rules.applied(values, (rules.issuer, values.get("issuer", ""))))


def _first(ad: Ad, names: Sequence[str]) -> str:
    for name in names:
        value = ad.get(name)
        if type(value) is str and value:
            return value
        if type(value) is int and 0 <= value <= _LARGEST:
            return str(value)
    return ""
