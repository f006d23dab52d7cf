"""Name the kinds of arrays that a decision calculates with."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Whole = NDArray[np.int64]
Real = NDArray[np.float64]
Mask = NDArray[np.bool_]
Bits = NDArray[np.uint8]
Pair = NDArray[np.complex128]
"""Two numbers each: numpy adds them part by part and compares the first parts first."""
