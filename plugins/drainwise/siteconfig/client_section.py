"""The section of the site file that says which pilots are of which kind of client."""

from __future__ import annotations

from dataclasses import dataclass

from drainwise.facts.client_rules import ClientRules
from drainwise.facts.clients import PAPER, PROFILES
from drainwise.siteconfig.kinds import choice, client_conditions
from drainwise.siteconfig.table import key, optional


@dataclass(frozen=True)
class ClientsSection:
    """Which pilots are of which kind of client, by conditions; the rows are tried in this order: docs/pilots.md."""

    none: str | None = optional(
        client_conditions(), "account=group_local.*", "pilots that are shown nothing: they hear SIGTERM alone"
    )
    alice: str | None = optional(
        client_conditions(), "user=alice*", "ALICE's JAliEn: it never sees a shutdown file, which would break it"
    )
    panda: str | None = optional(
        client_conditions(),
        "user=atlas* or job.x509UserProxyVOName=atlas",
        "PanDA's pilot: it stops 10 min before its deadline and drops what runs",
    )
    dirac: str | None = optional(
        client_conditions(), "user=lhcb* name=DIRAC*", "DIRAC's pilot: it goes on until SIGTERM"
    )
    glideinwms: str | None = optional(
        client_conditions(),
        "job.GLIDEIN_Factory=*",
        "glideins of glideinWMS: they drain; they end payloads 30 min before the time shown, which is so much later",
    )
    paper: str | None = optional(
        client_conditions(), "account=group_pilots.*", "pilots that read .site.ad or the shutdown files, and drain"
    )
    default: str = key(choice(*reversed(PROFILES)), PAPER.name, "what a pilot is that no row fits")

    @property
    def rules(self) -> ClientRules:
        """The rows as nodes and the agent use them."""
        rows = {name: row for name in PROFILES if (row := getattr(self, name)) is not None}
        return ClientRules(rows, self.default)
