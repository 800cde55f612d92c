"""From the parts of a family to one number for each team, with its gradient."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from teamalloc.models.encode import Floats
from teamalloc.models.families import Components


@dataclass(frozen=True, slots=True, eq=False)
class Total:
    """The sum of log-normal parts, itself taken as log-normal."""

    log: Floats
    "(n,) log of the median"
    gradient: Floats
    "(n, p)"
    variance: Floats
    "(n,) variance of the log that comes from the parts' own spread"


def add_parts(parts: Components, log_price: Floats, spread: Floats) -> Total:
    """Moments of the sum (Fenton 1960).

    Args:
        parts: (n, c) log medians and their gradients.
        log_price: (n, c) log of what one unit of each part costs.
        spread: (n, c) sd of the log of each part.
    """
    log_mean = parts.log + log_price + 0.5 * spread**2
    top = log_mean.max(1, keepdims=True)
    scaled = np.exp(log_mean - top)
    total = scaled.sum(1)
    weight = scaled / total[:, None]
    variance = np.log1p((weight**2 * np.expm1(spread**2)).sum(1))
    log_median = top[:, 0] + np.log(total) - 0.5 * variance
    gradient = np.einsum("nc,ncp->np", weight, parts.design)
    return Total(log_median, gradient, variance)
