"""What all contracts say when they are broken."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from math import isfinite


class ContractBroken(AssertionError):
    """An implementation does not keep the contract of its extension point."""


def require(holds: bool, otherwise: str) -> None:
    """Raise ``ContractBroken(otherwise)`` unless it holds."""
    if not holds:
        raise ContractBroken(otherwise)


def require_unique(words: Sequence[str], what: str) -> None:
    """No word twice."""
    repeated = sorted(word for word, n in Counter(words).items() if n > 1)
    require(not repeated, f"{what} repeat: {repeated}")


def require_amount(amount: float | Decimal | None, what: str) -> None:
    """Unknown, or finite and not negative."""
    require(amount is None or (isfinite(amount) and amount >= 0), f"{what} is {amount}")
