"""What a million tokens cost, and the steps by prompt size at which that changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from teamalloc.data.run import Tokens

BASE_WORDS = frozenset({"", "standard", "default", "auto", "none"})
"words for a speed or a service tier that change no price"

# Anthropic's price list: a five-minute cache write is 1.25 x input, a one-hour write 2 x.
_CLAUDE_WRITE_5M = Decimal("1.25")
_CLAUDE_WRITE_1H = Decimal(2)


@dataclass(frozen=True, slots=True)
class Rates:
    """US dollars for a million tokens of each kind."""

    fresh_input: Decimal
    cache_read: Decimal
    cache_write_5m: Decimal
    cache_write_1h: Decimal
    output: Decimal

    def cost_usd(self, tokens: Tokens) -> Decimal:
        """Exact cost of these tokens in US dollars."""
        micro_usd = (
            tokens.fresh_input * self.fresh_input
            + tokens.cache_read * self.cache_read
            + tokens.cache_write_5m * self.cache_write_5m
            + tokens.cache_write_1h * self.cache_write_1h
            + tokens.output * self.output
        )
        return micro_usd.scaleb(-6)


Ladder = Mapping[int, Rates]
"rates by the prompt size (tokens) above which they hold; 0 is always there"


@dataclass(frozen=True, slots=True)
class Enquiry:
    """Which price is asked for."""

    model: str
    "as written in the log"
    at: datetime | None
    "when the request was answered; None = the log does not say"
    speed: str | None = None
    "None = the standard one"
    service_tier: str | None = None
    "None = the standard one"


def fill_rates(
    model: str,
    *,
    fresh_input: Decimal,
    output: Decimal,
    cache_read: Decimal | None = None,
    cache_write_5m: Decimal | None = None,
    cache_write_1h: Decimal | None = None,
) -> Rates:
    """Complete a row of a price list that leaves kinds of tokens out.

    A kind that a list does not name is billed as plain input, except that writes to Claude's
    cache always cost a multiple of the input.
    """
    if cache_write_5m is None:
        claude = model.startswith("claude")
        cache_write_5m = fresh_input * _CLAUDE_WRITE_5M if claude else fresh_input
    if cache_write_1h is None:
        claude = model.startswith("claude")
        cache_write_1h = fresh_input * _CLAUDE_WRITE_1H if claude else cache_write_5m
    return Rates(
        fresh_input,
        fresh_input if cache_read is None else cache_read,
        cache_write_5m,
        cache_write_1h,
        output,
    )


def step_of(ladder: Ladder, prompt_tok: int) -> int:
    """Start of the context tier that a prompt of this size is in: crossing it moves all of it."""
    return max((start for start in ladder if start == 0 or prompt_tok > start), default=0)
