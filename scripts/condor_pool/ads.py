"""ClassAds as tests read them: the JSON of HTCondor's tools, with typed access."""

from __future__ import annotations

import json

from condor_pool.errors import PoolError


class Ad(dict[str, object]):
    """One ad: attribute name → value. An attribute that is missing or undefined is not in it."""

    def text(self, name: str) -> str:
        """The string `name`; raises PoolError if it is something else."""
        return str(self._typed(name, str))

    def integer(self, name: str) -> int:
        """The integer `name`; raises PoolError if it is something else."""
        value = self._typed(name, int)
        return int(str(value))

    def real(self, name: str) -> float:
        """The number `name`; raises PoolError if it is something else."""
        value = self._typed(name, (int, float))
        return float(str(value))

    def _typed(self, name: str, kinds: type | tuple[type, ...]) -> object:
        value = self.get(name)
        if not isinstance(value, kinds) or isinstance(value, bool):
            raise PoolError(f"attribute {name} is {value!r} in {dict(self)!r}")
        return value


def parse_ads(text: str) -> list[Ad]:
    """The ads in the output of `condor_q -json` or `condor_status -json`; no output means no ads."""
    if not text.strip():
        return []
    return [Ad(ad) for ad in json.loads(text)]
