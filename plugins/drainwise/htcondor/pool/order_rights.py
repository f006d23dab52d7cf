"""Ask a startd whether it takes orders of this process's identity; root shows other tokens where it does not.

To be imported and called in a process of its own (`bounded_call.within`), as the bindings may hang.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module

from drainwise.htcondor.ads.query import classad2, htcondor2
from drainwise.htcondor.pool.knobs import TRIAL_KNOB

_SET, _LEVEL = "DC_CONFIG_RUNTIME", "ADMINISTRATOR"  # the command of an order, and the level that it is held to
_TOKENS, _MACHINES_TOKENS = "SEC_TOKEN_DIRECTORY", "SEC_TOKEN_SYSTEM_DIRECTORY"


@dataclass(frozen=True)
class OrderRights:
    """Our identity by a daemon ("" when it knows none), and whether it gives that the level which is needed."""

    identity: str
    allowed: bool


def rights_at(address: str, command: str = _SET, level: str = _LEVEL) -> OrderRights:
    """Ask a daemon, a startd about an order by default; nothing is changed there.

    Since HTCondor 24 the bindings show root's own tokens and not those of the machine, and without any they come by
    the pool's password, as a name that nodes of 23.x do not know. So root shows the machine's tokens from then on, if
    the configuration names no others, unless they are refused. They come first: what is refused stands in the log.
    """
    if tokens := _machines_tokens():
        before, htcondor2.param[_TOKENS] = htcondor2.param.get(_TOKENS), tokens
        found = _asked(address, command, level)
        if found.allowed:
            return found
        htcondor2.param[_TOKENS] = before or ""
    return _asked(address, command, level)


def is_order_taken(address: str) -> bool:
    """Try whether the startd takes a value as it takes an order: of a knob that nothing reads, without a reconfig."""
    try:
        htcondor2.RemoteParam(classad2.ClassAd({"MyAddress": address}))[TRIAL_KNOB] = "True"
    except htcondor2.HTCondorException:
        return False
    return True


def _asked(address: str, command: str, level: str) -> OrderRights:
    identity, _ = _identity(address, command)
    at_level, allowed = _identity(address, level)
    return OrderRights(at_level or identity, allowed)


def _identity(address: str, what: str) -> tuple[str, bool]:
    """Return as whom a startd knows the caller of a command or level, and whether it would be granted."""
    try:
        answer = _ping(address, what)
    except htcondor2.HTCondorException:
        return "", False
    return str(answer.get("MyRemoteUserName") or ""), True


def _ping(address: str, what: str) -> Mapping[str, object]:
    """Return a daemon's answer to who asks for a command or level; raises HTCondorException when it refuses."""
    answer: Mapping[str, object]
    if hasattr(htcondor2, "ping"):
        answer = htcondor2.ping(address, what)
        return answer
    # In the bindings of 24.0 only their first version has it; both are one library, with one configuration.
    classad, htcondor = import_module("classad"), import_module("htcondor")
    try:
        answer = htcondor.SecMan().ping(classad.ClassAd({"MyAddress": address}), what)
    except htcondor.HTCondorIOError as fault:
        raise htcondor2.HTCondorException(str(fault)) from None
    return answer


def _machines_tokens() -> str:
    """Return the directory of the machine's tokens, where this is root, has any there, and no other is configured."""
    directory = str(htcondor2.param.get(_MACHINES_TOKENS) or "")
    if os.geteuid() != 0 or htcondor2.param.get(_TOKENS) or not directory:
        return ""
    try:
        return directory if any(not name.startswith(".") for name in os.listdir(directory)) else ""
    except OSError:
        return ""
