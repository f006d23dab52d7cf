"""`python -m local_demo`: takes the signals before anything else, so that Ctrl-C always finds somebody who listens."""

from __future__ import annotations

import sys

from local_demo.curtain import Curtain

if __name__ == "__main__":
    _CURTAIN = Curtain()
    from local_demo.performance import main

    sys.exit(main(sys.argv[1:], _CURTAIN))
