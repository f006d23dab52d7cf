"""Choose, round and negate: element by element for arrays, and for one number, for which numpy is not imported.

So the formulas of `figures` serve a decision on thousands of pilots and a command that shows some of them.
"""

from __future__ import annotations

import math
from typing import Any

INFINITE = math.inf

Quantity = Any
"""A number or an array of them; a formula gives back the widest of what it was given."""


def where(condition: Quantity, yes: Quantity, no: Quantity) -> Quantity:
    """Return `yes` where the condition holds, else `no`."""
    if isinstance(condition, bool):
        return yes if condition else no
    import numpy as np  # noqa: PLC0415 - there are arrays, so it is there

    return np.where(condition, yes, no)


def negated(condition: Quantity) -> Quantity:
    """Return whether the condition does not hold."""
    return not condition if isinstance(condition, bool) else ~condition


def any_of(condition: Quantity) -> bool:
    """Return whether the condition holds anywhere."""
    return condition if isinstance(condition, bool) else bool(condition.any())


def rounded(value: Quantity) -> Quantity:
    """Return the nearest whole number, the even one of two, as a real one."""
    if isinstance(value, (int, float)):
        return float(round(value)) if math.isfinite(value) else value
    import numpy as np  # noqa: PLC0415

    return np.rint(value)


def rounded_up(value: Quantity) -> Quantity:
    """Return the least whole number that is not less, as a real one."""
    if isinstance(value, (int, float)):
        return float(math.ceil(value)) if math.isfinite(value) else value
    import numpy as np  # noqa: PLC0415

    return np.ceil(value)


def everywhere(value: float, like: Quantity) -> Quantity:
    """Return the value, as often as `like` has elements."""
    return value + like * 0.0
