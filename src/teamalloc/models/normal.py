"""The normal distribution for arrays, by the standard library.

``scipy.special`` has the same functions, but importing it costs a third of an answer's time.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from teamalloc.models.encode import Floats

Z_90 = NormalDist().inv_cdf(0.95)
"half the width of a 90 % interval, in standard deviations"

_erfc = np.frompyfunc(math.erfc, 1, 1)


def normal_cdf(z: Floats) -> Floats:
    """P(Z <= z) for each z."""
    tail = _erfc(np.asarray(z, dtype=float) / -math.sqrt(2.0))
    return 0.5 * np.asarray(tail, dtype=float)


def normal_quantile(p: float) -> float:
    """z with P(Z <= z) = p, for 0 < p < 1."""
    return NormalDist().inv_cdf(p)
