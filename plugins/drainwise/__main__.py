"""`python -m drainwise` is the command `drainwise`."""

from __future__ import annotations

import sys

from drainwise.cli.main import main

sys.exit(main())
