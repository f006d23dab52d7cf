"""HTCondor's Python bindings, version 2; whoever imports them here gets one line when they are too old.

Those of HTCondor 23, such as Debian 13's own package, have the modules and lack what tells a refusal from any other
fault.
"""

from __future__ import annotations

import classad2
import htcondor2

from drainwise.facts.errors import UsageError

__all__ = ["classad2", "htcondor2", "require_bindings"]


def require_bindings() -> None:
    """Raise UsageError when the bindings here are too old to be used, with what to install."""
    if not hasattr(htcondor2, "HTCondorException"):
        version = str(htcondor2.version()).split()
        raise UsageError(
            f"HTCondor's Python bindings here are too old: version {version[1] if len(version) > 1 else 'unknown'}, in"
            f" {htcondor2.__path__[0]}; install those of PyPI, 24.0 or later, which speak to older daemons, too:"
            " pip install 'drainwise[htcondor]', in a virtual environment where the system's Python refuses that"
        )


require_bindings()
