"""The kinds of pilot client, by the names of `[clients]`: what each is shown of an order, and what it makes of that.

Which versions were read and run is in docs/pilots.md.
"""

from __future__ import annotations

from drainwise.facts import fact


@fact
class ClientProfile:
    """One kind of client.

    site_ad: whether `.site.ad` is written for it. shutdown_files: whether `shutdowntime` and `shutdowntime_job` ever
    are. shown_later: seconds by which these name a later time than the earliest end of its lease. stops_before: seconds
    before its deadline at which it stops by itself and drops what runs. drains: an order keeps it from starting
    payloads; who does not goes on starting them until it is stopped.
    """

    name: str
    site_ad: bool = True
    shutdown_files: bool = True
    shown_later: int = 0
    stops_before: int = 0
    drains: bool = True


PAPER = ClientProfile("paper")
"""A pilot that reads `.site.ad` or the shutdown files, starts no payloads and leaves when the running ones end."""

GLIDEINWMS = ClientProfile("glideinwms", shown_later=1800)
"""check_wn_drainstate.sh drains it at once and preempts its payloads 1800 s before the time that it reads: as that time
is shown 1800 s later, they run until the deadline."""

PANDA = ClientProfile("panda", stops_before=600, drains=False)
"""PanDA's pilot 3: pilot/control/monitor.py looks once a minute and aborts 600 s before the machine's shutdowntime."""

DIRAC = ClientProfile("dirac", drains=False)
"""DIRAC's JobAgent counts the time down that it had at its start: of an order it learns by SIGTERM alone."""

ALICE = ClientProfile("alice", shutdown_files=False, drains=False)
"""JAliEn's MachineJobFeatures.java makes text of the array and not of its bytes, so each number there is an exception:
it must never see a shutdowntime. SIGTERM is its only word."""

NONE = ClientProfile("none", site_ad=False, shutdown_files=False, drains=False)
"""A client that is shown nothing and hears SIGTERM alone."""

PROFILES = {one.name: one for one in (NONE, ALICE, PANDA, DIRAC, GLIDEINWMS, PAPER)}
"""By name, in the order in which the rows of the site file are tried: who must not see a file comes first."""
