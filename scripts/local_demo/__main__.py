"""`python -m local_demo`: takes the signals before anything else, so that Ctrl-C always finds somebody who listens."""

from __future__ import annotations

import sys

from local_demo.interrupts import Interrupts

if __name__ == "__main__":
    _INTERRUPTS = Interrupts()
    from local_demo.command import main

    sys.exit(main(sys.argv[1:], _INTERRUPTS))
