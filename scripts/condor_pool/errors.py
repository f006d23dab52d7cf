"""What can go wrong with a test pool: the errors of all real daemons, under the pool's own name for their base."""

from __future__ import annotations

from real_daemons.errors import CommandError, DeadlineError, MissingToolError, RootUnavailableError
from real_daemons.errors import DaemonsError as PoolError

__all__ = ["CommandError", "DeadlineError", "MissingToolError", "PoolError", "RootUnavailableError"]
