"""The ad by which the collector shows the agent, of a type of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from drainwise.pool.abilities import AgentNotice

AGENT_TYPE = "DrainwiseAgent"
"""Its MyType."""


def ad_of(notice: AgentNotice) -> dict[str, str | int | bool]:
    """Return the ad that shows an agent; the collector drops it when its lifetime is over."""
    return {
        "MyType": AGENT_TYPE,
        "Name": notice.name,
        "Machine": notice.machine,
        "AgentPid": notice.pid,
        "DrainwiseVersion": notice.version,
        "Policy": notice.policy,
        "DaemonStartTime": notice.started,
        "LastCycle": notice.cycle,
        "NextCycle": notice.next_cycle,
        "CyclePeriod": notice.period,
        "Acting": notice.acting,
        "AgentState": notice.state,
        "AgentStateReason": notice.why,
        "LastError": notice.error,
        "LastErrorTime": notice.error_time,
        "ClassAdLifetime": notice.lifetime,
    }
