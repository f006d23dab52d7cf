"""THE table of how the payloads of each kind of pilots are known by their processes; a site adds its own rows.

A pattern is a part of a command line. It is the user's own text: who makes a process look like a payload changes
the figures of that pilot alone, and those are bounded by the cores and the time that it has.

Source: pilot.py of PanDA's pilot 3 and JobAgent.java of JAliEn, read; createJobWrapper of DIRAC
(job/Wrapper/Wrapper_<job>), run.
"""

from __future__ import annotations

from drainwise.facts import fact
from drainwise.pilotad.observation import is_client

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

PLAIN = "plain"
"""The client of a pilot that no profile knows: what works below it."""
_LEAST_PATTERN, _LONGEST_PATTERN, _MOST_PATTERNS = 3, 60, 16


@fact
class PayloadProfile:
    """The processes of one client: `pilot`, whose children are payloads, or `payload`, which is one itself.

    starter: what starts payloads that come and go: a job in which it is seen is of this client while it has none. All
    are parts of a command line with blanks between its words; "" where a profile has none. helpers: the names of the
    pilot's children that are no payloads. commands: how the names of those processes begin; () for any.
    """

    client: str
    pilot: str = ""
    payload: str = ""
    starter: str = ""
    helpers: tuple[bytes, ...] = ()
    commands: tuple[bytes, ...] = ()


_TOOLS = (b"prmon", b"MemoryMonitor", b"rucio", b"xrdcp", b"gfal-copy", b"gfal", b"sleep", b"curl")

PROFILES = (
    PayloadProfile("panda", pilot="pilot.py ", helpers=_TOOLS, commands=(b"python",)),
    PayloadProfile(
        "dirac", payload="/Wrapper_", starter="WorkloadManagement/JobAgent ", commands=(b"python", b"dirac-agent")
    ),
    PayloadProfile("alice", payload="alien.site.JobWrapper", commands=(b"java",)),
    PayloadProfile("glideinwms", payload="condor_starter ", commands=(b"condor_starter",)),
)
"""The built-in rows, in the order in which they are tried."""


def site_rows(text: str | None) -> tuple[PayloadProfile, ...]:
    """Return the site's own rows, `name=part of a command line, …`, and the built-in ones after them.

    A name is a client's. What is none is passed over: the site file was checked when it was rendered.
    """
    own = tuple(PayloadProfile(name, payload=part) for name, part in _rows(text) if _is_right(name, part))
    return own[:_MOST_PATTERNS] + PROFILES


def _rows(text: str | None) -> Sequence[tuple[str, str]]:
    pairs = [one.partition("=") for one in (text or "").split(",") if one.strip()]
    return [(name.strip(), part.strip()) for name, _, part in pairs]


def _is_right(name: str, part: str) -> bool:
    return is_client(name) and _LEAST_PATTERN <= len(part) <= _LONGEST_PATTERN and part.isprintable()
